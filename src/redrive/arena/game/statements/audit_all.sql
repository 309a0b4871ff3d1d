-- purpose: every audit line, oldest first
select id, job_key, shard, day, compared, corrected, exceptions, provider_calls, delivery, written_at_ms
from game_audit
order by id
