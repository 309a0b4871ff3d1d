-- purpose: every payment, for the claims
select payment_id, shard, game_id, provider_ref, amount, currency, state, version, updated_at_ms, refunded, day
from game_payments
order by payment_id
