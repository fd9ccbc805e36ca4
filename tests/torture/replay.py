"""Pure: the witness's account against the model and the clients: versions, jobs, counters, keys, real time."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tests.torture.history import Operation
from tests.torture.model import State, step


class NoteLike(Protocol):
    """What a trigger noted."""

    @property
    def kind(self) -> str: ...
    @property
    def version(self) -> int | None: ...
    @property
    def a(self) -> str | None: ...
    @property
    def b(self) -> str | None: ...
    @property
    def c(self) -> str | None: ...


Transaction = Sequence[NoteLike]


class Replay:
    """One project from its first mutation to its last; `problems` says all that does not fit."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._by_id = {operation.id: operation for operation in operations if operation.mutates}
        self._version = 0
        self._latest_start = 0
        self._matched_ids: set[str] = set()
        self.state: State = {}

    def problems(self, transactions: Sequence[Transaction], *, with_keys: bool) -> Iterator[str]:
        """Yield what is wrong, transaction by transaction and then in all."""
        for notes in transactions:
            before = self.state
            yield from self._counted(notes)
            yield from self._jobs(notes)
            if with_keys:
                yield from self._check_requests(notes, before)
        yield from self._check_total(len(transactions), with_keys=with_keys)

    def _counted(self, notes: Transaction) -> Iterator[str]:
        counters = [note for note in notes if note.kind == "project"]
        if len(counters) != 1 or counters[0].version != self._version + 1:
            versions = [note.version for note in counters]
            yield f"after version {self._version} came a transaction that says {versions}"
        self._version = next((note.version for note in counters if note.version), self._version)
        yield from (
            f"a {note.kind} of version {note.version} in the transaction of version {self._version}"
            for note in notes
            if note.version not in (None, self._version)
        )
        self.state = _changed(self.state, notes)
        counts = (str(len(self.state)), str(sum(map(len, self.state.values()))))
        if counters and (counters[-1].a, counters[-1].b) != counts:
            yield f"version {self._version}: the project counts {counters[-1].a} files, {counters[-1].b} bytes; it has {counts}"

    def _jobs(self, notes: Transaction) -> Iterator[str]:
        touched = {path for note in notes if note.kind == "file" for path in (note.a, note.b) if path}
        expected_jobs = {(path, "UPSERT" if path in self.state else "DELETE") for path in touched}
        noted_jobs = {(note.a, note.b) for note in notes if note.kind == "job"}
        if expected_jobs != noted_jobs:
            yield f"version {self._version} owes the jobs {sorted(expected_jobs)} and left {sorted(map(str, noted_jobs))}"

    def _check_requests(self, notes: Transaction, before: State) -> Iterator[str]:
        keys = [note.a or "" for note in notes if note.kind == "key"]
        operation = self._by_id.get(keys[0]) if len(keys) == 1 else None
        if operation is None or operation.id in self._matched_ids:
            yield f"version {self._version} belongs to no call, or to one that has a version already: {keys}"
            return
        self._matched_ids.add(operation.id)
        answer, after = step(before, operation.tool, operation.args)
        if after != self.state:
            yield f"version {self._version} is not what {operation.id} asked for: {_difference(after, self.state)}"
        if operation.answer not in (None, answer):
            yield f"{operation.id} was answered {operation.answer}, and at its version the answer is {answer}"
        if operation.end < self._latest_start:
            yield f"{operation.id} has version {self._version}, after a call that began when it had ended"
        self._latest_start = max(self._latest_start, operation.start)

    def _check_total(self, version_count: int, *, with_keys: bool) -> Iterator[str]:
        changing = [
            operation for operation in self._by_id.values() if operation.answer is not None and _changes(operation)
        ]
        unknown = sum(1 for operation in self._by_id.values() if operation.answer is None)
        if not len(changing) <= version_count <= len(changing) + unknown:
            yield f"{version_count} versions, {len(changing)} acknowledged changes, {unknown} of unknown outcome"
        if with_keys:
            yield from (
                f"{operation.id} was acknowledged and has no version"
                for operation in changing
                if operation.id not in self._matched_ids
            )


def states_of(transactions: Sequence[Transaction]) -> list[State]:
    """Return the states that the account leads through, after each transaction that changed something."""
    states: list[State] = [{}]
    for notes in transactions:
        after = _changed(states[-1], notes)
        if after != states[-1]:
            states.append(after)
    return states[1:]


def _changes(operation: Operation) -> bool:
    answer = operation.answer or ()
    return answer[:1] == ("ok",) and not (operation.tool == "file_rename" and answer[1] == 0)


def _changed(state: State, notes: Transaction) -> State:
    files = [note for note in notes if note.kind == "file"]
    after = {path: text for path, text in state.items() if path not in {note.a for note in files}}
    return after | {note.b: note.c or "" for note in files if note.b}


def _difference(expected: State, actual: State) -> str:
    paths = [path for path in sorted(expected.keys() | actual.keys()) if expected.get(path) != actual.get(path)]
    return "; ".join(f"{path}: {expected.get(path)!r:.80} expected, {actual.get(path)!r:.80} found" for path in paths)
