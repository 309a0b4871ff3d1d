"""What is not ``/v1``: health, metrics, OpenAPI and a page that shows the contract, without scripts."""

from __future__ import annotations

import html
import json
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from redrive.api.endpoint import Endpoint
from redrive.api.envelope import Stamp, error_headers, failure
from redrive.api.metrics import CONTENT_TYPE, render
from redrive.contract.capabilities import CAPABILITIES
from redrive.contract.capability import Capability
from redrive.contract.limits_table import limits_of
from redrive.contract.openapi import openapi
from redrive.contract.schemas import params_schema
from redrive.contract.snippets import snippets
from redrive.domain.errors import MethodNotAllowed, NotFound, RedriveError
from redrive.service import Service

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430}"
    "code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f3f5f8;padding:.8rem;overflow:auto}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #d8dee8;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}section{margin:2.5rem 0}b.m{color:#0b5cad}"
    "@media(prefers-color-scheme:dark){body{background:#12161d;color:#dfe5ee}pre{background:#1d2430}"
    "b.m{color:#7db8f5}td,th{border-color:#333d4c}a{color:#7db8f5}}"
)
_SAFE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def pages(service: Service, endpoint: Endpoint, *, metrics_public: bool) -> Starlette:
    """The application beside ``/v1``."""

    async def healthz(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def readyz(_: Request) -> Response:
        why = "stopping" if endpoint.stopping else service.ready()
        full = None if why else service.full()
        state = why or (f"ready for all but new work: {full}" if full else "ready")
        return Response(f"{state}\n", 503 if why else 200, media_type="text/plain")

    async def metrics(request: Request) -> Response:
        caller = service.access.system
        if not metrics_public:
            caller = endpoint.authenticate(request.scope)
            caller.require("metrics")
        text = await endpoint.read(lambda: render(service, endpoint.answered, caller))
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def document(_: Request) -> Response:
        return Response(openapi(), media_type="application/json")

    async def docs(_: Request) -> Response:
        return Response(docs_page(), media_type="text/html", headers=_SAFE)

    async def root(_: Request) -> Response:
        return RedirectResponse("/docs", 307)

    return Starlette(
        routes=[
            Route("/", root),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/openapi.json", document),
            Route("/docs", docs),
        ],
        exception_handlers={
            RedriveError: _refused,
            404: _missing,
            405: _wrong_method,
        },
    )


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RedriveError)
    stamp = Stamp()
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    headers["x-request-id"] = stamp.request_id
    body = failure(error, stamp)
    return Response(body, error.http_status, headers, media_type="application/json")


async def _missing(request: Request, _: Exception) -> Response:
    path = request.url.path[:200]
    return await _refused(request, NotFound(f"path {path!r} not found", hint="GET /v1/discovery."))


async def _wrong_method(request: Request, _: Exception) -> Response:
    message = f"method {request.method[:20]} is not allowed for {request.url.path[:200]}"
    error = MethodNotAllowed(message, hint="Use GET.", details={"allow": ["GET", "HEAD"]})
    return await _refused(request, error)


@cache
def docs_page() -> bytes:
    """The contract as one HTML page."""
    index = "".join(
        f'<tr><td><b class="m">{c.method}</b></td><td><a href="#{c.id}"><code>{html.escape(c.path)}</code>'
        f"</a></td><td>{html.escape(c.summary)}</td></tr>"
        for c in CAPABILITIES
    )
    sections = "".join(_section(capability) for capability in CAPABILITIES)
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Redrive: the contract</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        "<h1>Redrive: the contract, version 1</h1><p>Every route needs "
        "<code>Authorization: Bearer &lt;key&gt;</code>. Machine-readable: "
        f'<a href="/v1/discovery">discovery</a>, <a href="/openapi.json">OpenAPI</a>.</p>'
        f"<table>{index}</table>{sections}</body></html>"
    )
    return text.encode()


def _section(capability: Capability) -> str:
    schema = params_schema(capability)
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{html.escape(name)}</code>{' (required)' if name in required else ''}</td>"
        f"<td>{html.escape(_described(value))}</td>"
        f"<td>{html.escape(_bounds(limits_of(capability).get(name, {})))}</td></tr>"
        for name, value in schema.get("properties", {}).items()
        if name != "idempotency_key"
    )
    errors = ", ".join(f"{error.http_status} <code>{error.code}</code>" for error in capability.all_errors)
    aliases = "".join(f"<br>also <code>{m} {html.escape(p)}</code>" for m, p in capability.aliases)
    return (
        f'<section id="{capability.id}"><h2>{capability.id}</h2><p><b class="m">{capability.method}</b> '
        f"<code>{html.escape(capability.path)}</code>{aliases}</p><p>{html.escape(capability.summary)} "
        f"Scope: <code>{capability.scope}</code>.</p><table>{rows}</table><p>Errors: {errors}</p>"
        f"<pre>{html.escape(snippets(capability)['curl'])}</pre>"
        f"<pre>{html.escape(json.dumps(capability.answer_example, indent=1))}</pre></section>"
    )


def _described(value: dict[str, Any]) -> str:
    parts = [value, *value.get("anyOf", [])]
    return next((str(part["description"]) for part in parts if "description" in part), "")


def _bounds(row: dict[str, Any]) -> str:
    low, high = row.get("minimum", row.get("min_length")), row.get("maximum", row.get("max_length"))
    if low is None and high is None:
        return ""
    return f"{'' if low is None else f'{low} '}… {'' if high is None else high}".strip()
