-- purpose: reports what must not be corrected by a machine
insert into game_exceptions
  (job_key, kind, payment_id, provider_ref, detail)
values
  (:job_key, :kind, :payment_id, :provider_ref, :detail)
