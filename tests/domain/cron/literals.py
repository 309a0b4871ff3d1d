"""What cron(8) says, written by hand for each case.

A block is a zone and the time that is looked at, (after, until] in UTC; a line is an expression and when it
runs, UTC, month and day only where they are not those of the block's end. Behind a time: `g` moved out of a
gap, `1` and `2` the first and the second time of an hour that comes twice.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """One hand-written expectation."""

    zone: str
    after: str
    until: str
    expression: str
    expected: tuple[tuple[str, str | None], ...]


EDGES = {"g": "gap", "1": "overlap_first", "2": "overlap_second"}

TABLE = """
# CET +1 to CEST +2 at 01:00Z: 02:00 … 02:59 do not exist
Europe/Berlin 2026-03-28T12:00 2026-03-29T12:00
  30 2 29 3 *     = 01:00g
  0 2 * * *       = 01:00g
  59 2 * * *      = 01:00g
  0 3 * * *       = 01:00
  30 3 * * *      = 01:30
  30 1 * * *      = 00:30
  0,30 2 * * *    = 01:00g
  0 2,3 * * *     = 01:00g
  0 1-4 * * *     = 00:00 01:00g 02:00
  */30 2 * * *    =
  * 2 * * *       =
  30 */6 29 3 *   = 03-28T23:30 04:30 10:30
  30 2 * * 1      =
  30 2 * * SUN    = 01:00g
Europe/Berlin 2026-03-29T00:40 2026-03-29T01:40
  */20 * * * *    = 01:00 01:20 01:40
  15 * * * *      = 01:15
  @hourly         = 01:00
Europe/Berlin 2026-03-28T22:00 2026-03-29T03:00
  30 */2 * * *    = 03-28T23:30 02:30
Europe/Berlin 2026-03-29T00:00 2026-03-30T12:00
  30 2 29 * 1     = 03-29T01:00g 00:30
Europe/Berlin 2026-03-28T12:00 2026-04-06T12:00
  30 2 */2 * 0    = 03-29T01:00g 04-05T00:30

# CEST +2 to CET +1 at 01:00Z: 02:00 … 02:59 come at 00:00Z and at 01:00Z
Europe/Berlin 2026-10-24T12:00 2026-10-25T12:00
  30 2 * * *      = 00:301
  0 2 * * *       = 00:001
  59 2 * * *      = 00:591
  0 3 * * *       = 02:00
  30 1 * * *      = 10-24T23:30
  0 1-3 * * *     = 10-24T23:00 00:001 02:00
  */30 2 * * *    = 00:001 00:301 01:002 01:302
Europe/Berlin 2026-10-24T23:00 2026-10-25T03:00
  15 * * * *      = 10-24T23:15 00:151 01:152 02:15
  0 */3 * * *     = 02:00
  0 2 25 10 *     = 00:001

# Ireland: winter is the exception, the clock does as elsewhere; 01:00 … 01:59 at 01:00Z
Europe/Dublin 2026-03-28T12:00 2026-03-29T12:00
  30 1 * * *      = 01:00g
  0 2 * * *       = 01:00
Europe/Dublin 2026-10-24T12:00 2026-10-25T12:00
  30 1 * * *      = 00:301
  */30 1 * * *    = 00:001 00:301 01:002 01:302

# EST -5, EDT -4
America/New_York 2026-03-07T12:00 2026-03-08T12:00
  30 2 * * *      = 07:00g
  0 3 * * *       = 07:00
  5 4 * * 0       = 08:05
America/New_York 2026-03-08T05:30 2026-03-08T08:30
  @hourly         = 06:00 07:00 08:00
America/New_York 2026-10-31T12:00 2026-11-01T12:00
  30 1 * * *      = 05:301
  30 1 1 * *      = 05:301
  */30 1 * * *    = 05:001 05:301 06:002 06:302
  0 2 * * *       = 07:00
America/New_York 2027-03-13T12:00 2027-03-14T12:00
  15 2 * * *      = 07:00g
America/New_York 2027-11-06T12:00 2027-11-07T12:00
  45 1 * * *      = 05:451

# NST -3:30, NDT -2:30
America/St_Johns 2026-03-07T12:00 2026-03-08T12:00
  30 2 * * *      = 05:30g
  0 4 * * *       = 06:30
America/St_Johns 2026-10-31T12:00 2026-11-01T12:00
  15 1 * * *      = 03:451

# the clock is set at midnight: 00:00 … 00:59 do not exist, or come at 04:00Z and 05:00Z
America/Havana 2026-03-07T12:00 2026-03-08T12:00
  0 0 * * *       = 05:00g
  @daily          = 05:00g
  30 0 8 3 *      = 05:00g
  0 1 * * *       = 05:00
  */30 0 * * *    =
  30 23 * * *     = 04:30
America/Havana 2026-10-31T12:00 2026-11-01T12:00
  0 0 * * *       = 04:001
  @monthly        = 04:001
  */30 0 * * *    = 04:001 04:301 05:002 05:302

# at midnight, too; in autumn 23:00 … 23:59 come twice
Africa/Cairo 2026-04-23T12:00 2026-04-24T12:00
  15 0 * * *      = 04-23T22:00g
  0 12 24 4 *     = 09:00
Africa/Cairo 2026-10-29T12:00 2026-10-30T12:00
  30 23 * * *     = 10-29T20:301
  */30 23 29 10 * = 10-29T20:001 10-29T20:301 10-29T21:002 10-29T21:302
  0 0 * * *       = 10-29T22:00
Asia/Beirut 2026-03-28T12:00 2026-03-29T12:00
  0 0 * * 0       = 03-28T22:00g
Asia/Beirut 2026-10-24T12:00 2026-10-25T12:00
  45 23 * * *     = 10-24T20:451
  0 0 * * *       = 10-24T22:00

# the southern half: autumn is in April
America/Santiago 2026-04-04T12:00 2026-04-05T12:00
  30 23 * * *     = 02:301
  30 23 4 4 *     = 02:301
America/Santiago 2026-09-05T12:00 2026-09-06T12:00
  0 0 * * *       = 04:00g
  5 0 6 9 0       = 04:00g

# half an hour: +10:30 and +11
Australia/Lord_Howe 2026-10-03T12:00 2026-10-04T12:00
  0 2 * * *       = 10-03T15:30g
  15 2 * * *      = 10-03T15:30g
  30 2 * * *      = 10-03T15:30
  45 2 * * *      = 10-03T15:45
Australia/Lord_Howe 2026-10-03T15:00 2026-10-03T16:00
  */15 * * * *    = 15:15 15:30 15:45 16:00
Australia/Lord_Howe 2026-04-04T12:00 2026-04-05T12:00
  45 1 * * *      = 04-04T14:451
  0 2 * * *       = 04-04T15:30
  */15 1 4,5 4 *  = 04-04T14:00 04-04T14:15 04-04T14:301 04-04T14:451 04-04T15:002 04-04T15:152

# +12:45 and +13:45
Pacific/Chatham 2026-09-26T12:00 2026-09-27T12:00
  0 3 * * *       = 09-26T14:00g
  30 2 * * *      = 09-26T13:45
Pacific/Chatham 2026-04-04T12:00 2026-04-05T12:00
  0 3 * * *       = 04-04T13:151

# Ramadan: an hour back in February, forward in March
Africa/Casablanca 2026-02-14T12:00 2026-02-15T12:00
  30 2 * * *      = 01:301
Africa/Casablanca 2026-03-21T12:00 2026-03-22T12:00
  30 2 * * *      = 02:00g

# no change at all
Asia/Kolkata 2026-03-28T12:00 2026-03-29T12:00
  30 2 * * *      = 03-28T21:00
UTC 2026-03-28T12:00 2026-03-29T12:00
  @weekly         = 00:00
  30 2 * * *      = 02:30
"""


def literals() -> list[Literal]:
    """The table, read."""
    found: list[Literal] = []
    zone = after = until = ""
    for line in TABLE.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            zone, after, until = line.split()
            continue
        expression, _, times = line.partition("=")
        expected = tuple(_time(word, until) for word in times.split())
        found.append(Literal(zone, after, until, expression.strip(), expected))
    return found


def _time(word: str, until: str) -> tuple[str, str | None]:
    edge = EDGES.get(word[-1]) if len(word.rpartition(":")[2]) == 3 else None
    word = word if edge is None else word[:-1]
    day, _, clock = word.rpartition("T")
    return f"{until[:5]}{day or until[5:10]}T{clock}", edge
