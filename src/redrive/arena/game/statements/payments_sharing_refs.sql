-- purpose: payments of any shard and day that hold a reference of this shard and day
-- index: game_payments_day, game_payments_ref
select distinct q.payment_id, q.shard, q.game_id, q.provider_ref, q.amount, q.currency, q.state, q.version, q.updated_at_ms, q.refunded, q.day
from game_payments p
join game_payments q on q.provider_ref = p.provider_ref and q.payment_id <> p.payment_id
where p.shard = :shard and p.day = :day and p.provider_ref <> ''
order by q.payment_id
