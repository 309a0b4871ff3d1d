"""What holds for every expression, zone and time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.domain.cron import Due, Expression, Gap, Overlap, due_between, latest_due, next_due, parse
from redrive.domain.errors import InvalidRequest
from tests.domain.cron.test_due import ZONES


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """A field: a star, a step, a number, a range, a list."""
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, min(30, high - low)).map(lambda n: f"*/{n}")
    numbers = st.lists(number, min_size=1, max_size=4).map(lambda found: ",".join(map(str, found)))
    return st.one_of(st.just("*"), step, span, numbers)


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    """An expression that fires often enough to be looked at."""
    parts = [
        draw(field(0, 59)),
        draw(field(0, 23)),
        draw(field(1, 28)),
        draw(field(1, 12)),
        draw(field(0, 7)),
    ]
    return parse(" ".join(parts))


TIMES = st.integers(1_767_225_600_000, 1_830_297_600_000)  # 2026 and 2027
CASES = {
    "expression": expressions(),
    "zone": st.sampled_from([*ZONES, "UTC"]),
    "after": TIMES,
    "gap": st.sampled_from(["run_after", "skip"]),
    "overlap": st.sampled_from(["once", "twice"]),
}


@settings(max_examples=150, deadline=None)
@given(**CASES)
def test_each_due_time_once_and_in_order(
    expression: Expression, zone: str, after: int, gap: Gap, overlap: Overlap
) -> None:
    """Due times come strictly after the time asked about, each once, in order; asking again from each one
    gives the same row as asking once; and the last of them are those that are found from the end."""
    dues = list(due_between(expression, zone, after, after + 10**11, gap=gap, overlap=overlap, limit=40))
    assert all(due.at_ms > after for due in dues[:1])
    assert all(a.at_ms < b.at_ms for a, b in pairwise(dues))
    stepped: list[Due] = []
    at = after
    while len(stepped) < len(dues):
        found = next_due(expression, zone, at, gap=gap, overlap=overlap)
        assert found is not None
        stepped.append(found)
        at = found.at_ms
    assert stepped == dues
    if dues:
        end = dues[-1].at_ms
        last = latest_due(expression, zone, after, end, gap=gap, overlap=overlap, limit=7)
        assert last == dues[-7:]
        assert not list(due_between(expression, zone, end, end, limit=1))


@settings(max_examples=150, deadline=None)
@given(**CASES, cut=st.integers(0, 10**9))
def test_a_look_that_is_cut_in_two_sees_the_same(
    expression: Expression, zone: str, after: int, gap: Gap, overlap: Overlap, cut: int
) -> None:
    """Wherever a loop stops and goes on, nothing is lost and nothing comes twice."""

    def look(since: int, until: int) -> list[int]:
        dues = due_between(expression, zone, since, until, gap=gap, overlap=overlap, limit=50_000)
        return [due.at_ms for due in dues]

    until = after + 3 * 86_400_000
    middle = min(after + cut, until)
    assert look(after, middle) + look(middle, until) == look(after, until)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/,-LW#?@HMONSUJAN \t", max_size=30))
def test_any_text_is_an_expression_or_a_refusal(text: str) -> None:
    """Nothing but a refusal that says why escapes, and what is taken fires."""
    refusal = None
    try:
        expression = parse(text)
    except InvalidRequest as raised:
        refusal = raised
    if refusal is None:
        assert next_due(expression, "UTC", 0) is not None
    else:
        assert refusal.message.startswith("cron_expr")
        assert refusal.hint
