-- purpose: adds one payment
insert into game_payments
  (payment_id, shard, game_id, provider_ref, amount, currency, state, version, updated_at_ms, refunded, day)
values
  (:payment_id, :shard, :game_id, :provider_ref, :amount, :currency, :state, :version, :updated_at_ms, :refunded, :day)
