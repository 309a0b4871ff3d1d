-- purpose: adds one shard of the game
insert into game_shards (shard, game_id, provider_account)
values (:shard, :game_id, :provider_account)
