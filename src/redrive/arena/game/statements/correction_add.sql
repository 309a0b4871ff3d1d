-- purpose: keeps what was corrected
insert into game_corrections
  (job_key, payment_id, from_state, to_state, from_version, refunded, resubmitted)
values
  (:job_key, :payment_id, :from_state, :to_state, :from_version, :refunded, :resubmitted)
