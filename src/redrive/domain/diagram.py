"""Writes docs/state-machine.md from the transition table: ``python -m redrive.domain.diagram`` prints it."""

from __future__ import annotations

import sys

from redrive.domain.states import TRANSITIONS, Event, State

#: What each state means, in the reader's words.
STATES: dict[State, str] = {
    State.NONE: "not yet published",
    State.AVAILABLE: "at rest in a standard queue, due now or later",
    State.WAITING: "at rest in a FIFO group, as its head or behind it",
    State.LEASED: "held by one worker until its lease ends",
    State.DEAD: "at rest in the dead-letter queue, with an open record of why",
    State.DEAD_LEASED: "held by somebody who consumes the dead-letter queue",
    State.GONE: "removed: finished, or with a tombstone that says why",
}

#: What each event is, and who causes it.
EVENTS: dict[Event, str] = {
    Event.PUBLISH: "a producer stores a message",
    Event.LEASE: "a consumer takes it: attempt and delivery count up, a new receipt handle",
    Event.ACK: "the work is done",
    Event.LATE_ACK: "the work is done, told after the lease ended and before another delivery began",
    Event.EXTEND: "the worker needs longer, up to the queue's hard cap",
    Event.RELEASE: "the worker gives it back unworked; the attempt is given back too, 1,000 times a budget",
    Event.NACK: "the work failed; waits by the backoff, or is dead when the budget is spent",
    Event.REJECT: "the work can never succeed",
    Event.EXPIRE: "the lease ended without a word: the same rule as nack",
    Event.AGE: "retention is over (never while it is leased)",
    Event.REDRIVE: "an operator sends a dead letter back to its source with a fresh budget",
    Event.CANCEL: "an operator wants it gone; of a leased message the cancel waits for the lease to end",
    Event.CORRUPT: "the checksum was wrong when it was to be delivered; it is kept as evidence, never served",
    Event.PURGE: "the queue is emptied or deleted",
}

_INTRODUCTION = (
    "# The life of a message",
    "",
    "Generated from `redrive.domain.states` by `make docs`; do not edit. What is not on this page does not",
    "happen: such an event is refused and changes nothing. The conformance suite drives every engine through",
    "every row, and fails when an engine does anything else.",
    "",
    "A dead letter is a place rather than a state: the message has moved to another queue, and an open",
    "record says why. `dead` and `dead_leased` are the two states in that place.",
    "",
)


def page() -> str:
    """The whole page as Markdown."""
    rows = [(source, event, to) for (source, event), targets in TRANSITIONS.items() for to in targets]
    return "\n".join(
        [
            *_INTRODUCTION,
            "```mermaid",
            "stateDiagram-v2",
            *_edges(rows),
            "```",
            "",
            "## States",
            "",
            "| State | Meaning |",
            "|---|---|",
            *(f"| `{state}` | {STATES[state]} |" for state in State),
            "",
            "## Events",
            "",
            "| Event | Meaning |",
            "|---|---|",
            *(f"| `{event}` | {EVENTS[event]} |" for event in Event),
            "",
            "## Transitions",
            "",
            "| From | Event | To |",
            "|---|---|---|",
            *(f"| `{source}` | `{event}` | `{to}` |" for source, event, to in rows),
            "",
        ]
    )


def _edges(rows: list[tuple[State, Event, State]]) -> list[str]:
    """One arrow for each pair of states, with every event that leads that way."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for source, event, to in rows:
        arrows.setdefault((source, to), []).append(str(event))
    return [
        f"    {_node(source, start=True)} --> {_node(to, start=False)}: {', '.join(events)}"
        for (source, to), events in arrows.items()
    ]


def _node(state: State, *, start: bool) -> str:
    if state in (State.NONE, State.GONE):
        assert start == (state is State.NONE), "nothing leads to none, and nothing leads away from gone"
        return "[*]"
    return str(state)


if __name__ == "__main__":
    sys.stdout.write(page())
