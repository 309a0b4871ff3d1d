"""Producers that publish over REST until they are stopped, and remember what they were told."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from redrive.domain.errors import RedriveError
from redrive.domain.limits import VISIBILITY_SECONDS_DEFAULT
from redrive.transports import Entry, Published
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.port import Unreachable
from redrive.transports.rest import open_rest
from tests.database import wait_for
from tests.system.application import QUEUE, Application, left
from tests.system.servers import KEY, SECONDS

_BATCH = 5
_FINISH_SECONDS = VISIBILITY_SECONDS_DEFAULT + SECONDS  # a lease that nobody heard of must run out first


class Load:
    """Two kinds of producers: ``patient`` ones repeat a batch until it is answered, ``hasty`` ones never do.

    ``acknowledged``: keys answered with success. ``unknown``: sent, and no answer came. ``refused``: answered
    with a refusal that says that nothing was done. ``pace``: seconds between two publishes of a producer;
    ``name`` tells the keys of one load from those of another.
    """

    def __init__(
        self, url: str, *, patient: int = 2, hasty: int = 1, pace: float = 0.01, name: str = ""
    ) -> None:
        self.acknowledged: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        self._url = url
        self._pace = pace
        self._stopped = threading.Event()
        self._pause = threading.Event()  # never set: the pace of a producer
        self._lock = threading.Lock()
        self._threads = [self._thread(self._patient, f"{name}patient-{n}") for n in range(patient)]
        self._threads += [self._thread(self._hasty, f"{name}hasty-{n}") for n in range(hasty)]

    def _thread(self, target: Callable[[str], None], name: str) -> threading.Thread:
        return threading.Thread(target=target, args=(name,), name=name)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def goes_on(self, application: Application, when: str, *, publishes: int = 60, effects: int = 20) -> None:
        """Wait until so many more publishes were acknowledged and so many more effects are there."""
        told, done = len(self.acknowledged) + publishes, application.count() + effects
        wait_for(lambda: len(self.acknowledged) >= told, SECONDS, f"more publishes {when}")
        wait_for(lambda: application.count() >= done, SECONDS, f"more effects {when}")

    def finish(self, client: ContractTransport, application: Application) -> None:
        """Stop, and wait until everything acknowledged has its effect and the queue is empty."""
        self.stop()
        wait_for(lambda: self.acknowledged <= set(application.effects()), _FINISH_SECONDS, "every effect")
        wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")

    def stop(self) -> None:
        """No more publishes; every patient producer has its last answer."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), f"{thread.name} did not end"

    def _patient(self, name: str) -> None:
        client = open_rest(self._url, KEY)
        number = 0
        while not self._stopped.is_set():
            keys = [f"{name}:{number + n}" for n in range(_BATCH)]
            number += _BATCH
            entries = [Entry(payload=1, job_key=key, idempotency_key=key) for key in keys]
            while True:
                try:
                    results = client.publish(QUEUE, entries)
                except (Unreachable, RedriveError):
                    self._pause.wait(0.05)
                    continue
                assert all(isinstance(result, Published) for result in results), results
                break
            with self._lock:
                self.acknowledged.update(keys)
            self._pause.wait(self._pace)
        client.close()

    def _hasty(self, name: str) -> None:
        number = 0
        while not self._stopped.is_set():
            key = f"{name}:{number}"
            number += 1
            kind = self._post({"queue": QUEUE, "payload": 1, "job_key": key})
            with self._lock:
                kind.add(key)
            self._pause.wait(self._pace if kind is self.acknowledged else 0.1)

    def _post(self, body: dict[str, object]) -> set[str]:
        """The set that the answer puts a key into."""
        address = urlsplit(self._url)
        headers = {"Authorization": f"Bearer {KEY}"}
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=SECONDS)
        with contextlib.closing(connection):
            try:
                connection.request("POST", "/v1/queue/publish", json.dumps(body), headers)
                answer = json.loads(connection.getresponse().read())
            except ConnectionRefusedError:
                return self.refused  # no server: nothing was done
            except (OSError, http.client.HTTPException, ValueError):
                return self.unknown
        if answer["ok"]:
            return self.acknowledged
        return self.unknown if answer["error"]["code"] == "INTERNAL" else self.refused

    def verdict(self, effects: Counter[str]) -> dict[str, list[str]]:
        """What must be empty: acknowledged keys without an effect, effects that nobody could expect, and
        keys with more than one."""
        expected = self.acknowledged | self.unknown
        return {
            "lost": sorted(self.acknowledged - set(effects)),
            "unexpected": sorted(set(effects) - expected),
            "doubled": sorted(key for key, times in effects.items() if times > 1),
        }


SOUND: dict[str, list[str]] = {"lost": [], "unexpected": [], "doubled": []}
