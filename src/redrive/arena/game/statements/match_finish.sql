-- purpose: ends one match by play
-- index: primary key
update game_matches
set state = 'finished', version = version + 1
where match_id = :match_id
