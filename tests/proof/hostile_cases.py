"""What no client library sends: the cases of ``hostile_bytes``.

``HIDDEN`` is a whole request behind another one, for a reader who takes the first one's end to be elsewhere;
it publishes into a queue that nothing else makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.system.servers import KEY

AUTH = b"host: x\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"
POST = b"POST /v1/queue/publish HTTP/1.1\r\n" + AUTH
GET = b"GET /v1/queue/list HTTP/1.1\r\n" + AUTH
CHUNKED = b"transfer-encoding: chunked\r\n"
BODY = b'{"queue":"plain","payload":1}'
HIDDEN_BODY = b'{"queue":"hidden","payload":1}'
LENGTH = b"content-length: %d\r\n" % len(BODY)
CLOSE = b"connection: close\r\n"
LAST = CLOSE + b"\r\n"


def _post(body: bytes) -> bytes:
    return POST + CLOSE + b"content-length: %d\r\n\r\n" % len(body) + body


def _payload(text: bytes) -> bytes:
    return _post(b'{"queue":"plain","payload":' + text + b"}")


HIDDEN = POST + CLOSE + b"content-length: %d\r\n\r\n" % len(HIDDEN_BODY) + HIDDEN_BODY
BODY_AND_MORE = BODY + HIDDEN
CHUNK_AND_MORE = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n" + HIDDEN


@dataclass(frozen=True)
class Case:
    """``sent``, then ``endless`` while the server takes it; ``also``: what may come besides a 4xx."""

    name: str
    sent: bytes
    also: tuple[int, ...] = ()
    endless: bytes = b""


JSON_CASES = (
    Case("100,000 levels of lists", _payload(b"[" * 100_000 + b"]" * 100_000)),
    Case("100,000 levels of objects", _payload(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)),
    Case("100,000 levels unclosed", _payload(b"[" * 100_000)),
    *(Case(f"{word.decode()} as payload", _payload(word)) for word in (b"NaN", b"Infinity", b"-Infinity")),
    *(Case(f"{word.decode()} as a delay", _post(BODY[:-1] + b',"delay_seconds":' + word + b"}"))
      for word in (b"NaN", b"1e999", b"-1", b"9" * 401, b"%d" % 2**63, b"%d" % 2**64, b"%d" % -(2**63))),
    Case("a key twice", _post(b'{"queue":"plain","queue":"other","payload":1}'), (200,)),
    Case("a key twice in the payload", _payload(b'{"a":1,"a":2}'), (200,)),
    Case("a high surrogate alone", _payload(b'"\\ud800"')),
    Case("a low surrogate alone", _payload(b'"\\udc00"')),
    Case("surrogates the wrong way round", _payload(b'"\\udc00\\ud800"')),
    Case("a surrogate in a key", _payload(b'{"\\ud800":1}')),
    Case("a surrogate as UTF-8", _payload(b'"\xed\xa0\x80"')),
    Case("overlong UTF-8", _payload(b'"\xc0\xaf"')),
    Case("cut UTF-8", _payload(b'"\xf0\x9f\x98"')),
    Case("10 to the 400th", _payload(b"1" + b"0" * 400), (200,)),
    Case("2 to the 63rd", _payload(b"%d" % 2**63), (200,)),
    Case("2 to the 64th", _payload(b"%d" % 2**64), (200,)),
    Case("a million digits", _payload(b"9" * 1_000_000), (200,)),
    Case("NUL in a string", _payload(b'"\\u0000"'), (200,)),
    Case("NUL in a name", _post(b'{"queue":"a\\u0000b","payload":1}')),
    Case("NUL as a byte", _payload(b'"\x00"')),
    Case("NUL before the body", _post(b"\x00" + BODY)),
    Case("a byte order mark", _post(b"\xef\xbb\xbf" + BODY)),
    Case("UTF-16", _post(BODY.decode().encode("utf-16"))),
    Case("two documents", _post(BODY + BODY)),
    Case("a list", _post(b"[" + BODY + b"]")),
    Case("single quotes", _post(BODY.replace(b'"', b"'"))),
    Case("a comment", _post(BODY + b"// the end")),
    Case("a comma at the end", _post(BODY[:-1] + b",}")),
    Case("a key of a megabyte", _post(b'{"' + b"k" * 1_000_000 + b'":1,' + BODY[1:]), (200,)),
    Case("100,000 keys", _post(b"{" + b"".join(b'"k%d":1,' % n for n in range(80_000)) + BODY[1:]), (200,)),
    Case("100,000 entries", POST.replace(b"publish", b"publish_batch")
         + b"content-length: 100013\r\n\r\n" + b'{"messages":[' + b"0," * 49_999 + b"0]}" + b" "),
)  # fmt: skip

FRAMING_CASES = (
    Case("a length and chunks", POST + LENGTH + CHUNKED + b"\r\n" + CHUNK_AND_MORE),
    Case("chunks and a length", POST + CHUNKED + LENGTH + b"\r\n" + CHUNK_AND_MORE),
    Case("two lengths", POST + LENGTH + b"content-length: 0\r\n\r\n" + HIDDEN),
    Case("two lengths the other way", POST + b"content-length: 0\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a list of lengths", POST + b"content-length: 0, 5\r\n\r\n" + HIDDEN),
    Case("a hexadecimal length", POST + b"content-length: 0x1d\r\n\r\n" + BODY_AND_MORE),
    Case("a length with a plus", POST + b"content-length: +29\r\n\r\n" + BODY_AND_MORE),
    Case("a negative length", POST + b"content-length: -1\r\n\r\n" + HIDDEN),
    Case("an empty length", POST + b"content-length: \r\n\r\n" + BODY_AND_MORE),
    Case("a length of 2 to the 64th", POST + b"content-length: 18446744073709551616\r\n\r\n" + HIDDEN),
    Case("a length of 2 to the 63rd", POST + b"content-length: 9223372036854775808\r\n\r\n" + HIDDEN),
    Case("a space before the colon", POST + b"content-length : 29\r\n\r\n" + BODY_AND_MORE),
    Case("a tab before a coding", POST + LENGTH + b"transfer-encoding:\tchunked\r\n\r\n" + CHUNK_AND_MORE),
    Case("an unknown coding", POST + LENGTH + b"transfer-encoding: xchunked\r\n\r\n" + BODY_AND_MORE),
    Case("a coding in capitals", POST + LENGTH + b"TRANSFER-ENCODING: CHUNKED\r\n\r\n" + CHUNK_AND_MORE),
    Case("two codings", POST + CHUNKED + b"transfer-encoding: identity\r\n\r\n" + CHUNK_AND_MORE),
    Case("a coding behind it", POST + b"transfer-encoding: chunked, gzip\r\n\r\n" + CHUNK_AND_MORE),
    Case("a vertical tab", POST + LENGTH + b"transfer-encoding: \x0bchunked\r\n\r\n" + BODY_AND_MORE),
    Case("a folded header", POST + b"x-a: b\r\n content-length: 0\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a folded length", POST + b"content-length:\r\n 29\r\n\r\n" + BODY_AND_MORE),
    Case("bare line feeds", (POST + LENGTH).replace(b"\r\n", b"\n") + b"\n" + BODY_AND_MORE),
    Case("one bare line feed", POST + b"x-a: b\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a bare return", POST + b"x-a: b\rcontent-length: 0\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("NUL in a header", POST + b"x-a: b\x00c\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a header without a colon", POST + b"x-a\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a header without a name", POST + b": b\r\n" + LENGTH + b"\r\n" + BODY_AND_MORE),
    Case("a chunk of no size", POST + CHUNKED + b"\r\n\r\n" + HIDDEN),
    Case("a chunk of letters", POST + CHUNKED + b"\r\nzz\r\n" + HIDDEN),
    Case("a negative chunk", POST + CHUNKED + b"\r\n-1\r\n" + HIDDEN),
    Case("a chunk of 0x", POST + CHUNKED + b"\r\n0x1d\r\n" + BODY + b"\r\n0\r\n\r\n" + HIDDEN),
    Case("a chunk beyond 64 bits", POST + CHUNKED + b"\r\n10000000000000000\r\n" + HIDDEN),
    Case("a chunk of more than it says", POST + CHUNKED + b"\r\n5\r\n" + BODY + b"\r\n0\r\n\r\n" + HIDDEN),
    Case("a chunk ended by a line feed", POST + CHUNKED + b"\r\n1d\n" + BODY + b"\n0\n\n" + HIDDEN),
    Case("a long chunk extension", POST + CLOSE + CHUNKED + b"\r\n1d;" + b"x" * 100_000 + b"\r\n" + BODY
         + b"\r\n0\r\n\r\n", (200,)),
)  # fmt: skip

LINE_CASES = (
    Case("a lower-case method", b"post" + POST[4:] + LENGTH + b"\r\n" + BODY),
    Case("an unknown method", b"BREW" + POST[4:] + LENGTH + b"\r\n" + BODY),
    Case("a method of a megabyte", b"P" * 2**20 + POST[4:]),
    Case("no method", POST[5:] + LENGTH + b"\r\n" + BODY),
    Case("no version", b"POST /v1/queue/publish\r\n" + AUTH + LENGTH + b"\r\n" + BODY),
    Case("HTTP/0.9", b"GET /v1/queue/list\r\n\r\n"),
    Case("HTTP/1.0", GET.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n", (200,)),
    Case("HTTP/1.2", GET.replace(b"HTTP/1.1", b"HTTP/1.2") + LAST, (200,)),
    Case("HTTP/3.0", GET.replace(b"HTTP/1.1", b"HTTP/3.0") + b"\r\n"),
    Case("HTTP/1.10", GET.replace(b"HTTP/1.1", b"HTTP/1.10") + b"\r\n"),
    Case("HTTP/2 by its preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(27)),
    Case("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)),
    Case("SSH", b"SSH-2.0-OpenSSH_9.9\r\n"),
    Case("a database's hello", b"\x00\x00\x00\x08\x04\xd2\x16\x2f"),
    Case("a proxy's header", b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + GET + b"\r\n"),
    Case("an absolute target", GET.replace(b"/v1/", b"http://other/v1/") + LAST, (200,)),
    Case("an authority as target", b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n"),
    Case("an authority with another method", b"GET x:443 HTTP/1.1\r\n" + AUTH + b"\r\n"),
    Case("a star", b"OPTIONS * HTTP/1.1\r\n" + AUTH + LAST),
    Case("an empty target", b"GET  HTTP/1.1\r\n" + AUTH + b"\r\n"),
    Case("a target of a megabyte", b"GET /" + b"a" * 2**20 + b" HTTP/1.1\r\n" + AUTH + b"\r\n"),
    Case("a space in the target", b"GET /v1/queue/get/a b HTTP/1.1\r\n" + AUTH + b"\r\n"),
    Case("raw bytes in the target", b"GET /v1/queue/get/\xff\xfe HTTP/1.1\r\n" + AUTH + b"\r\n"),
    Case("a broken escape", b"GET /v1/queue/get/%zz%f HTTP/1.1\r\n" + AUTH + LAST),
    Case("steps up", b"GET /v1/../../etc/passwd HTTP/1.1\r\n" + AUTH + LAST),
    Case("escaped steps up", b"GET /docs/%2e%2e%2f%2e%2e%2fetc HTTP/1.1\r\n" + AUTH + LAST),
    Case("no host", b"GET /v1/queue/list HTTP/1.1\r\n" + LAST),
    Case("two hosts", GET + b"host: y\r\n" + LAST, (200,)),
    Case("a hundred thousand headers", GET + b"a:b\r\n" * 100_000 + b"\r\n"),
    Case("a header of ten megabytes", GET + b"x-a: " + b"b" * 10 * 2**20 + b"\r\n\r\n"),
    Case("a thousand requests at once", (GET + b"\r\n") * 999 + GET + LAST, (200,)),
    Case("lines before the request", b"\r\n" * 10 + GET + LAST, (200,)),
    Case("a compressed body", POST + b"content-encoding: gzip\r\n" + LENGTH + LAST + BODY),
    Case("an unknown expectation", POST + b"expect: miracles\r\n" + LENGTH + LAST + BODY, (200,)),
    Case("noise", bytes(range(256)) * 16),
)  # fmt: skip

UNENDED_CASES = (
    Case("nothing", b""),
    Case("half a line", b"POST /v1/qu"),
    Case("half a head", POST),
    Case("half a body", POST + LENGTH + b"\r\n" + BODY[:9]),
    Case("no last chunk", POST + CHUNKED + b"\r\n1d\r\n" + BODY + b"\r\n"),
    Case("a promise of a megabyte", POST + b"content-length: 1000000\r\n\r\n" + BODY),
    Case("a head without an end", GET, endless=b"x-a: b\r\n" * 64),
    Case("a header without an end", GET + b"x-a: ", endless=b"b" * 512),
    Case("a target without an end", b"GET /", endless=b"a" * 512),
    Case("chunks without an end", POST + CHUNKED + b"\r\n", endless=b"1\r\n \r\n" * 64),
    Case("trailers without an end", POST + CHUNKED + b"\r\n0\r\n", endless=b"x-a: b\r\n" * 64),
    Case("an extension without an end", POST + CHUNKED + b"\r\n1;", endless=b"x" * 512),
    Case("noise without an end", b"", endless=bytes(range(255, -1, -1)) * 2),
    Case("empty lines without an end", b"", endless=b"\r\n" * 256),
)
ALL = (*JSON_CASES, *FRAMING_CASES, *LINE_CASES, *UNENDED_CASES)
PLAINLY_TWO = Case("two requests", POST + LENGTH + b"\r\n" + BODY_AND_MORE, (200,))
assert len(BODY) == 29  # as some cases write it
