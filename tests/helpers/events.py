"""Reads the console's event stream as the page does, in a thread of its own."""

import json
import threading
import time
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from tests.helpers.console import Page


@dataclass(frozen=True)
class StreamedEvent:
    """One event, or a comment with an empty name."""

    name: str
    data: Any = None
    id: str = ""


class EventReader:
    """One open stream; what arrives is collected until the block ends."""

    def __init__(self, page: Page, last_id: str = "") -> None:
        self.events: list[StreamedEvent] = []
        self.has_ended = threading.Event()
        self.status = 0
        self._page = page
        self._headers = {**page.headers, **({"last-event-id": last_id} if last_id else {})}
        self._news = threading.Condition()
        self._client = httpx2.Client(timeout=httpx2.Timeout(30, read=60))
        self._is_open = threading.Event()
        self._response: httpx2.Response | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_open.wait(20)
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()
        self._thread.join(10)

    def wait_for(self, name: str, seconds: float = 15.0, *, count: int = 1) -> StreamedEvent:
        """Return the event of that name, the last of so many."""
        deadline = time.monotonic() + seconds
        with self._news:
            while len(matching := [event for event in self.events if event.name == name]) < count:
                assert self._news.wait(deadline - time.monotonic()), f"no {name} within {seconds} s: {self.events}"
        return matching[-1]

    def collect(self, seconds: float) -> list[StreamedEvent]:
        """Return what has arrived after so long a wait."""
        time.sleep(seconds)
        with self._news:
            return list(self.events)

    def _read(self) -> None:
        try:
            with self._client.stream("GET", f"{self._page.url}/api/events", headers=self._headers) as response:
                self.status = response.status_code
                self._is_open.set()
                lines: list[str] = []
                for line in response.iter_lines():
                    if line:
                        lines.append(line)
                        continue
                    self._add(lines)
                    lines = []
        except (httpx2.HTTPError, RuntimeError):
            pass
        finally:
            self._is_open.set()
            self.has_ended.set()
            with self._news:
                self._news.notify_all()

    def _add(self, lines: list[str]) -> None:
        fields = {name: text for name, _, text in (line.partition(": ") for line in lines if not line.startswith(":"))}
        data = json.loads(fields["data"]) if "data" in fields else None
        with self._news:
            self.events.append(StreamedEvent(fields.get("event", ""), data, fields.get("id", "")))
            self._news.notify_all()
