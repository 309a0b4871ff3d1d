-- purpose: every match, for the claims
select match_id, shard, state, version, expires_at_ms, position
from game_matches
order by shard, position
