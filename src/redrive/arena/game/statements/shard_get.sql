-- purpose: one shard with its account at the provider
-- index: primary key
select shard, game_id, provider_account
from game_shards
where shard = :shard
