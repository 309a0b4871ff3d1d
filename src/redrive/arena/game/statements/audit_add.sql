-- purpose: writes the audit line of one settlement; no unique key, so that a second run shows
insert into game_audit
  (job_key, shard, day, compared, corrected, exceptions, provider_calls, delivery, written_at_ms)
values
  (:job_key, :shard, :day, :compared, :corrected, :exceptions, :provider_calls, :delivery, :written_at_ms)
