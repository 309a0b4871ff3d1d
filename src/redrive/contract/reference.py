"""Prints ``docs/contract.md``: every command with every answer it may give, from the declaration."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redrive.contract.capabilities import CAPABILITIES
from redrive.contract.capability import EVERYWHERE, Capability
from redrive.contract.limits_table import LIMITS, limits_of
from redrive.contract.schemas import params_schema
from redrive.contract.snippets import placed
from redrive.domain import errors
from redrive.domain.errors import ERRORS

_PREFACE = Path(__file__).with_name("reference_preface.md")
_SECTIONS = {
    "Queues": ("queue.create", "queue.message"),
    "Messages": ("queue.publish", "queue.cancel"),
    "Dead letters": ("queue.dlq.list", "queue.dlq.redrive"),
    "Redrive plans": ("redrive.plan.create", "redrive.estimate"),
    "Lineage": ("redrive.message", "redrive.job"),
    "Keys, audit, backup": ("account.keys.create", "admin.backup"),
}


def reference() -> str:
    """The whole page."""
    parts = [_PREFACE.read_text(encoding="utf-8").rstrip(), _errors(), _limits()]
    ids = [capability.id for capability in CAPABILITIES]
    for title, (first, last) in _SECTIONS.items():
        parts.append(f"## {title}")
        parts.extend(map(_command, CAPABILITIES[ids.index(first) : ids.index(last) + 1]))
    return "\n\n".join(parts) + "\n"


def _errors() -> str:
    rows = ["## Errors", "", "| Code | Status | Retry helps | Meaning |", "|---|---|---|---|"]
    for error in sorted(ERRORS.values(), key=lambda error: (error.http_status, error.code)):
        retry = "yes" if error.retryable else "no"
        rows.append(f"| `{error.code}` | {error.http_status} | {retry} | {_sentence(error)} |")
    return "\n".join(rows)


def _limits() -> str:
    rows = ["## Limits", "", "Units are the last word of a name.", "", "| Limit | Value |", "|---|---|"]
    rows += [f"| `{name}` | {value:,} |" for name, value in LIMITS.items()]
    return "\n".join(rows)


def _command(capability: Capability) -> str:
    target, body = placed(capability)
    lines = [f"### {capability.id}", "", f"    {capability.method} {capability.path}"]
    lines += [f"    {method} {path}" for method, path in capability.aliases]
    lines += ["", f"{capability.summary} {_scope(capability)} {_repeats(capability)}", ""]
    lines += list(_fields(capability))
    lines += [f"Example: `{capability.method} {target}`" + (" with" if body else ""), ""]
    if body:
        lines += ["```json", json.dumps(body, ensure_ascii=False), "```", ""]
    lines += ["Answers:", "", "- `200`, with `data` like", "", "  ```json"]
    lines += [f"  {json.dumps(capability.answer_example, ensure_ascii=False)}", "  ```", ""]
    own = [error for error in capability.all_errors if error not in EVERYWHERE]
    lines += [f"- `{error.http_status} {error.code}`: {_sentence(error)}" for error in own]
    shared = [error for error in capability.all_errors if error in EVERYWHERE]
    lines += [
        "- as every command: " + ", ".join(f"`{error.http_status} {error.code}`" for error in shared) + "."
    ]
    return "\n".join(lines)


def _scope(capability: Capability) -> str:
    if capability.scope == "any":
        return "Any valid key; a queue outside of its patterns is 404."
    return f"Needs scope `{capability.scope}`."


def _repeats(capability: Capability) -> str:
    if capability.records_key:
        return "Repeating it under the same idempotency key does nothing more and answers the same."
    return "Repeating it does nothing more." if capability.idempotent else "A repetition is a new call."


def _fields(capability: Capability) -> Iterator[str]:
    schema = params_schema(capability)
    required = schema.get("required", [])
    bounds = limits_of(capability)
    named = {name: value for name, value in schema.get("properties", {}).items() if name != "idempotency_key"}
    if not named:
        return
    yield "| Field | Type | Bounds | |"
    yield "|---|---|---|---|"
    for name, value in named.items():
        mark = f"**`{name}`**" if name in required else f"`{name}`"
        yield f"| {mark} | {_type(value)} | {_bounds(bounds.get(name, {}))} | {_described(value)} |"
    yield ""


def _type(value: dict[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if "anyOf" in value:
        kinds = [_type(part) for part in value["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in value:
        return "object"
    return str(value.get("type", "any JSON" if "description" not in value else ""))


def _bounds(row: dict[str, Any]) -> str:
    low, high = row.get("minimum", row.get("min_length")), row.get("maximum", row.get("max_length"))
    if low is None and high is None:
        return ""
    unit = " long" if "max_length" in row or "min_length" in row else ""
    return f"{_number(low)} … {_number(high)}".strip() + unit


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{int(value):,}" if value == int(value) else f"{value:.4g}"


def _described(value: dict[str, Any]) -> str:
    parts = [value, *value.get("anyOf", [])]
    text = next((str(part["description"]) for part in parts if "description" in part), "")
    return text.replace("|", "\\|")


def _sentence(error: type[errors.RedriveError]) -> str:
    return " ".join((error.__doc__ or "").split())


if __name__ == "__main__":
    sys.stdout.write(reference())
