-- purpose: nothing of it needs to survive; what does not fit into 16 MiB goes to a file that nobody else sees
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
