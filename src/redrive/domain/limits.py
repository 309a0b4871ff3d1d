"""Every limit and default of the contract (section 2), each once.

Validators, discovery, the docs and the boundary tests (n-1, n, n+1) read this file. Units are the last word
of a name.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

BODY_BYTES_MAX: Final = 256 * KIB
DELAY_SECONDS_MAX: Final = 604_800
RETENTION_SECONDS_MIN: Final = 60
RETENTION_SECONDS_MAX: Final = 2_592_000
RETENTION_SECONDS_DEFAULT: Final = 14 * 86_400
DEAD_RETENTION_SECONDS: Final = 30 * 86_400
VISIBILITY_SECONDS_MIN: Final = 1
VISIBILITY_SECONDS_MAX: Final = 43_200
VISIBILITY_SECONDS_DEFAULT: Final = 30
LEASE_SECONDS_MAX_DEFAULT: Final = 43_200
DEDUPLICATION_SECONDS: Final = 300
CONSUME_MESSAGES_MIN: Final = 1
CONSUME_MESSAGES_MAX: Final = 1_000
CONSUME_MESSAGES_DEFAULT: Final = 10
CONSUME_BYTES_MAX: Final = 8 * MIB
BATCH_ENTRIES_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 8 * MIB
KEY_BYTES_MAX: Final = 200  # job key, idempotency key, group id, deduplication id, consumer id
REASON_CHARS_MAX: Final = 500
ACTOR_CHARS_MAX: Final = 80
ERROR_BYTES_MAX: Final = 16 * KIB
FINGERPRINTED_CHARS_MAX: Final = 2_000  # of an error's message, from which its fingerprint is made
FINGERPRINT_CHARS: Final = 16
FINGERPRINT_POLICIES_MAX: Final = 100  # of one queue; all of them are read with a failure
WAIT_SECONDS_MAX: Final = 20
CONCURRENCY_MAX: Final = 10_000  # jobs that one consumer says it works on at once
QUEUE_NAME_CHARS_MAX: Final = 80
DERIVED_QUEUE_NAME_CHARS_MAX: Final = 84
QUEUE_NAME_PATTERN: Final = r"[A-Za-z0-9._-]{1,80}"
DERIVED_QUEUE_NAME_PATTERN: Final = r"[A-Za-z0-9._-]{1,80}|[A-Za-z0-9._-]{1,80}\.dlq"
HEADERS_COUNT_MAX: Final = 64
HEADERS_BYTES_MAX: Final = 16 * KIB
PRIORITY_MIN: Final = 0
PRIORITY_MAX: Final = 9
PRIORITY_DEFAULT: Final = 0
MAX_RETRIES_MIN: Final = 0
MAX_RETRIES_MAX: Final = 1_000
MAX_RETRIES_DEFAULT: Final = 5
RELEASES_MAX: Final = 1_000  # of one budget
MAX_REDRIVES_DEFAULT: Final = 10
REDRIVE_MESSAGES_DEFAULT: Final = 100
REDRIVE_SKIPPED_MAX: Final = 100  # members that an answer names; it counts all of them
PLAN_RATE_DEFAULT: Final = 10.0  # members a second
PLAN_RATE_MIN: Final = 0.001  # a member in a quarter of an hour
PLAN_RATE_MAX: Final = 5_000.0
PLAN_IN_FLIGHT_DEFAULT: Final = 100
PLAN_IN_FLIGHT_MAX: Final = 100_000
PLAN_MEMBERS_MAX: Final = 1_000_000
PLAN_RAMP_SECONDS_MAX: Final = 86_400
PLAN_FAILURE_RATIO_DEFAULT: Final = 0.5
PLAN_WINDOW_SECONDS_DEFAULT: Final = 60
PLAN_WINDOW_SECONDS_MAX: Final = 300  # statistics are kept by slots of ten seconds for five minutes
RETRY_BASE_SECONDS_DEFAULT: Final = 1.0
RETRY_FACTOR_DEFAULT: Final = 2.0
RETRY_MAX_SECONDS_DEFAULT: Final = 900.0
LIST_LIMIT_DEFAULT: Final = 100
LIST_LIMIT_MAX: Final = 1_000
IDEMPOTENCY_SECONDS: Final = 86_400
JSON_DEPTH_MAX: Final = 128
REQUEST_BYTES_MAX: Final = BATCH_BYTES_MAX + 1 * MIB  # a full batch with its envelope
API_KEY_CHARS_MIN: Final = 16
OUTAGE_GAP_MS: Final = 5_000  # a larger step of the clock between two ticks is an outage, not time
CRON_EXPRESSION_CHARS_MAX: Final = 200
CATCH_UP_LIMIT_DEFAULT: Final = 100
RUNS_OPEN_MAX: Final = 100  # of one schedule, begun or waiting
