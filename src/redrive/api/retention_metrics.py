"""The part of ``/metrics`` about the end of dead letters: which end soon, which are gone, and the archive."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from redrive.service import Caller, Service


class RetentionNumbers:
    """Of the sources that ``caller`` may see; counters are this node's since it started."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self._ending = service.retention.ending(caller)
        self._ended = service.retention.ended
        self._caller = caller

    def collect(self) -> Iterator[Metric]:
        """The families."""
        text = "Open dead letters whose retention ends within the warning's time."
        ending = GaugeMetricFamily("redrive_queue_dead_ending", text, labels=["queue"])
        for found in self._ending:
            ending.add_metric([found.queue], float(found.count))
        yield ending
        text = "When the first of these ends, seconds since the epoch."
        first = GaugeMetricFamily("redrive_queue_dead_ending_at_seconds", text, labels=["queue"])
        for found in self._ending:
            first.add_metric([found.queue], found.first_ms / 1000)
        yield first
        text = "Dead letters that retention removed."
        removed = CounterMetricFamily("redrive_queue_dead_removed", text, labels=["queue"])
        for queue, count in sorted(self._ended.removed.copy().items()):
            if self._caller.may_see(queue):
                removed.add_metric([queue], float(count))
        yield removed
        text = "Dead letters written to the archive."
        yield CounterMetricFamily("redrive_dead_letters_archived", text, value=self._ended.archived)
        text = "Tries to write dead letters to the archive that failed; the letters stay."
        yield CounterMetricFamily("redrive_dead_letter_archive_failures", text, value=self._ended.failures)
        text = "1 when dead letters over age stay because they cannot be archived."
        failing = float(self._ended.failing is not None)
        yield GaugeMetricFamily("redrive_dead_letter_archive_failing", text, value=failing)
