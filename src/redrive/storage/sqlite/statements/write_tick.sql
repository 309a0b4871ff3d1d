-- purpose: the liveness tick
INSERT INTO clock (one, tick_ms) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET tick_ms = excluded.tick_ms
