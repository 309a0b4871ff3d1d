-- purpose: moves one payment forward, only from the version that was compared
-- index: primary key
update game_payments
set state = :to_state, refunded = :refunded, version = version + 1, updated_at_ms = :now_ms
where payment_id = :payment_id and version = :expected_version and state = :from_state
