-- purpose: closes one expired match, only from the version that was judged
-- index: primary key
update game_matches
set state = 'expired', version = version + 1
where match_id = :match_id and version = :expected_version and state = 'open'
