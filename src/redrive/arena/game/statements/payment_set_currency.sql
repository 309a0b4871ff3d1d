-- purpose: corrects the currency of one payment at its source
-- index: primary key
update game_payments
set currency = :currency, version = version + 1
where payment_id = :payment_id
