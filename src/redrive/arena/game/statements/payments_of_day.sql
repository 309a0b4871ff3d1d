-- purpose: the payments of one shard and day
-- index: game_payments_day
select payment_id, shard, game_id, provider_ref, amount, currency, state, version, updated_at_ms, refunded, day
from game_payments
where shard = :shard and day = :day
order by payment_id
