-- purpose: adds one match
insert into game_matches (match_id, shard, state, version, expires_at_ms, position)
values (:match_id, :shard, :state, :version, :expires_at_ms, :position)
