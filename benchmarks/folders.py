"""Measure the folder tools against the reference server and other peers, side by side in one run.

    python benchmarks/folders.py [--quick] [--rounds N] [--peers] [--json FILE]

Every server gets the same calls from the same client, in rounds that alternate between them, so that a busy machine
slows both. It prints Markdown: one table of comparisons with their bars, one of where the time of a call goes.
"""

import argparse
import compileall
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import floors, grep, layers, process
from benchmarks.measure.files import COMMON_WORD, RARE_WORD, Corpus, grow
from benchmarks.measure.peers import Peer, install
from benchmarks.measure.pipe import Pipe, Timed
from benchmarks.measure.servers import TOP, Holdfast, Server, node, reference, reference_version
from benchmarks.measure.table import Row, Sample, markdown, milliseconds, size_text, timed_row

WHOLE = {"folders": {"max_answer_tokens": 4_000_000}}
"""Settings under which nothing that is measured here is cut."""

Arguments = Callable[[str], dict[str, Any]]


@dataclass
class Side:
    """A connected server with what was measured on it."""

    name: str
    pipe: Pipe
    pids: list[int]
    times: dict[str, list[float]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    def measure(self, case: "Case", count: int) -> None:
        """Call once to warm up, then `count` times by the clock."""
        self._checked(self.pipe.call(case.tool, case.arguments(self.name)))
        before = self._cpu()
        answers = [self.pipe.call(case.tool, case.arguments(self.name)) for _ in range(count)]
        spent = (self._cpu() - before) / count / 1e9
        self.cpu[case.what] = min(spent, self.cpu.get(case.what, spent))
        self.times.setdefault(case.what, []).extend(answer.seconds for answer in answers)
        self.sizes[case.what] = self._checked(answers[-1]).size

    def sample(self, what: str) -> Sample:
        """Return the measurements of a case."""
        return Sample(self.times[what], self.sizes[what])

    def _cpu(self) -> int:
        return sum(process.cpu_ns(pid) for pid in self.pids)

    @staticmethod
    def _checked(answer: Timed) -> Timed:
        answer.text()
        return answer


@dataclass(frozen=True)
class Case:
    """One call that both servers answer. `whole` asks ours with a budget that cuts nothing."""

    what: str
    tool: str
    arguments: Arguments
    calls: int
    bar: float | None = None
    whole: bool = False
    bytes_bar: float | None = None
    floor: floors.Work | None = None


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        run = Run(folder, options.rounds, quick=options.quick)
        stack.callback(run.stop)
        rows = run.all(with_peers=options.peers)
        print(f"{_machine()}\n\n{markdown(rows)}\n")
        print("\n".join(run.notes))
        profile = run.profile()
        print(f"\nWhere the time of a call goes, in milliseconds (medians):\n\n{profile}")
        if options.json:
            facts = {"machine": _machine(), "rows": [{**asdict(row), "met": row.is_met} for row in rows]}
            Path(options.json).write_text(json.dumps(facts, indent=1))


class Run:
    """One run over one corpus."""

    def __init__(self, folder: Path, rounds: int, *, quick: bool) -> None:
        self.folder, self.rounds, self.quick = folder, rounds, quick
        directories, flat = (20, (1_000,)) if quick else (200, (1_000, 10_000))
        self.corpus = grow(folder / "corpus", directories, 100, flat)
        for name in ("holdfast", "whole", "reference"):
            shutil.copy(self.corpus.root / "edit.txt", self.corpus.root / f"edit_{name}.txt")
        self.plain = Holdfast(folder / "state")
        self.roomy = Holdfast(folder / "state_whole", WHOLE)
        self.reference = reference(self.corpus.root)
        self.notes: list[str] = []
        if quick:
            self.notes.append("Quick run: the bars are for 20,000 files and hold nothing here.")
        compileall.compile_dir(TOP / "src", quiet=2)  # an installed package has its bytecode
        self.sides: list[Side] = []

    def stop(self) -> None:
        """End both background servers."""
        self.plain.stop()
        self.roomy.stop()

    def all(self, *, with_peers: bool) -> list[Row]:
        """Measure everything and return the rows."""
        rows = self._starts()
        with self.plain.relay(self.corpus.root).connect() as ours, self.reference.connect() as theirs:
            with self.roomy.relay(self.corpus.root, "whole").connect() as whole:
                self.sides = [
                    Side("holdfast", ours, [self.plain.server_pid(), ours.pid]),
                    Side("whole", whole, [self.roomy.server_pid(), whole.pid]),
                    Side("reference", theirs, [theirs.pid]),
                ]
                rows += self._memory(ours, theirs)
                rows += self._listed(ours, theirs)
                rows += self._calls()
            rows += self._greps(ours, with_peers)
        return rows

    def profile(self) -> str:
        """Return the table of where the time of a call goes."""
        return layers.table(self.corpus, self.folder / "state_layers", self.plain, 30 if self.quick else 200)

    def _starts(self) -> list[Row]:
        warm, other, cold = [], [], []
        relay = self.plain.relay(self.corpus.root)
        for _ in range(2 if self.quick else 4):
            self.plain.stop()
            cold.append(_start(relay))
        for _ in range(self.rounds * 3):
            warm.append(_start(relay))
            other.append(_start(self.reference))
        return [
            timed_row("start → tools/list, server running", Sample(warm), Sample(other), 0.25),
            timed_row("start → tools/list, no server yet", Sample(cold), Sample(other)),
        ]

    def _memory(self, ours: Pipe, theirs: Pipe) -> list[Row]:
        rows = []
        other = f"{process.rss_mb(theirs.pid):.1f} MB (PSS {process.pss_mb(theirs.pid):.1f} MB)"
        for what, pid, bar in (("idle server, RSS", self.plain.server_pid(), 120.0), ("relay, RSS", ours.pid, 15.0)):
            used = process.rss_mb(pid)
            text = f"{used:.1f} MB (PSS {process.pss_mb(pid):.1f} MB)"
            rows.append(Row(what, text, other, bar=bar, bar_text=f"< {bar:g} MB", amount=used))
        return rows

    def _listed(self, ours: Pipe, theirs: Pipe) -> list[Row]:
        our_bytes, their_bytes = (
            len(json.dumps(pipe.request("tools/list").message["result"]["tools"])) for pipe in (ours, theirs)
        )
        return [
            Row(
                "tools/list, tokens (bytes / 4)",
                f"{our_bytes // 4}",
                f"{their_bytes // 4}",
                our_bytes / their_bytes,
                None,
            )
        ]

    def _calls(self) -> list[Row]:
        cases = _cases(self.corpus, quick=self.quick)
        rows = []
        for case in cases:
            ours, theirs = self.sides[1 if case.whole else 0], self.sides[2]
            bare: list[float] = []
            for number in range(self.rounds):
                for side in (ours, theirs) if number % 2 else (theirs, ours):
                    side.measure(case, case.calls)
                if case.floor is not None:
                    bare += [floors.timed(case.floor) for _ in range(case.calls)]
            rows += self._rows_of(case, ours, theirs)
            if case.floor is not None:
                rows.append(timed_row(f"{case.what}, floor", ours.sample(case.what), Sample(bare), None, "bare Python"))
        return rows

    @staticmethod
    def _rows_of(case: Case, ours: Side, theirs: Side) -> list[Row]:
        our_sample, their_sample = ours.sample(case.what), theirs.sample(case.what)
        row = timed_row(case.what, our_sample, their_sample, case.bar)
        cpu = [f", CPU {milliseconds(side.cpu[case.what])}" for side in (ours, theirs)]
        rows = [replace(row, ours=row.ours + cpu[0], theirs=row.theirs + cpu[1])]
        if case.bytes_bar is not None:
            sizes = size_text(our_sample.size), size_text(their_sample.size)
            text = f"≤ {case.bytes_bar:g}x"
            rows.append(
                Row(f"{case.what}, bytes back", *sizes, our_sample.size / their_sample.size, None, case.bytes_bar, text)
            )
        return rows

    def _greps(self, ours: Pipe, with_peers: bool) -> list[Row]:
        peers: list[Peer] = []
        if with_peers:
            peers, notes = install(self.folder / "peers", self.corpus)
            self.notes += notes
        rows = []
        for label, word in (("a rare word", RARE_WORD), ("a common word", COMMON_WORD)):
            rows += grep.compare(label, word, self.corpus, ours, peers, self.rounds, 3 if self.quick else 10)
        return rows


def _cases(corpus: Corpus, *, quick: bool) -> list[Case]:
    root, tree = str(corpus.root), str(corpus.tree)
    few, some, many = (3, 5, 30) if quick else (3, 10, 100)
    counters: dict[str, int] = {}

    def fixed(**arguments: Any) -> Arguments:
        return lambda _side: arguments

    def edit(side: str) -> dict[str, Any]:
        number = counters[side] = counters.get(side, -1) + 1
        change = {"oldText": f"counter = {number}\n", "newText": f"counter = {number + 1}\n"}
        return {"path": f"{root}/edit_{side}.txt", "edits": [change]}

    def write(side: str) -> dict[str, Any]:
        number = counters[f"write {side}"] = counters.get(f"write {side}", 0) + 1
        return {"path": f"{root}/write_{side}.txt", "content": f"{number}\n" + "x" * 1000}

    large = max(int(path.name.removeprefix("flat_")) for path in corpus.root.glob("flat_*"))
    small, flat = f"{root}/small.txt", f"{root}/flat_1000"
    by_name = fixed(path=tree, pattern="**/*.py")
    return [
        Case("read 1 KB", "read_text_file", fixed(path=small), many, 3.0, floor=floors.read(Path(small))),
        Case("stat", "get_file_info", fixed(path=small), many, 3.0, floor=floors.stat(Path(small))),
        Case("write 1 KB", "write_file", write, some, 3.0, floor=floors.replace(corpus.root / "floor.txt")),
        Case("edit 1 KB", "edit_file", edit, some, 3.0),
        Case("list 1,000", "list_directory", fixed(path=flat), some, 3.0, floor=floors.names(Path(flat))),
        Case(f"list {large:,}, whole", "list_directory", fixed(path=f"{root}/flat_{large}"), some, 3.0, whole=True),
        Case(f"list {large:,}, default budget", "list_directory", fixed(path=f"{root}/flat_{large}"), some, 3.0),
        Case("read 1 MB, whole", "read_text_file", fixed(path=f"{root}/large.txt"), some, 1.0, True, 0.55),
        Case("read 1 MB, default budget", "read_text_file", fixed(path=f"{root}/large.txt"), some, 1.0),
        Case(f"search_files **/*.py in {corpus.files:,}", "search_files", by_name, few, 1 / 20),
        Case(f"search_files **/*.py in {corpus.files:,}, whole", "search_files", by_name, few, 1 / 20, whole=True),
        Case(f"directory_tree of {corpus.files:,}", "directory_tree", fixed(path=tree), few, 0.5, False, 0.1),
        Case(f"directory_tree of {corpus.files:,}, whole", "directory_tree", fixed(path=tree), few, whole=True),
    ]


def _start(server: Server) -> float:
    with server.start() as pipe:
        pipe.open()
        listed = pipe.request("tools/list")
        if "result" not in listed.message:
            raise RuntimeError(f"{server.name} did not list its tools: {listed.raw[:300]!r}")
        return _since(pipe)


def _since(pipe: Pipe) -> float:
    return pipe.answered_at - pipe.started_at


def _machine() -> str:
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    kind = f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}"
    return f"{moment}; {kind}; {_node_version()}; reference server {reference_version()}"


def _node_version() -> str:
    return f"Node {subprocess.run([node(), '--version'], capture_output=True, text=True, check=True).stdout.strip()}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 files and few calls: a smoke test, not a figure")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison (5)")
    parser.add_argument("--peers", action="store_true", help="install and measure other servers with a content search")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
