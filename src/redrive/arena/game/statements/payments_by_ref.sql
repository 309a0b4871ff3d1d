-- purpose: the payments of any shard that hold one provider reference
-- index: game_payments_ref
select payment_id, shard, game_id, provider_ref, amount, currency, state, version, updated_at_ms, refunded, day
from game_payments
where provider_ref = :provider_ref
order by payment_id
