-- purpose: an injected clock: what redrive_now_ms() answers in this session
SELECT set_config('redrive.clock_ms', $1::text, false)
