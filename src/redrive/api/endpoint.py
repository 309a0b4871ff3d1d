"""``/v1`` as one ASGI endpoint: the contract's table says what a request is; nothing here knows a route."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from typing import Any

import structlog

from redrive.api.edge import ClientGone, Edge, stopping
from redrive.api.envelope import JSON, Headers, Stamp, data_bytes, error_headers, failure, success
from redrive.api.rates import Rates
from redrive.api.request import Head, Receive, Room, Scope, Send, body_of, query_of, until_gone
from redrive.api.settings import ApiSettings
from redrive.contract.capability import Capability
from redrive.contract.decode import Decoded, decode
from redrive.contract.discovery import discovery, discovery_of
from redrive.contract.idempotency import Idempotency, request_hash
from redrive.contract.routing import resolve
from redrive.contract.shapes import Release, Replayed
from redrive.domain.errors import Internal, MethodNotAllowed, OutcomeUnknown, RedriveError
from redrive.domain.limits import KIB
from redrive.service import Caller, Commit, Read, Service, Work

_LOG = structlog.get_logger("redrive.api")
_DISCOVERY = "/v1/discovery"
_BODY_BYTES_ON_LOOP = 64 * KIB


class Endpoint:
    """Answers everything under ``/v1``. ``stopping`` set to True refuses new work with 503.

    ``answered`` counts answers by (capability id, HTTP status), ``open`` is how many requests are at work.
    """

    def __init__(self, service: Service, settings: ApiSettings) -> None:
        self._service = service
        self._settings = settings
        self._rates = Rates(settings.rate_per_second, settings.rate_burst)
        self._room = Room(settings.bodies_bytes_max)
        self._edge: Edge | None = None
        self.stopping = False
        self.answered: Counter[tuple[str, int]] = Counter()
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        self.open += 1
        try:
            await self._one(scope, receive, send)
        finally:
            self.open -= 1

    async def _one(self, scope: Scope, receive: Receive, send: Send) -> None:
        stamp = Stamp()
        call = _Call(scope, stamp)
        try:
            status, body = 200, await self._answer(call, receive)
            headers: Headers = []
        except ClientGone:
            self.answered[call.capability_id, 499] += 1
            return
        except RedriveError as error:
            status, body, headers = error.http_status, failure(error, stamp), error_headers(error)
            if status in (429, 503) and call.key_id is not None:
                headers = [*headers, *self._rates.headers(call.key_id)]
            if status == 500:
                _LOG.error(
                    "refused", request_id=stamp.request_id, capability=call.capability_id, code=error.code
                )
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            unknown = OutcomeUnknown(
                "the server stopped before the store answered; whether it was done is not known"
            )
            status, body, headers = unknown.http_status, failure(unknown, stamp), []
        except Exception as error:  # noqa: BLE001 - a bug is answered as INTERNAL and logged
            # as text: a logger that is handed the exception may print the frames' variables, keys among them
            _LOG.error(
                "bug",
                request_id=stamp.request_id,
                capability=call.capability_id,
                error=type(error).__name__,
                trace="".join(traceback.format_exception(error)),
            )
            internal = Internal("internal error; the server's log has it under the request id")
            status, body, headers = 500, failure(internal, stamp), []
        self.answered[call.capability_id, status] += 1
        await respond(send, status, body, stamp, headers)

    def stop(self) -> None:
        """Refuse new work and answer what is parked."""
        self.stopping = True
        if self._edge is not None:
            self._edge.stop()

    def close(self) -> None:
        """Stop the threads for reads."""
        if self._edge is not None:
            self._edge.close(self._settings.stop_seconds)

    async def read(self, run: Any) -> Any:
        """Run the blocking ``run`` off the loop."""
        return await self._at_edge().read(run)

    def authenticate(self, scope: Scope) -> Caller:
        """The caller of a request; raises Unauthenticated."""
        return self._service.access.authenticate(Head(scope).secret())

    def _at_edge(self) -> Edge:
        if self._edge is None:
            self._edge = Edge(
                self._service,
                readers=self._settings.readers,
                reads_waiting_max=self._settings.reads_waiting_max,
                reply_seconds=self._settings.reply_seconds,
            )
        return self._edge

    async def _answer(self, call: _Call, receive: Receive) -> bytes:
        scope = call.scope
        raw_path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        if raw_path == _DISCOVERY or raw_path.startswith(_DISCOVERY + "/"):
            return _discover(scope["method"], raw_path)
        capability, params = resolve(scope["method"], raw_path)
        call.capability_id = capability.id
        head = Head(scope)
        caller = self._service.access.authenticate(head.secret())
        call.key_id = caller.key_id
        self._rates.take(caller.key_id)
        if self.stopping:
            raise stopping()
        if capability.scope != "any":
            caller.require(capability.scope)
        with self._room.kept() as kept:
            body = b""
            if capability.method == "POST":
                body = await body_of(head, receive, self._settings.request_bytes_max, kept)
            query = query_of(scope)
            if len(body) <= _BODY_BYTES_ON_LOOP:
                decoded, idempotency = _understood(capability, head, params, query, body)
            else:  # others must not wait while megabytes are read
                decoded, idempotency = await self._at_edge().understand(
                    lambda: _understood(capability, head, params, query, body)
                )
            work = self._service.prepare(
                capability.id, caller.acting_for(head.actor()), decoded.request, idempotency
            )
            answer = await self._do(work, decoded.request, receive, caller)
        cache_hit = isinstance(answer, Replayed)
        data = data_bytes(answer.answer if cache_hit else answer, decoded.request)
        return success(data, call.stamp, cache_hit=cache_hit, ignored_fields=decoded.ignored_fields)

    async def _do(self, work: Work, request: Any, receive: Receive, caller: Caller) -> Any:
        edge = self._at_edge()
        if isinstance(work, Read):
            return await edge.read(work.run)
        if not work.wait_seconds:
            return work.finish(await edge.commit(work.command))
        result = await edge.commit(
            work.command,
            wait_seconds=work.wait_seconds,
            gone=lambda: until_gone(receive),
            orphan=lambda late: self._give_back(work.finish(late), request, caller),
        )
        return work.finish(result)

    def _give_back(self, answer: Any, request: Any, caller: Caller) -> None:
        # leased in the moment in which the client went away: nobody would settle these before they expire
        for message in answer.messages:
            release = Release(
                queue=request.queue, message_id=message.message_id, receipt_handle=message.receipt_handle
            )
            try:
                work = self._service.prepare("queue.release", caller, release, None)
                assert isinstance(work, Commit)
                self._service.committer.submit(work.command, lambda _: None)
            except RedriveError as error:
                _LOG.warning("not given back", message_id=message.message_id, code=error.code)


class _Call:
    """What is known of a request so far, for the answer's headers and the log."""

    __slots__ = ("capability_id", "key_id", "scope", "stamp")

    def __init__(self, scope: Scope, stamp: Stamp) -> None:
        self.scope = scope
        self.stamp = stamp
        self.capability_id = "none"
        self.key_id: str | None = None


async def respond(send: Send, status: int, body: bytes, stamp: Stamp, headers: Headers) -> None:
    """Send a whole JSON answer."""
    fixed: Headers = [
        JSON,
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", stamp.request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": fixed + headers})
    await send({"type": "http.response.body", "body": body})


def _discover(method: str, raw_path: str) -> bytes:
    if method not in ("GET", "HEAD"):
        raise MethodNotAllowed(
            f"method {method[:20]} is not allowed for {raw_path[:200]}",
            hint="Use GET.",
            details={"allow": ["GET"]},
        )
    name = raw_path[len(_DISCOVERY) + 1 :]
    return discovery_of(name) if name else discovery()


def _understood(
    capability: Capability, head: Head, params: dict[str, str], query: dict[str, str], body: bytes
) -> tuple[Decoded, Idempotency | None]:
    decoded = decode(capability, params, query, body, strict=head.strict())
    key = head.idempotency_key() or decoded.request.idempotency_key
    if key is None or not capability.records_key:
        return decoded, None
    return decoded, Idempotency(key, request_hash(body, params), capability.id)
