-- purpose: deduplication windows run on monotonic time too
UPDATE dedup SET until_ms = until_ms + $1::bigint
