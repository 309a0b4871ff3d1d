"""The provider over HTTP, on the standard library's threading server.

Routes: ``GET /v1/balance_transactions``, ``POST /v1/payouts`` with ``Stripe-Account``; and for the demo
``GET /_control/counts``, ``POST /_control/outage`` {"on"}, ``POST /_control/faults`` (a plan).
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from redrive import seams
from redrive.arena.provider.book import Books, Refusal
from redrive.arena.provider.faults import FaultPlan, Faults

BODY_BYTES_MAX: Final = 64 * 1024
READ_SECONDS: Final = 10
_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"


class ProviderServer(ThreadingHTTPServer):
    """Serves ``books`` on loopback; ``port`` 0 takes a free one. Use ``address`` and ``stop()``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, books: Books, faults: Faults, port: int = 0) -> None:
        self.books = books
        self.faults = faults
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        """Stop serving, also for answers that are being held back."""
        self.stopping.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ProviderServer
    protocol_version = "HTTP/1.1"
    timeout = READ_SECONDS
    wbufsize = -1  # one write an answer: head and body in two would wait for a delayed acknowledgement
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def log_request(self, *_: Any) -> None:
        """Nothing: calls are counted, not logged."""

    def log_error(self, *_: Any) -> None:
        """Nothing: a client that hangs up is one of the faults."""

    def _serve(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        try:
            body = self._body()
            if parts.path.startswith("/_control/"):
                self._answer(200, self._control(method, parts.path, body))
            else:
                self._api(method, parts.path, query, body)
        except Refusal as refusal:
            self._answer(refusal.status, {"error": {"type": refusal.kind, "message": refusal.message}})

    def _api(self, method: str, path: str, query: dict[str, str], body: bytes) -> None:
        account = self.headers.get("Stripe-Account", "")
        key = self.headers.get("Idempotency-Key", "")
        number = self.server.books.count(account, f"{method} {path}", key)
        fault = self.server.faults.judge(account, method, number)
        if fault in ("rate_limited", "server_error", "outage", "html"):
            self._fail(fault)
            return
        replayed = False
        if (method, path) == ("GET", "/v1/balance_transactions"):
            answer = self.server.books.page(account, query)
        elif (method, path) == ("POST", "/v1/payouts"):
            form = dict(parse_qsl(body.decode("utf-8", "replace")))
            answer, replayed = self.server.books.pay_out(account, form, key)
        else:
            raise Refusal(404, "invalid_request_error", f"Unrecognized request URL ({method}: {path[:80]})")
        # A time-out is the worst kind: the effect has happened, only the answer never comes.
        plan = self.server.faults.plan
        if fault == "timeout":
            seams.wait(self.server.stopping, plan.timeout_seconds)
            self.close_connection = True
            return
        if fault == "slow":
            seams.wait(self.server.stopping, plan.slow_seconds)
        self._answer(200, answer, {"Idempotent-Replayed": "true"} if replayed else {})

    def _fail(self, fault: str) -> None:
        if fault == "rate_limited":
            error = {"error": {"type": "rate_limit_error", "message": "Too many requests"}}
            self._answer(429, error, {"Retry-After": str(self.server.faults.plan.retry_after_seconds)})
        elif fault == "html":
            self._send(200, "text/html", _PAGE, {})
        else:
            status = 503 if fault == "outage" else 500
            self._answer(status, {"error": {"type": "api_error", "message": "Try again later"}})

    def _control(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        if (method, path) == ("GET", "/_control/counts"):
            return {
                "calls": self.server.books.counts(),
                "faults": self.server.faults.met(),
                "payouts": self.server.books.payouts(),
            }
        try:
            order = json.loads(body or b"{}")
            if (method, path) == ("POST", "/_control/outage"):
                self.server.faults.outage(bool(order["on"]))
                return {"outage": bool(order["on"])}
            if (method, path) == ("POST", "/_control/faults"):
                self.server.faults.replace(FaultPlan.from_wire(order))
                return {"faults": "replaced"}
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise Refusal(400, "invalid_request_error", f"the control call is malformed: {problem}") from None
        raise Refusal(404, "invalid_request_error", f"no control route {method} {path[:80]}")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            raise Refusal(413, "invalid_request_error", f"a body has at most {BODY_BYTES_MAX} bytes")
        return self.rfile.read(int(length))

    def _answer(self, status: int, answer: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(answer).encode(), headers or {})

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
