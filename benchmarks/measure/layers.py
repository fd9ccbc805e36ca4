"""Where the time of a call goes: the same call through the relay, over the socket, in process, and inside the tool.

What lies between two of these is the layer that the longer way adds. Inside the tool the time spent in the jail, in
`fsync` and in the journal is added up as the calls are made.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import floors
from benchmarks.measure.files import Corpus
from benchmarks.measure.pipe import Wire
from benchmarks.measure.servers import Holdfast
from holdfast.adapters.sqlite.state.journal import SqliteJournal
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import Settings
from holdfast.folders.access.jail import Jail
from holdfast.tools.table import TOOLS
from holdfast.transport.client.dial import Client, dial
from holdfast.transport.state_folder import StateFolder
from holdfast.wiring.build import build
from holdfast.wiring.server_parts import ServerParts

Arguments = Callable[[], dict[str, Any]]
PARTS = ("jail", "fsync", "journal")
FLOOR = "floor: bare Python"
LAYERS = ("relay", "socket and protocol", "dispatch and thread", *PARTS, "rest of the tool", "whole call", FLOOR)
ROUNDS = 5


@dataclass(frozen=True)
class Work:
    """One kind of call, with the same work done by bare Python where there is such a thing."""

    what: str
    tool: str
    make: Arguments
    floor: floors.Work | None


def table(corpus: Corpus, state: Path, server: Holdfast, calls: int) -> str:
    """Measure every layer and return the Markdown table."""
    columns = {work.what: _column(work, corpus, state, server, calls) for work in _works(corpus)}
    lines = ["| layer | " + " | ".join(columns) + " |", "|---|" + "--:|" * len(columns)]
    for layer in LAYERS:
        cells = [f"{column[layer] * 1000:.3f}" if layer in column else "" for column in columns.values()]
        lines.append(f"| {layer} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _works(corpus: Corpus) -> list[Work]:
    root = corpus.root
    small, flat, edited, written = (
        root / name for name in ("small.txt", "flat_1000", "layers.txt", "layers_written.txt")
    )
    edited.write_text("x" * 1000 + "\ncounter = 0\n")
    edits, writes = count(), count()

    def edit() -> dict[str, Any]:
        number = next(edits)
        change = {"oldText": f"counter = {number}\n", "newText": f"counter = {number + 1}\n"}
        return {"path": str(edited), "edits": [change]}

    def write() -> dict[str, Any]:
        return {"path": str(written), "content": f"{next(writes)}\n" + "x" * 1000}

    return [
        Work("read 1 KB", "read_text_file", lambda: {"path": str(small)}, floors.read(small)),
        Work("stat", "get_file_info", lambda: {"path": str(small)}, floors.stat(small)),
        Work("write 1 KB", "write_file", write, floors.replace(root / "layers_floor.txt")),
        Work("edit 1 KB", "edit_file", edit, None),
        Work("list 1,000", "list_directory", lambda: {"path": str(flat)}, floors.names(flat)),
    ]


def _column(work: Work, corpus: Corpus, state: Path, server: Holdfast, calls: int) -> dict[str, float]:
    """Measure one kind of call by every way in turn, so that a slow moment of the machine falls on all of them."""
    times: dict[str, list[float]] = {}
    shares: list[dict[str, float]] = []
    tool, make, floor = work.tool, work.make, work.floor
    with ExitStack() as stack:
        pipe = stack.enter_context(server.relay(corpus.root).connect())
        wire = stack.enter_context(_socket(server.state, corpus.root))
        server_parts, caller = stack.enter_context(_inside(state, corpus.root))
        loop = stack.enter_context(asyncio.Runner())
        for number in range(ROUNDS + 1):
            each = max(3, calls // ROUNDS)
            batch = {
                "whole": [pipe.call(tool, make()).seconds for _ in range(each)],
                "direct": [wire.call(tool, make()).seconds for _ in range(each)],
                "dispatched": loop.run(_dispatched(server_parts, caller, tool, make, each)),
            }
            batch["body"], parts = _body(server_parts, caller, tool, make, each)
            if floor is not None:
                batch["floor"] = [floors.timed(floor) for _ in range(each)]
            if number:
                shares += parts
                for way, measured in batch.items():
                    times.setdefault(way, []).extend(measured)
    return _by_layer({way: median(measured) for way, measured in times.items()}, shares)


def _by_layer(ways: dict[str, float], shares: list[dict[str, float]]) -> dict[str, float]:
    parts = {name: median(share[name] for share in shares) for name in PARTS}
    column = {
        "relay": ways["whole"] - ways["direct"],
        "socket and protocol": ways["direct"] - ways["dispatched"],
        "dispatch and thread": ways["dispatched"] - ways["body"],
        **parts,
        "rest of the tool": ways["body"] - sum(parts.values()),
        "whole call": ways["whole"],
    }
    return {**column, FLOOR: ways["floor"]} if "floor" in ways else column


@contextmanager
def _socket(state: Path, root: Path) -> Iterator[Wire]:
    line, _welcome = dial(StateFolder(str(state)), Client("agent", [str(root)], [], "/"))
    with line:
        line.setblocking(True)
        wire = Wire(line.fileno(), line.fileno())
        wire.open()
        yield wire


@contextmanager
def _inside(state: Path, root: Path) -> Iterator[tuple[ServerParts, Caller]]:
    state.mkdir(mode=0o700, exist_ok=True)
    server_parts = build(Settings(), str(state))
    try:
        yield server_parts, Caller(LOCAL_USER, roots=(str(root),))
    finally:
        server_parts.close()


async def _dispatched(server_parts: ServerParts, caller: Caller, tool: str, make: Arguments, calls: int) -> list[float]:
    times = []
    for _ in range(calls):
        arguments = make()
        started_at = time.perf_counter()
        await server_parts.dispatcher.call(caller, tool, arguments)
        times.append(time.perf_counter() - started_at)
    return times


def _body(
    server_parts: ServerParts, caller: Caller, tool: str, make: Arguments, calls: int
) -> tuple[list[float], list[dict[str, float]]]:
    entry = TOOLS.get(tool)
    assert entry is not None
    assert entry.run is not None
    clock = _Clock()
    patched: list[tuple[Any, str, str]] = [(os, "fsync", "fsync"), (os, "fdatasync", "fsync")]
    patched += [(Jail, name, "jail") for name in ("_open", "_walk_to_place")]
    patched += [
        (SqliteJournal, name, "journal") for name, value in vars(SqliteJournal).items() if _is_public(name, value)
    ]
    times, shares = [], []
    with clock.watching(patched):
        for _ in range(calls):
            arguments = entry.arguments.model_validate(make())
            clock.spent = dict.fromkeys(PARTS, 0.0)
            started_at = time.perf_counter()
            entry.run(server_parts.app, Call(caller), arguments)
            times.append(time.perf_counter() - started_at)
            shares.append(clock.spent)
    return times, shares


def _is_public(name: str, value: object) -> bool:
    return callable(value) and not name.startswith("_")


class _Clock:
    """Adds up the time spent in functions, by name; a watched function inside another one is not counted twice."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._is_inside = False

    @contextmanager
    def watching(self, targets: list[tuple[Any, str, str]]) -> Iterator[None]:
        """Replace the functions while the block runs."""
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in targets if hasattr(owner, name)]
        for owner, name, label in targets:
            if hasattr(owner, name):
                setattr(owner, name, self._watched(getattr(owner, name), label))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _watched(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._is_inside:
                return function(*arguments, **options)
            self._is_inside = True
            started_at = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.spent[label] = self.spent.get(label, 0.0) + time.perf_counter() - started_at
                self._is_inside = False

        return timed
