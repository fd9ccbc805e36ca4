"""The secret that seals model keys is exchanged on a running deployment, one process after the other, without losing a job."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast.secret import Secret
from holdfast.transport.client.calls import call_by_http
from tests.acceptance.test_credentials import settings_of, statuses
from tests.helpers.databases import postgres_database
from tests.helpers.doors import House, Pipes, until
from tests.helpers.models import ModelServer, model_server
from tests.helpers.valkey import valkey_server

pytestmark = pytest.mark.timeout(300)

TENANT_KEY = "sk-rotation-of-the-sealing-secret"
OLD, NEW = {"2026-01": "the secret of january is long"}, {"2026-02": "the secret of february is longer"}
TTL_SECONDS = 4


class Fleet:
    """Two servers and a worker that share PostgreSQL and Redis; each is restarted with other settings on its own."""

    def __init__(self, folder: Path, models: ModelServer, stack: ExitStack, **environment: str) -> None:
        self._models, self._stack = models, stack
        self.houses = []
        self._running: dict[int, Callable[[], Any]] = {}
        for name in ("first", "second", "worker"):
            (folder / name).mkdir()
            self.houses.append(House(folder / name, **environment))

    def start(self, number: int, keks: dict[str, str]) -> None:
        """Start or restart a server, or the worker, which is the last one, with these secrets."""
        if number in self._running:
            self._running.pop(number)()
        security = {"encryption_keks": keks, "credential_cache_ttl_seconds": TTL_SECONDS}
        settings = settings_of(self._models, "open", index={"workers": 0}, security=security)
        settings["limits"] = {"tenant": {"read_per_minute": 0, "write_per_minute": 0}}
        house = self.houses[number]
        house.settings(json.dumps({"settings": settings}))
        process = ExitStack()
        arguments = ["serve", "--port", "0"] if number < 2 else ["worker"]
        running = process.enter_context(Pipes(arguments, house.env, "/")).process
        if number < 2:
            until("the server is up", lambda: house.facts().get("pid") == running.pid, 90)
        self._running[number] = process.close
        self._stack.callback(process.close)

    def call(self, number: int, tool: str, **arguments: Any) -> bool:
        """Call a tool on a server as the tenant; False when that server does not answer or says no."""
        try:
            result = call_by_http(self.houses[number].url, Secret(TENANT_KEY), tool, arguments)
        except Exception:  # it is being restarted; whatever that looks like, nothing was acknowledged
            return False
        return not result.get("isError")


@pytest.mark.req("SE-41")
def test_the_sealing_secret_is_exchanged_under_load_without_losing_a_job(
    tmp_path: Path, postgres_server_url: str
) -> None:
    acknowledged: list[str] = []
    ended = threading.Event()
    with ExitStack() as stack:
        models = stack.enter_context(model_server())
        models.behave()
        valkey = stack.enter_context(valkey_server())
        database_url = stack.enter_context(postgres_database(postgres_server_url, migrated=False))
        fleet = Fleet(tmp_path, models, stack, DATABASE_URL=database_url, REDIS_URL=valkey.url)
        for number in range(3):
            fleet.start(number, OLD)

        def write() -> None:
            for number in count():
                if ended.is_set():
                    return
                text = f"text number {number} of the load"
                time.sleep(0.05)
                if fleet.call(number % 2, "file_write", project="p", path=f"/{number}", content=text, mode="TRUNCATE"):
                    acknowledged.append(text)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            counts = [len(acknowledged)]
            for keks in (OLD | NEW, NEW):
                for number in (2, 0, 1):
                    fleet.start(number, keks)
                    time.sleep(1)
                counts.append(len(acknowledged))
                time.sleep(TTL_SECONDS)
        finally:
            ended.set()
            writer.join(60)

        def is_done() -> bool:
            fleet.call(0, "file_stat", project="p", path="/0")
            return not statuses(fleet.houses[0])

        until("every job is done", is_done, 90)
        embedded = {text for request in models.requests for text in request.body.get("input", [])}
        assert len(acknowledged) > 50
        assert set(acknowledged) <= embedded
        assert {request.key for request in models.requests} == {TENANT_KEY}
    print(f"written under load: {len(acknowledged)}, at each exchange {counts}; embedded: {len(embedded)}, lost: 0")
