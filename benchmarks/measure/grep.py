"""Content search compared: ours, bare ripgrep with the same flags, and the peers that have one."""

import re
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure.files import Corpus
from benchmarks.measure.peers import Peer
from benchmarks.measure.pipe import Timed, Wire
from benchmarks.measure.table import Row, Sample, timed_row
from holdfast.folders.finding.ripgrep import GrepQuery

MAX_RESULTS = 200
_MATCH = re.compile(rb"^\d+:", re.MULTILINE)


def compare(label: str, word: str, corpus: Corpus, ours: Wire, peers: list[Peer], rounds: int, calls: int) -> list[Row]:
    """Return the rows of one word: against bare ripgrep, and against each peer, the fastest with its bar."""
    arguments = {"pattern": word, "search_path": str(corpus.tree), "max_results": MAX_RESULTS}
    command = GrepQuery(word).arguments([], ["."])
    with ExitStack() as stack:
        wires = [(peer, stack.enter_context(peer.server.connect())) for peer in peers]
        our_series, bare = _Series("holdfast"), _Series("bare ripgrep")
        others = [_Series(peer.server.name) for peer in peers]
        for number in range(rounds + 1):
            for _ in range(calls if number else 1):
                our_series.add(ours.call("grep_content", arguments), word)
                bare.times.append(_bare(command, corpus.tree))
            for series, (peer, wire) in zip(others, wires, strict=True):
                series.add(wire.call(peer.tool, peer.arguments(word)), word)
            if number == 0:
                for series in (our_series, bare, *others):
                    series.times.clear()
    what = f"grep_content, {label} in {corpus.files:,}"
    rows = [timed_row(what, our_series.sample, bare.sample, 1.5, bare.name)]
    for rank, series in enumerate(sorted(others, key=lambda series: series.sample.median)):
        rows.append(timed_row(what, our_series.sample, series.sample, None if rank else 0.1, series.name))
    return rows


@dataclass
class _Series:
    """The calls of one side."""

    name: str
    times: list[float] = field(default_factory=list)
    size: int = 0

    @property
    def sample(self) -> Sample:
        return Sample(self.times, self.size)

    def add(self, answer: Timed, word: str) -> None:
        self.times.append(answer.seconds)
        self.size = answer.size
        if word not in answer.text():
            raise RuntimeError(f"the answer of {self.name} does not hold {word!r}: {answer.raw[:300]!r}")


def _bare(command: list[str], cwd: Path) -> float:
    """Run ripgrep until it ends or has found as much as is answered, and return the seconds."""
    started_at = time.perf_counter()
    count = 0
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={}, bufsize=0
    ) as child:
        assert child.stdout is not None
        while count < MAX_RESULTS and (piece := child.stdout.read(1 << 16)):
            count += len(_MATCH.findall(piece))
        child.kill()
    return time.perf_counter() - started_at
