-- purpose: every cleanup in the order of execution
select id, job_key, match_id, shard, position, outcome, written_at_ms
from game_cleanups
order by id
