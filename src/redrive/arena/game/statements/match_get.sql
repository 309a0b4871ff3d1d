-- purpose: one match as it is now
-- index: primary key
select match_id, shard, state, version, expires_at_ms, position
from game_matches
where match_id = :match_id
