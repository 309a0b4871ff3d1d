-- purpose: keeps what a cleanup did; append-only, its order is the order of execution
insert into game_cleanups (job_key, match_id, shard, position, outcome, written_at_ms)
values (:job_key, :match_id, :shard, :position, :outcome, :written_at_ms)
