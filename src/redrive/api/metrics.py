"""``/metrics``: the numbers of section 6 for every queue, and what the server answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from redrive.api.retention_metrics import RetentionNumbers
from redrive.contract.shapes import QueueList, QueueStats, QueueStatsGet
from redrive.domain.errors import QueueNotFound
from redrive.domain.limits import LIST_LIMIT_MAX
from redrive.service import Caller, Service

CONTENT_TYPE = CONTENT_TYPE_LATEST
_GAUGES = {
    "ready": "Messages that can be delivered now.",
    "delayed": "Messages that are due later.",
    "leased": "Messages under a lease.",
    "waiting": "Messages behind the head of their group.",
    "dead": "Open dead letters.",
    "oldest_ready_age_seconds": "Age of the oldest eligible message; 0 when none.",
    "oldest_dead_age_seconds": "Age of the oldest open dead letter; 0 when none.",
    "dead_per_minute": "Dead letters a minute.",
    "consumers": "Consumers seen in the last minute.",
    "arrivals_per_minute": "Messages published a minute.",
    "blocked_groups": "Message groups blocked by a dead letter.",
    "paused": "1 when delivery is paused.",
}
_COUNTERS = {
    "published": "Messages published.",
    "acked": "Messages acknowledged.",
    "dead": "Messages that became dead letters.",
    "redriven": "Dead letters sent back.",
    "expired": "Messages whose retention ended.",
    "unfenced_settles": "Settle calls without a receipt handle.",
}


def render(service: Service, answered: Counter[tuple[str, int]], caller: Caller) -> bytes:
    """The exposition text about the queues that ``caller`` may see. Blocking: reads statistics, at most 5 s
    old.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers(list(_statistics(service, caller)), answered, full=service.full() is not None))
    registry.register(RetentionNumbers(service, caller))
    return generate_latest(registry)


def _statistics(service: Service, caller: Caller) -> Iterator[QueueStats]:
    cursor: str | None = None
    while True:
        page = service.call("queue.list", QueueList(limit=LIST_LIMIT_MAX, cursor=cursor), caller=caller)
        for record in page.items:
            try:
                yield service.call("queue.stats", QueueStatsGet(queue=record.name), caller=caller)
            except QueueNotFound:
                continue  # deleted between the two reads
        cursor = page.next_cursor
        if cursor is None:
            return


class _Numbers:
    def __init__(self, queues: list[QueueStats], answered: Counter[tuple[str, int]], *, full: bool) -> None:
        self._queues = queues
        self._answered = answered
        self._full = full

    def collect(self) -> Iterable[Metric]:
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"redrive_queue_{name}", text, labels=["queue"])
            for stats in self._queues:
                gauge.add_metric([stats.queue], float(getattr(stats, name)))
            yield gauge
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"redrive_queue_{name}", text, labels=["queue"])
            for stats in self._queues:
                counter.add_metric([stats.queue], float(getattr(stats, f"{name}_total")))
            yield counter
        yield self._by_attempt("attempts", "Live messages by attempt.")
        yield self._by_attempt("attempts_settled", "Messages settled in the last hour, by attempt.")
        yield self._service_time()
        requests = CounterMetricFamily(
            "redrive_requests", "Answers by capability and status.", labels=["capability", "status"]
        )
        for (capability, status), count in sorted(self._answered.items()):
            requests.add_metric([capability, str(status)], float(count))
        yield requests
        text = "1 when new work is refused for want of room on the disk."
        yield GaugeMetricFamily("redrive_storage_full", text, value=float(self._full))

    def _by_attempt(self, name: str, text: str) -> Metric:
        gauge = GaugeMetricFamily(f"redrive_queue_{name}", text, labels=["queue", "attempt"])
        for stats in self._queues:
            for attempt, count in getattr(stats, name).items():
                gauge.add_metric([stats.queue, attempt], float(count))
        return gauge

    def _service_time(self) -> Metric:
        text = "Lease to ack over the last 5 minutes, milliseconds."
        gauge = GaugeMetricFamily("redrive_queue_service_time_ms", text, labels=["queue", "quantile"])
        for stats in self._queues:
            times = stats.service_time_ms
            for quantile, value in (("0.5", times.p50), ("0.95", times.p95), ("0.99", times.p99)):
                if value is not None:
                    gauge.add_metric([stats.queue, quantile], value)
        return gauge
