"""Searches raced against changes of the files that they find, 10,000 times: old text must never be shown.

`python -m tests.torture.races --engine postgres --rounds 10000 --seed 7`; `--mutants` runs each fault that must be caught.

Writers overwrite, append to, rename and delete files whose paragraphs each have a word found nowhere else; worker processes
index them; every writer searches as soon as its change is acknowledged, and other threads search all the time, with a
meaning model and half of them with a reranker. Only what was acknowledged and what was answered is judged.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field

from holdfast.auth.context import AuthContext
from holdfast.search.model import PendingFile, Scope, SearchLimits
from holdfast.search.ports import Index
from holdfast.search.service import Search
from holdfast.secret import Secret
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.torture.indexer import Letters
from tests.torture.races_judge import Files, History, Query, problem_with
from tests.torture.races_mutants import MUTANTS, restored
from tests.torture.workers import Crew, open_backend
from tests.torture.workers import Plan as CrewPlan

ME = AuthContext("a" * 64, "someone")
PROJECTS = ["p", "q"]
PATHS = ["/a.md", "/b.md", "/d/x.md", "/d/y.md", "/d/z.md", "/e.md", "/f.md", "/g.md"]
LETTERS = "bcdfkmptvxz"
COMMON = "grey harbour rain"
MUTANT_ROUNDS = 2_000


@dataclass(frozen=True)
class Plan:
    """One run: how many changes, by what choices, and with which fault."""

    engine: str
    rounds: int
    seed: int = 2026
    workers: int = 2
    searchers: int = 2
    mutant: str = "none"


@dataclass
class Report:
    """What was done and what was wrong."""

    plan: Plan
    rounds: int = 0
    searches: int = 0
    overlapping: int = 0
    hits: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return json.dumps(asdict(self), indent=1)


class WordCounting:
    """A reranker that takes a moment, and likes the texts that hold most words of the query."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        """Return a score for each text."""
        time.sleep(self._choose.random() * 0.01)
        return [sum(word in text for word in query.split()) / (1 + len(query.split())) for text in texts]


class Race:
    """What the threads of one run share."""

    def __init__(self, plan: Plan, store: Store, open_index: Callable[[], Index]) -> None:
        self.plan = plan
        self.store = store
        self.histories = {project: History() for project in PROJECTS}
        self.report = Report(plan)
        self.stop = threading.Event()
        self._open_index = open_index
        self._lock = threading.Lock()

    def search(self, seed: int, *, dawdles: bool = False) -> Search:
        """Return a search of its own, with a reranker for every other seed; a fault of the plan is put into it."""
        choose, index = random.Random(seed), self._open_index()
        if dawdles:
            _dawdle(index, choose)
        if self.plan.mutant in MUTANTS:
            MUTANTS[self.plan.mutant](index)
        return Search(index, SearchLimits(), Letters(), reranker=WordCounting(choose) if seed % 2 else None)

    def ask(self, search: Search, project: str, words: Sequence[str], text: str) -> None:
        """Search, and judge the answer project by project."""
        begun_at = time.monotonic()
        hits = search.search(ME, project, text, limit=20)
        query = Query(words, begun_at, time.monotonic())
        histories = {name: self.histories[name] for name in (PROJECTS if project == "*" else [project])}
        problems = {
            name: problem_with(history, query, [hit for hit in hits if hit.project == name])
            for name, history in histories.items()
        }
        with self._lock:
            self.report.searches += 1
            self.report.hits += len(hits)
            self.report.overlapping += any(len(history.met_by(query)) > 1 for history in histories.values())
            self.report.problems += [f"{name}: {problem}" for name, problem in problems.items() if problem]
            if self.report.problems:
                self.stop.set()

    def count_round(self) -> bool:
        """Return whether there is another round to make."""
        with self._lock:
            if self.stop.is_set() or self.report.rounds >= self.plan.rounds:
                return False
            self.report.rounds += 1
            return True


class Racer:
    """Changes one project and searches at once, round after round."""

    def __init__(self, race: Race, project: str, seed: int) -> None:
        self._race = race
        self._project = project
        self._history = race.histories[project]
        self._choose = random.Random(seed)
        self._search = race.search(seed)
        self._words = 0
        self._prefix = "jq"[seed % 2]

    def run(self) -> None:
        """Go on until all rounds are made or something is wrong."""
        while self._race.count_round():
            before = dict(self._history.files)
            words = self._change(before)
            old = self._choose.choice(sorted(words_of(before) - words_of(self._history.files)) or [COMMON])
            words_sought = self._choose.choice([[old], [old, *words[:1]], words[:1] or [old], []])
            self._race.ask(self._search, self._project, [*words_sought], " ".join(words_sought) or COMMON)

    def _change(self, files: dict[str, bytes]) -> list[str]:
        """Make one change by chance; returns the words that came with it."""
        choose, store = self._choose, self._race.store
        path, dice = choose.choice(sorted(files) or PATHS), choose.random()
        if not files or dice < 0.6:
            return self._written(choose.choice(PATHS), files)
        if dice < 0.7:
            self._sent({name: files[name] for name in files if name != path})
            store.delete(ME, self._project, path)
            return self._acknowledged()
        target = choose.choice([other for other in PATHS if other != path])
        others = {name: files[name] for name in files if name not in (path, target)}
        self._sent({**others, target: files[path]})
        store.rename(ME, self._project, path, target, overwrite=True)
        return self._acknowledged()

    def _written(self, path: str, files: dict[str, bytes]) -> list[str]:
        """Replace a file, add to its end, or put something before all that it holds."""
        words, text = self._text()
        before, mode = files.get(path, b""), self._choose.choice(["TRUNCATE", "APPEND", "before"])
        if len(before) > 8000 or mode == "TRUNCATE":
            after, mode, content = text.encode(), "TRUNCATE", text
        elif mode == "APPEND":
            after, content = before + text.encode(), text
        else:
            after, mode, content = text.encode() + before, "TRUNCATE", text + before.decode()
        self._sent({**files, path: after})
        self._race.store.write(ME, self._project, path, content, mode=mode)
        return self._acknowledged(words)

    def _sent(self, files: Files) -> None:
        self._history.send(files, time.monotonic())

    def _acknowledged(self, words: Sequence[str] = ()) -> list[str]:
        self._history.acknowledge(time.monotonic())
        return list(words)

    def _text(self) -> tuple[list[str], str]:
        words, paragraphs = [], []
        for _ in range(self._choose.choice([1, 1, 2, 4])):
            self._words += 1
            words.append(f"w{self._prefix}{_spelled(self._words)}o")
            filler = f"{COMMON} lies over the quay. " * self._choose.randrange(2, 30)
            paragraphs.append(f"# Part {words[-1]}\n\n{filler}\n\n")
        return words, "".join(paragraphs)


def words_of(files: Files) -> set[str]:
    """Return the words that stand nowhere else."""
    return {
        line.removeprefix(b"# Part ").decode()
        for data in files.values()
        for line in data.split(b"\n")
        if line.startswith(b"# Part ")
    }


def run(plan: Plan, server_url: str | None = None) -> Report:
    """Race for so many rounds, or until something is wrong."""
    with ExitStack() as stack, open_backend(plan.engine, stack, server_url) as (backend, location):
        stack.enter_context(restored())
        race = Race(plan, backend.store(StoreLimits(lock_timeout_ms=60_000, versions_kept=1)), backend.open_index)
        crew = Crew(CrewPlan(plan.engine, 0, 0, plan.seed, plan.workers, usual_seconds=0.005), location)
        stack.callback(crew.end)
        started_at = time.monotonic()
        racers = [
            threading.Thread(target=_guarded, args=(race, Racer(race, project, plan.seed + number).run))
            for number, project in enumerate(PROJECTS)
        ]
        searchers = [
            threading.Thread(target=_guarded, args=(race, lambda seed=seed: _search_on(race, seed)))
            for seed in range(plan.searchers)
        ]
        for thread in (*racers, *searchers):
            thread.start()
        for thread in racers:
            thread.join()
        race.stop.set()
        for thread in searchers:
            thread.join()
        race.report.seconds = round(time.monotonic() - started_at, 1)
    return race.report


def _search_on(race: Race, seed: int) -> None:
    """Search all the time for what is common and for what may be there, in one project or in all."""
    choose, search = random.Random(seed), race.search(seed, dawdles=True)
    while not race.stop.is_set():
        project = choose.choice([*PROJECTS, "*"])
        words = sorted(words_of(race.histories[choose.choice(PROJECTS)].files))
        text = choose.choice([COMMON, *([choose.choice(words)] if words else [])])
        race.ask(search, project, [], text)


def _guarded(race: Race, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:  # a fault of a thread is a result of the run
        race.report.problems.append(f"{type(error).__name__}: {error}")
        race.stop.set()


def _dawdle(index: Index, choose: random.Random) -> None:
    """Let a moment pass, now and then, after the pending files were read, for changes and workers to come in between."""
    real = index.load_pending_files

    def pending(tenant: str, scope: Scope, limit: int, max_bytes: int) -> list[PendingFile]:
        files = real(tenant, scope, limit, max_bytes)
        if choose.random() < 0.3:
            time.sleep(choose.random() * 0.5)
        return files

    index.load_pending_files = pending  # type: ignore[method-assign]


def _spelled(number: int) -> str:
    """Return a number in letters that no stemmer touches."""
    digits = ""
    while number:
        number, digit = divmod(number, len(LETTERS))
        digits = LETTERS[digit] + digits
    return digits


def main() -> None:
    """Run one plan, or every mutant, and say what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="postgres", choices=["sqlite", "postgres"])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--mutants", action="store_true")
    options = parser.parse_args()
    if not options.mutants:
        report = run(Plan(options.engine, options.rounds, options.seed))
        print(report)
        sys.exit(bool(report.problems))
    reports = {name: run(Plan(options.engine, MUTANT_ROUNDS, options.seed, mutant=name)) for name in MUTANTS}
    for name, report in reports.items():
        print(f"{name}: {report.problems[0] if report.problems else 'not caught'} (round {report.rounds})")
    sys.exit(not all(report.problems for report in reports.values()))


if __name__ == "__main__":
    main()
