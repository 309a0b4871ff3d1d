"""Runnable examples by language, written from a capability's example request."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from redrive.contract.capability import Capability


def placed(capability: Capability) -> tuple[str, dict[str, Any]]:
    """The example's target (path and query) and its body, which is empty for GET and DELETE."""
    left = dict(capability.example)
    pieces = [
        quote(str(left.pop(piece[1:-1])), safe="") if piece.startswith("{") else piece
        for piece in capability.path.split("/")
    ]
    path = "/".join(pieces)
    if capability.method != "POST":
        return (f"{path}?{urlencode(left)}" if left else path), {}
    return path, left


def snippets(capability: Capability) -> dict[str, str]:
    """``curl``, ``python``, ``javascript`` and ``go``; they read REDRIVE_URL and REDRIVE_API_KEY."""
    target, body = placed(capability)
    text = json.dumps(body, separators=(",", ":")) if capability.method == "POST" else ""
    return {
        "curl": _curl(capability.method, target, text),
        "python": _python(capability.method, target, text),
        "javascript": _javascript(capability.method, target, text),
        "go": _go(capability.method, target, text),
    }


def _curl(method: str, target: str, text: str) -> str:
    quoted = text.replace("'", "'\\''")
    data = f" \\\n  -H 'Content-Type: application/json' -d '{quoted}'" if text else ""
    return f'curl -sS -X {method} "$REDRIVE_URL{target}" -H "Authorization: Bearer $REDRIVE_API_KEY"{data}'


def _python(method: str, target: str, text: str) -> str:
    data = f", data={text.encode()!r}" if text else ""
    return (
        "import json, os, urllib.request\n"
        f'request = urllib.request.Request(os.environ["REDRIVE_URL"] + {target!r}, method="{method}"{data})\n'
        'request.add_header("Authorization", "Bearer " + os.environ["REDRIVE_API_KEY"])\n'
        'print(json.load(urllib.request.urlopen(request))["data"])'
    )


def _javascript(method: str, target: str, text: str) -> str:
    data = f", body: {json.dumps(text)}" if text else ""
    return (
        f"const answer = await fetch(process.env.REDRIVE_URL + {json.dumps(target)}, {{ method: "
        f'"{method}"{data},\n  headers: {{ Authorization: `Bearer ${{process.env.REDRIVE_API_KEY}}` }} }});\n'
        "console.log((await answer.json()).data);"
    )


def _go(method: str, target: str, text: str) -> str:
    data = f"strings.NewReader({json.dumps(text)})" if text else "nil"
    strings = '\n\t"strings"' if text else ""
    return (
        f'package main\n\nimport (\n\t"io"\n\t"net/http"\n\t"os"{strings}\n)\n\nfunc main() {{\n'
        f'\turl := os.Getenv("REDRIVE_URL") + {json.dumps(target)}\n'
        f'\trequest, _ := http.NewRequest("{method}", url, {data})\n'
        '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("REDRIVE_API_KEY"))\n'
        "\tanswer, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tpanic(err)\n\t}\n"
        "\tdefer answer.Body.Close()\n\tio.Copy(os.Stdout, answer.Body)\n}"
    )
