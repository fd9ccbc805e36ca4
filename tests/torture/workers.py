"""Index workers killed -9 at random under write load; after a drain the index must equal the files exactly.

`python -m tests.torture.workers --engine postgres --seconds 60 --kills 40 --seed 7`; `--mutants` runs each fault that the
checker must catch. The checker cuts every live file into pieces anew and trusts nothing that a worker wrote down.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from holdfast.auth.context import AuthContext
from holdfast.errors import HoldfastError
from holdfast.search.chunk import split_into_chunks
from holdfast.search.model import Scope
from holdfast.search.ports import Index
from holdfast.search.tokens import tokenize
from holdfast.store.paths import span_of_path, span_with_prefix
from holdfast.store.service import Store
from tests.helpers.databases import Backend, postgres_backend, postgres_database, postgres_server, sqlite_backend
from tests.torture.indexer import MUTANTS, Letters, WorkerPlan, drain

TOP = Path(__file__).parents[2]
TENANTS = [AuthContext(letter * 64, letter) for letter in "ab"]
PROJECTS = ["p", "q"]
ATTEMPTS = 10
PATHS = ["/a.md", "/b.md", "/d/x.md", "/d/y.md", "/e/x.md", "/e/f/z.py"]


@dataclass(frozen=True)
class Plan:
    """One run: how long, how many workers, how many of them die, and which fault they have."""

    engine: str
    seconds: float
    kills: int
    seed: int = 2026
    workers: int = 3
    lease_ms: int = 1500
    writes_per_second: float = 60.0
    mutant: str = "none"
    usual_seconds: float = 0.1


@dataclass
class Report:
    """What was done and what was wrong after it."""

    plan: Plan
    writes: int = 0
    kills: int = 0
    files: int = 0
    chunks: int = 0
    drained_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return json.dumps(asdict(self), indent=1)


class Writer:
    """One thread of changes by chance; every paragraph holds a word that is found nowhere else."""

    def __init__(self, store: Store, seed: int, pause: float) -> None:
        self._store = store
        self._choose = random.Random(seed)
        self._seed = seed
        self._pause = pause
        self.count = 0
        self.words: list[str] = []

    def run(self, until: float) -> None:
        """Change something again and again."""
        while time.monotonic() < until:
            try:
                self._change()
                self.count += 1
            except HoldfastError:
                pass
            time.sleep(self._pause * self._choose.uniform(0.5, 1.5))

    def _change(self) -> None:
        choose = self._choose
        auth, project, path = choose.choice(TENANTS), choose.choice(PROJECTS), choose.choice(PATHS)
        dice = choose.random()
        if dice < 0.5:
            self._store.write(auth, project, path, self._text())
        elif dice < 0.7:
            self._store.write(auth, project, path, self._text(), mode="TRUNCATE")
        elif dice < 0.82:
            self._store.rename(auth, project, path, choose.choice(PATHS), overwrite=True)
        elif dice < 0.9:
            self._store.rename(auth, project, choose.choice(["/d", "/e"]), choose.choice(["/d", "/e", "/g"]))
        else:
            self._store.delete(auth, project, choose.choice([*PATHS, "/d", "/e", "/g"]), recursive=True)

    def _text(self) -> str:
        paragraphs = []
        for _ in range(self._choose.choice([1, 1, 2, 8])):
            word = f"zq{self._seed}x{len(self.words)}"
            self.words.append(word)
            paragraphs.append(
                f"# Part {word}\n\n" + "The harbour lies quiet under grey rain. " * self._choose.randrange(1, 12)
            )
        return "\n\n".join(paragraphs) + "\n"


class Crew:
    """The worker processes. One that is killed is replaced."""

    def __init__(self, plan: Plan, location: str) -> None:
        self._plan = plan
        self._location = location
        self._count = 0
        self._processes = [self._started() for _ in range(plan.workers)]

    def kill_one(self, choose: random.Random) -> None:
        """End a worker in the middle of whatever it does."""
        at = choose.randrange(len(self._processes))
        self._processes[at].kill()
        self._processes[at].wait(20)
        self._processes[at] = self._started()

    def end(self) -> None:
        """End them all, without a word."""
        for process in self._processes:
            process.kill()
            process.wait(20)

    def _started(self) -> "subprocess.Popen[bytes]":
        self._count += 1
        crew_plan = self._plan
        plan = WorkerPlan(
            crew_plan.engine,
            self._location,
            crew_plan.lease_ms,
            crew_plan.seed + self._count,
            crew_plan.mutant,
            crew_plan.usual_seconds,
        )
        command = [sys.executable, "-m", "tests.torture.indexer", json.dumps(asdict(plan))]
        return subprocess.Popen(command, cwd=TOP, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def open_backend(engine: str, stack: ExitStack, server_url: str | None) -> Iterator[tuple[Backend, str]]:
    """Give a new database, and the place by which a worker process opens it too."""
    if engine == "sqlite":
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-workers-", dir="/tmp")))
        with sqlite_backend(folder / "store") as backend:
            yield backend, str(folder / "store")
        return
    url = stack.enter_context(postgres_database(server_url or stack.enter_context(postgres_server())))
    with postgres_backend(url) as backend:
        yield backend, url


def run(plan: Plan, server_url: str | None = None) -> Report:
    """Write, kill, drain, compare."""
    report, choose = Report(plan), random.Random(plan.seed)
    with ExitStack() as stack, open_backend(plan.engine, stack, server_url) as (backend, location):
        store = backend.store()
        crew = Crew(plan, location)
        try:
            writers = _writing(plan, store)
            started_at = time.monotonic()
            for number in range(plan.kills):
                at = plan.seconds * (number + choose.uniform(0.3, 1.0)) / plan.kills
                time.sleep(max(0.0, started_at + at - time.monotonic()))
                crew.kill_one(choose)
                report.kills += 1
            for _, thread in writers:
                thread.join()
            words = [word for writer, _ in writers for word in writer.words]
            report.writes = sum(writer.count for writer, _ in writers)
            # A worker with a fault is to be judged by what it did, not by what a good one does after it.
            if plan.mutant != "none":
                time.sleep(4 * plan.lease_ms / 1000)
        finally:
            crew.end()
        started_at = time.monotonic()
        drain(backend.open_queue(), backend.open_index(), plan.lease_ms)
        report.drained_seconds = round(time.monotonic() - started_at, 2)
        compare(report, store, backend.open_index(), words)
    return report


def _writing(plan: Plan, store: Store) -> list[tuple[Writer, threading.Thread]]:
    count = 4
    writers = [Writer(store, plan.seed * 10 + number, count / plan.writes_per_second) for number in range(count)]
    until = time.monotonic() + plan.seconds
    threads = [threading.Thread(target=writer.run, args=(until,)) for writer in writers]
    for thread in threads:
        thread.start()
    return list(zip(writers, threads, strict=True))


def compare(report: Report, store: Store, index: Index, words: Sequence[str]) -> None:
    """Compare the index with the files: pieces, vectors and words, of what lives and of what does not."""
    for auth in TENANTS:
        for project in PROJECTS:
            texts = _texts(store, auth, project)
            report.files += len(texts)
            for path in sorted({*PATHS, *(path.replace("/d/", "/g/").replace("/e/", "/g/") for path in PATHS), *texts}):
                _compare_file(report, index, auth.apikey_hash, project, path, texts.get(path))
            _compare_words(report, index, auth.apikey_hash, project, texts, words)


def _texts(store: Store, auth: AuthContext, project: str) -> dict[str, str]:
    try:
        entries = store.listing(auth, project, "", 99, 1000).entries
    except HoldfastError:
        return {}
    return {entry.path: store.read(auth, project, entry.path).text for entry in entries if entry.type == "FILE"}


def _compare_file(report: Report, index: Index, tenant: str, project: str, path: str, text: str | None) -> None:
    expected = [(chunk.start, chunk.end, chunk.content_hash) for chunk in split_into_chunks((text or "").encode())]
    indexed = [
        (chunk.start, chunk.end, chunk.content_hash) for chunk in index.load_indexed_chunks(tenant, project, path)
    ]
    report.chunks += len(indexed)
    where = f"{tenant[0]} {project} {path}"
    if indexed != expected:
        report.problems.append(f"{where}: the index holds {len(indexed)} pieces, the file has {len(expected)} others")
    elif text and index.load_chunks_without_vectors(tenant, project, path, Letters.model):
        report.problems.append(f"{where}: a piece has no vector")
    elif text:
        nearest = index.find_nearest(
            tenant, Scope(project, span_of_path(path)), Letters.model, Letters.vector(text[:50]), 1000
        )
        if len(nearest) != len(expected):
            report.problems.append(f"{where}: {len(nearest)} vectors for {len(expected)} pieces")


def _compare_words(
    report: Report, index: Index, tenant: str, project: str, texts: dict[str, str], words: Sequence[str]
) -> None:
    everything = "\n".join(texts.values())
    scope = Scope(project, span_with_prefix(""))
    for word in random.Random(1).sample(list(words), min(60, len(words))):
        candidates = index.find_by_words(tenant, scope, list(tokenize(word))[-1:], 10).candidates
        if bool(candidates) != (f"Part {word}\n" in everything):
            report.problems.append(f"{tenant[0]} {project}: {word} is {'' if candidates else 'not '}found")


def main() -> None:
    """Run one plan, or every mutant, and say what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="postgres", choices=["sqlite", "postgres"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--mutants", action="store_true")
    options = parser.parse_args()
    if not options.mutants:
        report = run(Plan(options.engine, options.seconds, options.kills, options.seed))
        print(report)
        sys.exit(bool(report.problems))
    missed = [name for name in MUTANTS if not _is_caught(options.engine, name, options.seed)]
    sys.exit(f"not caught: {missed}" if missed else 0)


def _is_caught(engine: str, mutant: str, seed: int) -> bool:
    """Run a mutant for some seconds with one seed after another, since it errs only by chance, until it is caught."""
    for attempt in range(ATTEMPTS):
        report = run(Plan(engine, 6.0, 2, seed + attempt, mutant=mutant))
        print(f"{mutant}, run {attempt + 1}: {len(report.problems)} problems {report.problems[:1]}")
        if report.problems:
            return True
    return False


if __name__ == "__main__":
    main()
