"""Fingerprints over messages as systems write them: what is one cause, what is not, and what stays."""

from __future__ import annotations

import time
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import limits
from redrive.domain.causes import codes, place, words
from redrive.domain.fingerprint import error_info, fingerprint

URLLIB3 = (
    "HTTPConnectionPool(host='{}', port={}): Max retries exceeded with url: /v1/p/{} (Caused by "
    "NewConnectionError('<HTTPConnection object at {}>: Failed to open: [Errno 111] Connection refused'))"
)
#: Two failures of one cause, as their authors print them.
SAME = {
    "psycopg, duplicate key": (
        'duplicate key value violates unique constraint "pk"\nDETAIL:  Key (id)=(7) already exists.',
        'duplicate key value violates unique constraint "pk"\nDETAIL:  Key (id)=(81) already exists.',
    ),
    "PyMySQL, duplicate key": (
        "(1062, \"Duplicate entry 'p-7' for key 'payments.ref'\")",
        "(1062, \"Duplicate entry 'it''s' for key 'payments.ref'\")",
    ),
    "psycopg, refused": (
        'connection to server at "10.0.0.7", port 5432 failed: Connection refused',
        'connection to server at "db-1.internal", port 6432 failed: Connection refused',
    ),
    "psycopg, deadlock": (
        "deadlock detected\nDETAIL:  Process 81 waits for ShareLock on transaction 9001",
        "deadlock detected\nDETAIL:  Process 4 waits for ShareLock on transaction 17",
    ),
    "requests, not found": (
        "404 Client Error: Not Found for url: https://api.example.com/v1/payments/81?at=2026-10-23",
        "404 Client Error: Not Found for url: https://api.example.com/v1/payments/bob",
    ),
    "urllib3, refused": (
        URLLIB3.format("a", 80, 7, "0x7f10"),
        URLLIB3.format("b", 8080, 8, "0x55aa"),
    ),
    "Redis, by address": ("Error 111 connecting to 10.1.2.3:6.", "Error 111 connecting to [fe80::1]:6."),
    "IPv6": ("connect to 2001:db8::dead:beef failed", "connect to ::1 failed"),
    "host and port": ("dial db-a.eu.internal:5432: timeout", "dial db-b.us.internal:5432: timeout"),
    "e-mail": ("mail to bob.smith@example.co.uk bounced", "mail to ann@example.org bounced"),
    "numbers": ("balance -1,234.50 is below 10", "balance 7 is below 1e-05"),
    "sign": ("offset -5 out of range", "offset +17 out of range"),
    "lists": ("missing ids [1, 2, 3]", "missing ids [4]"),
    "lists of texts": ("unknown fields ['a', 'b']", "unknown fields ['c']"),
    "bytes": ("cannot decode b'\\xff\\x00'", "cannot decode b'abc'"),
    "times": ("no rate for 2026-10-23 02:00:00.123+00:00", "no rate for 2026-10-24T02:00:00Z"),
    "dates in words": ("till Fri, 23 Oct 2026 02:00:00 GMT", "till Sat, 24 Oct 2026 13:07:00 GMT"),
    "durations": ("timed out after 3m20s", "timed out after 45s"),
    "paths": ("cannot open /var/spool/jobs/alpha.csv", "cannot open /mnt/b/beta.csv"),
    "Windows paths": (r"cannot open C:\spool\alpha.csv", r"cannot open D:\other\beta.csv"),
    "hex without digits": ("commit deadbeef is gone", "commit 0123abcd is gone"),
    "ULID": ("job 01HZX3K5T9 lost", "job 01J0AAAAAA lost"),
    "pods": ("worker-6f7d9c8b5-x2x4z died", "worker-7b9d8c6f4-qwrtz died"),
    "a string that was cut": ("cannot parse 'abc", "cannot parse 'xy"),
    "a quote in a quote": (r"bad value 'it\'s 7'", "bad value 'x'"),
    "typographic quotes": ("no player “Ann”", "no player “Bob B.”"),
    "a leading empty line": ("\n  no such row", "no such row"),
    "code units": ("'utf-8' codec can't decode byte 0xff in position 7: invalid start byte",
                   "'utf-8' codec can't decode byte 0xc3 in position 0: invalid start byte"),
    "case": ("Connection Reset By Peer", "connection reset by peer"),
}  # fmt: skip

#: Failures that look alike and are none of one cause.
DIFFERENT = {
    "HTTP status": ("HTTP 503 from the provider", "HTTP 404 from the provider"),
    "status=": ("upstream answered status=502", "upstream answered status=422"),
    "status code": ("Unexpected status code: 429", "Unexpected status code: 500"),
    "httpx": ("Client error '404 Not Found' for url 'https://x/1'", "Client error '409 Conflict' for url 'https://x/1'"),
    "aiohttp": ("503, message='Service Unavailable', url='https://x'", "504, message='Gateway Timeout', url='https://x'"),
    "errno": ("[Errno 111] '10.0.0.7'", "[Errno 113] '10.0.0.7'"),
    "SQLSTATE": ("SQLSTATE[23505]: violation", "SQLSTATE[23503]: violation"),
    "MySQL": ('ERROR 1062 (23000): "x"', 'ERROR 1452 (23000): "x"'),
    "PyMySQL": ('(1062, "x")', '(1213, "x")'),
    "Oracle": ("ORA-00001: violated", "ORA-01400: violated"),
    "exit code": ("child ended with exit code 137", "child ended with exit code 1"),
    "signal": ("killed by signal 9", "killed by signal 11"),
    "a provider's code in JSON": ('declined: {"code":"card_declined"}', 'declined: {"code":"expired_card"}'),
    "a provider's number in JSON": ('declined: {"code": 4001}', 'declined: {"code": 4002}'),
    "gRPC": ("<_RpcError>\n\tstatus = StatusCode.INTERNAL", "<_RpcError>\n\tstatus = StatusCode.ABORTED"),
    "apostrophes are no quotes": ("couldn't load the player's page", "couldn't save the player's page"),
    "words": ("row not found", "row not allowed"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_differs_between_failures_of_one_cause_goes(name: str) -> None:
    """Ids, numbers, times, addresses, paths and quoted values make no other group."""
    one, other = SAME[name]
    assert (words(one), codes(one)) == (words(other), codes(other))
    assert fingerprint("E", one) == fingerprint("E", other)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_tells_causes_apart_stays(name: str) -> None:
    """Codes and words do: 503 and 404 are not one cause."""
    one, other = DIFFERENT[name]
    assert fingerprint("E", one) != fingerprint("E", other)


def test_a_number_is_no_code_by_itself() -> None:
    """The control of the codes: an id that looks like an HTTP status or an errno is an id."""
    for said in (
        "payment 404 not found",
        "order 503 of 1062",
        "status 2026-10-23",
        "code 7",
        "ORD-00942 is late",
    ):
        assert codes(said) == "", said
    assert fingerprint("E", "payment 404 not found") == fingerprint("E", "payment 503 not found")


PYTHON = (
    "Traceback (most recent call last):\n"
    '  File "{root}/worker.py", line {line}, in run\n    handler(job)\n'
    '  File "{root}/{file}", line {line}, in settle\n    raise Boom()\n'
    "jobs.Boom: payment {line}\n"
)
JAVA = (
    "com.acme.Boom: payment {line}\n\tat com.acme.Jobs.settle({file}:{line})\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:{line})\n"
)
JAVASCRIPT = (
    "Error: payment {line}\n    at async settle ({root}/{file}:{line}:7)\n"
    "    at run ({root}/worker.js:{line}:1)\n"
)
GO = (
    "goroutine {line} [running]:\nmain.settle(0xc000{line})\n\t{root}/{file}:{line} +0x1d\n"
    "main.main()\n\t{root}/main.go:{line}\n"
)
RUBY = "{root}/{file}:{line}:in `settle': payment (Boom)\n\tfrom {root}/main.rb:{line}:in `<main>'\n"
PHP = "#0 {root}/{file}({line}): settle('x')\n#1 {root}/main.php({line}): run()\n#2 {{main}}\n"
DOTNET = (
    "System.Boom: payment {line}\n   at Acme.Jobs.settle(String id) in {root}/{file}:line {line}\n"
    "   at Acme.Program.Main() in {root}/Program.cs:line {line}\n"
)
STACKS = {
    "Python": (PYTHON, "jobs.py", "jobs.py:settle"),
    "Java": (JAVA, "Jobs.java", "Jobs.java:com.acme.Jobs.settle"),
    "JavaScript": (JAVASCRIPT, "jobs.js", "jobs.js:settle"),
    "Go": (GO, "jobs.go", "jobs.go:main.settle"),
    "Ruby": (RUBY, "jobs.rb", "jobs.rb:settle"),
    "PHP": (PHP, "jobs.php", "jobs.php:settle"),
    ".NET": (DOTNET, "Jobs.cs", "Jobs.cs:Acme.Jobs.settle"),
}


@pytest.mark.parametrize("language", STACKS)
@given(
    line=st.integers(1, 99_999),
    root=st.sampled_from(["/srv/v1", "/opt/app 2/x", "C:\\app", "/var/lib/ann/.venv/a"]),
)
def test_the_place_is_the_innermost_frame(language: str, line: int, root: str) -> None:
    """File and function, whatever folder the worker is installed in and wherever a release moved the line."""
    stack, file, wanted = STACKS[language]
    if language == "Ruby":
        root = "/srv/v1"  # a colon or a blank ends a path there
    text = stack.format(root=root, file=file, line=line)
    assert place(text) == wanted
    assert place(text.replace("settle", "refund")) == wanted.replace("settle", "refund")


def test_names_that_a_build_makes_up_go() -> None:
    """A bundle's hash and a lambda's number change with every build."""
    script = "    at settle (https://x/main.{}.js:1:90)"
    assert place(script.format("3f2a1b9c")) == place(script.format("00ffa1b2")) == "main..js:settle"
    java = "\tat com.acme.Jobs.lambda$settle${}(Jobs.java:7)"
    assert place(java.format(0)) == place(java.format(14))
    assert fingerprint("Row_0x7f10", "x") == fingerprint("Row_0x55aa", "x")


def test_a_stack_that_was_cut_keeps_its_place() -> None:
    """The end of a long stack stays, and its last frame too when a megabyte of message stands behind it."""
    for depth, message in ((5, 10), (500, 10), (5, 10**6), (500, 10**6)):
        stack = 'File "/a/b.py", line 7, in recur\n  x()\n' * depth
        stack += f'File "/a/jobs.py", line 9, in settle\n  raise Boom()\nBoom: {"x" * message}\n'
        info = error_info({"type": "Boom", "message": "x", "stack": stack})
        assert info is not None
        assert place(info.stack) == "jobs.py:settle"
        assert len(info.stack.encode()) <= limits.ERROR_BYTES_MAX // 2
        again = error_info({"type": "Boom", "message": "x", "stack": info.stack})
        assert again == info  # a worker cleans it, and the server again


IDS = st.one_of(
    st.uuids().map(str),
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.integers(0, 2**64).map(hex),
    st.binary(min_size=8, max_size=32).map(bytes.hex),
    st.builds(IPv4Address, st.integers(0, 2**32 - 1)).map(str),
    st.datetimes().map(lambda at: at.isoformat()),
    st.integers(0, 10**9).map(lambda n: f"{n:,}"),
    st.text(max_size=40).map(repr),
)
ADDRESSES = st.one_of(
    st.builds(IPv4Address, st.integers(0, 2**32 - 1)).map(str),
    st.builds(IPv6Address, st.integers(0, 2**128 - 1)).map(str),
    st.tuples(st.builds(IPv4Address, st.integers(0, 2**32 - 1)), st.integers(1, 65_535)).map(
        lambda pair: f"{pair[0]}:{pair[1]}"
    ),
    st.from_regex(r"[a-z][a-z0-9.+-]{0,20}@[a-z]{1,9}\.example\.org", fullmatch=True),
)
TEMPLATES = st.sampled_from(
    [
        "{} not found",
        "payment {} of shard {} is late",
        "cannot settle {}",
        "no rate for key={}",
        "Lost ({}): retry",
    ]
)


def _filled(template: str, values: list[str]) -> str:
    return template.format(*values)


@given(TEMPLATES, st.lists(IDS, min_size=2, max_size=2), st.lists(IDS, min_size=2, max_size=2))
def test_no_id_changes_the_words(template: str, one: list[str], other: list[str]) -> None:
    """Whatever ids two failures name, their words have no digit, and are those of their template."""
    told = {words(_filled(template, values)) for values in (one, other)}
    for said in told:
        assert not any(c.isdigit() for c in said), said
    tokens = {said.replace("<address>", "<n>").replace("<text>", "<n>") for said in told}
    assert len(tokens) == 1, tokens


@given(ADDRESSES, ADDRESSES)
def test_no_address_changes_the_fingerprint(one: str, other: str) -> None:
    """IPv4, IPv6, with ports, and e-mail."""
    assert words(f"sent to {one} in vain") == words(f"sent to {other} in vain") == "sent to <address> in vain"


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=300))
def test_it_depends_on_nothing_else(kind: str, message: str, stack: str) -> None:
    """The same text gives the same value, and cleaning it once more changes nothing."""
    info = error_info({"type": kind, "message": message, "stack": stack})
    assert info is not None
    again = error_info({"type": info.type, "message": info.message, "stack": info.stack})
    assert again is not None
    assert info.fingerprint == again.fingerprint == fingerprint(info.type, info.message, info.stack)


def test_so_much_of_a_message_counts() -> None:
    """Its first FINGERPRINTED_CHARS_MAX characters; what stands behind them makes no other group."""
    room = limits.FINGERPRINTED_CHARS_MAX
    filler = "no " * room
    for size, counts in ((room - 1, True), (room, True), (room + 1, False)):
        one, other = (filler[: size - 1] + last for last in "xy")
        assert (fingerprint("E", one) != fingerprint("E", other)) is counts
        assert len(one) == size


HOSTILE = (
    "x", "1a", "'", "a-", "a.", "a@", "/a", "1,", "1,111", "::", "a:", "1 ", "<n>", "\\", "'\\", '"\\',
    "http ", "error ", "code'",
    "jan 1 ", "http://", " ", "+", "-1", "1.1.", "code: a", "errorcode", 'File "', "at a(",
    "at a (b:1:", "#1 a(1): ", "a(b)\n\t", "a:1:in '", "\n",
)  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear_on_hostile_text(piece: str) -> None:
    """A nack computes it in the writer's process: no text may cost more than some milliseconds."""
    text = piece * (1 + limits.ERROR_BYTES_MAX // len(piece))
    best = min(_seconds(text) for _ in range(3))
    assert best < 0.05, f"{best:.3f} s for {piece!r}"


def _seconds(text: str) -> float:
    began = time.perf_counter()
    fingerprint(text[:200], text[: limits.ERROR_BYTES_MAX], text[: limits.ERROR_BYTES_MAX])
    return time.perf_counter() - began


#: Stored records and policies carry these values: whoever changes one splits every group in two.
PINNED = {
    "a plain text": ("Error", "no such payment 7", "", "6d8356af731906b6"),
    "psycopg": (
        "UniqueViolation", 'duplicate key value violates unique constraint "p"\nDETAIL: x', "",
        "c6b48922f47e107a",
    ),
    "HTTP": (
        "HTTPError", "503 Server Error: Service Unavailable for url: https://x/7", "", "fe05760a3c26839d",
    ),
    "Python": (
        "Boom", "payment 7 of shard 3", 'File "/srv/v1/jobs.py", line 7, in settle\n  raise Boom()\n',
        "23ca23dd2287e139",
    ),
    "Java": (
        "com.acme.Boom", "payment 7",
        "com.acme.Boom: payment 7\n\tat com.acme.Jobs.settle(Jobs.java:7)\n", "a73864bcfd04ac78",
    ),
    "a lease that ran out": ("lease_expired", "", "", "f6535d2f7068c9d1"),
    "a budget that was spent without an error": ("max_attempts", "", "", "0e391b0467596407"),
}  # fmt: skip


@pytest.mark.parametrize("name", PINNED)
def test_the_values_stay(name: str) -> None:
    """The same failure has the same fingerprint in the next version."""
    kind, message, stack, value = PINNED[name]
    assert fingerprint(kind, message, stack) == value
