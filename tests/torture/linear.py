"""Pure: is there an order of one project's calls that respects real time and explains every answer?

The search of Wing and Gong with Lowe's memory of configurations already tried. It knows nothing of the store: it has the
calls, their answers and the sequential model. Three steps keep it short and lose no order: a call that changes nothing
and whose answer is right is taken at once; one whose outcome is unknown is taken only where it changes something; and of
two configurations that differ only in the unknown calls they have used up, the one that used more is not tried.

What somebody else says the states were can show the way, and is not believed: an order that is found along it explains
every answer all the same, and where none is found the whole search follows.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

from tests.torture.history import Operation
from tests.torture.model import State, step

BUDGET = 400_000

Configuration = tuple[State, int, int, int]
"""A state, the calls that led to it as bits, the first call that is not among them, and how many of them changed it."""


class Verdict(Enum):
    """What the search found."""

    LINEARIZABLE = "linearizable"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "undecided"


def judge(operations: Sequence[Operation], budget: int = BUDGET, way: Sequence[State] = ()) -> Verdict:
    """Search for an order; UNDECIDED when so many configurations were not enough. `way` are states to try first."""
    ordered = sorted(operations, key=lambda call: call.start)
    if way and _Search(ordered, budget, way).run() is Verdict.LINEARIZABLE:
        return Verdict.LINEARIZABLE
    likely = [call for call in ordered if call.answer is not None or _is_seen(call, ordered)]
    if len(likely) < len(ordered) and _Search(likely, budget // 4).run() is Verdict.LINEARIZABLE:
        return Verdict.LINEARIZABLE
    return _Search(ordered, budget).run()


def _is_seen(unknown: Operation, operations: Sequence[Operation]) -> bool:
    """Return whether a call of unknown outcome is likely to have happened: what it wrote was read, or it wrote nothing."""
    text = unknown.args.get("content")
    return text is None or any(call.tool == "file_read" and text in (call.answer or ("", ""))[1] for call in operations)


class _Search:
    def __init__(self, operations: list[Operation], budget: int, way: Sequence[State] = ()) -> None:
        self._operations = operations
        self._budget = budget
        self._way = way
        self._visited: dict[tuple[int, frozenset[tuple[str, str]]], list[int]] = {}
        self._all_known = sum(1 << at for at, call in enumerate(operations) if call.answer is not None)

    def run(self) -> Verdict:
        start: Configuration = ({}, 0, 0, 0)
        stack = [iter([start])]
        while stack:
            if len(self._visited) > self._budget:
                return Verdict.UNDECIDED
            branch = next(stack[-1], None)
            if branch is None:
                stack.pop()
                continue
            state, mask, first = self._absorbed(*branch[:3])
            if mask & self._all_known == self._all_known:
                return Verdict.LINEARIZABLE
            stack.append(self._branches(state, mask, first, branch[3]))
        return Verdict.IMPOSSIBLE

    def _branches(self, state: State, mask: int, first: int, changes: int) -> Iterator[Configuration]:
        """Yield the configurations that one more call leads to: those that end first come first, unknown ones last."""
        if self._way and changes >= len(self._way):
            return
        for at in sorted(self._open(mask, first), key=lambda at: self._operations[at].end):
            call = self._operations[at]
            answer, after = step(state, call.tool, call.args)
            if after is state or call.answer not in (None, answer) or (self._way and after != self._way[changes]):
                continue
            mark = mask | 1 << at
            if self._is_new(mark, after):
                yield after, mark, first, changes + 1

    def _is_new(self, mask: int, state: State) -> bool:
        known, unknown = mask & self._all_known, mask & ~self._all_known
        before = self._visited.setdefault((known, frozenset(state.items())), [])
        if any(used & ~unknown == 0 for used in before):
            return False
        before.append(unknown)
        return True

    def _absorbed(self, state: State, mask: int, first: int) -> tuple[State, int, int]:
        """Take every call that changes nothing and is answered rightly, until there is none."""
        is_changed = True
        while is_changed:
            is_changed = False
            while mask >> first & 1:
                first += 1
            for at in self._open(mask, first):
                call = self._operations[at]
                if call.answer is None:
                    continue
                answer, after = step(state, call.tool, call.args)
                if after is state and answer == call.answer:
                    mask |= 1 << at
                    is_changed = True
        return state, mask, first

    def _open(self, mask: int, first: int) -> list[int]:
        """Return the calls that may come next: none of the others had ended before they began."""
        calls, soonest = [], float("inf")
        for at in range(first, len(self._operations)):
            call = self._operations[at]
            if call.start > soonest:
                break
            if not mask >> at & 1:
                calls.append(at)
                soonest = min(soonest, call.end)
        return calls
