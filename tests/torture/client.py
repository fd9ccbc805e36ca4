"""A client process: several lanes, each one call after another, every call written down before and after.

`python -m tests.torture.client CONFIG`, where CONFIG is JSON. It ends at its time, or when it is killed.
"""

import json
import random
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from tests.torture.history import BUSY, NOT_MADE, UNKNOWN, Journal
from tests.torture.model import MUTATIONS
from tests.torture.wire import Broken, Door, NotSent, Stream

FILES = ["/a", "/b", "/d/x", "/d/y", "/e/x"]
DIRECTORIES = ["/d", "/e", "/a"]
ATTEMPTS = 4
HTTP_EVERY = 4
"""One lane in so many speaks HTTP, the others WebSocket."""


@dataclass(frozen=True)
class Config:
    """What a client is told. Projects change every `period` seconds after `start`, on the machine's monotonic clock."""

    name: str
    seed: int
    ports: list[int]
    keys: list[str]
    lanes: int
    width: int
    period: float
    start: float
    until: float
    lock_seconds: float
    log: str


class Lane:
    """One sequence of calls; each goes to a server, a tenant and a project by chance."""

    def __init__(self, config: Config, number: int) -> None:
        self._config = config
        self._name = f"{config.name}.{number}"
        self._choose = random.Random(f"{config.seed}.{self._name}")
        kind = Door if number % HTTP_EVERY == 0 else Stream
        self._doors = [[kind(port, key) for key in config.keys] for port in config.ports]
        self._journal = Journal(f"{config.log}/{self._name}.log")
        self._count = 0

    def run(self) -> None:
        """Make calls until the time is over."""
        while (now := time.monotonic()) < self._config.until:
            epoch = int((now - self._config.start) / self._config.period)
            slot = self._choose.randrange(self._config.width)
            self._call(self._choose.randrange(len(self._config.keys)), f"e{epoch}-{slot}", with_key=slot % 2 == 0)

    def _call(self, tenant: int, project: str, *, with_key: bool) -> None:
        self._count += 1
        number = f"{self._name}.{self._count}"
        tool, args = choose_call(self._choose, f"<{number}>")
        sent = {"project": project, **args}
        if with_key and tool in MUTATIONS:
            sent["idempotency_key"] = number
        self._journal.write("i", number, time.monotonic_ns(), tenant, project, tool, args)
        outcome, value = self._try_call(tenant, tool, sent)
        self._journal.write("r", number, time.monotonic_ns(), outcome, value)

    def _try_call(self, tenant: int, tool: str, sent: dict[str, Any]) -> tuple[str, Any]:
        """Return the outcome; a call with a key whose answer was lost is sometimes made again, which must count once."""
        is_lost = False
        for _ in range(ATTEMPTS):
            door = self._choose.choice(self._doors)[tenant]
            started_at = time.monotonic()
            try:
                outcome, value = describe_result(
                    tool, door.call(tool, sent), time.monotonic() - started_at, self._config.lock_seconds
                )
            except NotSent:
                time.sleep(0.03)
                outcome, value = NOT_MADE, None
            except Broken as error:
                outcome, value = UNKNOWN, str(error)
            if outcome not in (UNKNOWN, NOT_MADE, BUSY):
                return outcome, value
            is_lost = is_lost or outcome == UNKNOWN
            if not is_lost or "idempotency_key" not in sent or self._choose.random() < 0.3:
                break
            time.sleep(self._choose.random() * 0.3)
        return (UNKNOWN, value) if is_lost else (outcome, value)


def describe_result(tool: str, result: dict[str, Any], seconds: float, lock_seconds: float) -> tuple[str, Any]:
    """Return an answer in the model's words; a busy project is a fault when nobody waited for it."""
    data = result["structuredContent"]
    if not result.get("isError"):
        return "ok", _visible_part(tool, data)
    code, message = data["code"], data["message"]
    if code == "RESOURCE_BUSY":
        if "did not answer" in message:
            return UNKNOWN, "database"
        waited = "connection" in message or seconds > lock_seconds * 0.9
        return BUSY, None if waited else f"busy after {seconds:.3f} s: {message}"
    if code in ("INTERNAL", "RATE_LIMITED", "INVALID_ARGUMENT", "PERMISSION_DENIED"):
        return UNKNOWN, f"fault {code} {message}"
    return "error", [code]


def _visible_part(tool: str, data: dict[str, Any]) -> list[Any]:
    if tool == "file_read":
        return [data["content"]]
    if tool == "file_stat":
        return [data["exists"], data["type"], data["size"]]
    if tool == "file_list":
        return [[[entry["path"], entry["type"], entry["size"]] for entry in data["entries"]]]
    return list(data.values())


def choose_call(choose: random.Random, token: str) -> tuple[str, dict[str, Any]]:
    """Return a call; what it writes is found nowhere else."""
    path, dice = choose.choice(FILES), choose.random()
    if dice < 0.30:
        return "file_write", {"path": path, "content": token, "mode": "APPEND"}
    if dice < 0.38:
        return "file_write", {"path": path, "content": token, "mode": "TRUNCATE"}
    if dice < 0.46:
        return "file_write", {"path": path, "content": token, "mode": "OVERWRITE", "offset": choose.randrange(30)}
    if dice < 0.70:
        return "file_read", {"path": path}
    if dice < 0.75:
        return "file_stat", {"path": choose.choice(FILES + DIRECTORIES)}
    if dice < 0.83:
        return "file_list", {"path": choose.choice(["", "", "/d"]), "depth": choose.choice([1, 9])}
    if dice < 0.93:
        names = choose.choice([FILES, FILES, DIRECTORIES])
        return "file_rename", {
            "from_path": choose.choice(names),
            "to_path": choose.choice(names),
            "overwrite": choose.random() < 0.5,
        }
    return "file_delete", {"path": choose.choice(FILES + DIRECTORIES[:1]), "recursive": choose.random() < 0.5}


def main() -> None:
    """Run every lane to its end."""
    config = Config(**json.loads(sys.argv[1]))
    lanes = [threading.Thread(target=Lane(config, number).run) for number in range(config.lanes)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()


if __name__ == "__main__":
    main()
