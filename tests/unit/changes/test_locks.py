"""Locks of places and trees: who waits for whom, and in which order."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.disk.places import Locks
from holdfast.changes.disk.tree import TreeOptions, read_tree
from holdfast.changes.model import Item
from holdfast.errors import Cancelled
from tests.helpers.doors import until
from tests.helpers.trees import plant
from tests.unit.changes.world import opened_world

Hold = Callable[[Locks, Call], AbstractContextManager[None]]


def place(path: str) -> Hold:
    return lambda locks, call: locks.hold(call, [path], paths=[path])


def tree(*paths: str) -> Hold:
    return lambda locks, call: locks.hold_trees(call, *paths)


class Holder:
    """A thread that holds a lock until it is told to let go."""

    def __init__(self, locks: Locks, hold: Hold) -> None:
        self.call = Call(Caller(LOCAL_USER), timeout_seconds=60)
        self.has_it, self.let_go, self.was_cancelled = threading.Event(), threading.Event(), False
        self._locks, self._hold = locks, hold
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._hold(self._locks, self.call):
                self.has_it.set()
                self.let_go.wait(30)
        except Cancelled:
            self.was_cancelled = True

    def end(self) -> None:
        self.let_go.set()
        self._thread.join(30)

    @property
    def waits(self) -> bool:
        return not self.has_it.is_set()


@pytest.fixture
def start() -> Iterator[Callable[[Hold], Holder]]:
    """Give a function that starts a holder; each has asked for its lock when it returns."""
    locks = Locks()
    with ExitStack() as stack:

        def run(hold: Hold) -> Holder:
            before = len(locks._requests)
            holder = Holder(locks, hold)
            stack.callback(holder.end)
            until("it has asked", lambda: len(locks._requests) > before)
            until("it has decided", lambda: holder.has_it.is_set() or locks._must_wait(locks._requests[-1]))
            return holder

        yield run


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (tree("/a"), place("/a/x"), True),
        (tree("/a"), place("/a/b/c/x"), True),
        (tree("/a"), place("/a"), True),
        (tree("/a"), place("/ab"), False),
        (tree("/a"), place("/b/x"), False),
        (tree("/a"), tree("/b"), False),
        (tree("/a/b"), tree("/a"), True),
        (tree("/a"), tree("/a/b"), True),
        (tree("/a", "/b"), place("/b/x"), True),
        (place("/a/x"), tree("/a"), True),
        (place("/b/x"), tree("/a"), False),
        (place("/a/x"), place("/a/x"), True),
        (place("/a/x"), place("/a/y"), False),
        (tree("/Müsli"), place("/mu\u0308sli/x"), True),
    ],
)
def test_a_request_waits_for_an_earlier_one_that_it_touches(
    start: Callable[[Hold], Holder], first: Hold, second: Hold, waits: bool
) -> None:
    earlier, later = start(first), start(second)
    assert (earlier.waits, later.waits) == (False, waits)
    earlier.end()
    until("it goes on", lambda: not later.waits)


def test_requests_are_granted_in_their_order(start: Callable[[Hold], Holder]) -> None:
    write = start(place("/a/x"))
    deletion = start(tree("/a"))
    another_write = start(place("/a/y"))
    elsewhere = start(place("/b/y"))
    assert [one.waits for one in (deletion, another_write, elsewhere)] == [True, True, False]
    write.end()
    until("the tree is locked", lambda: not deletion.waits)
    assert another_write.waits
    deletion.end()
    until("the later write goes on", lambda: not another_write.waits)


def test_a_call_that_is_cancelled_waits_no_longer_and_stops_nobody(start: Callable[[Hold], Holder]) -> None:
    write = start(place("/a/x"))
    deletion = start(tree("/a"))
    deletion.call.cancel()
    until("it gave up", lambda: deletion.was_cancelled)
    assert not start(place("/a/y")).waits
    write.end()


def test_a_tree_that_is_deleted_holds_up_nobody_outside_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {"big": {"a.txt": "a"}, "small": {}})
    reading, go_on = threading.Event(), threading.Event()

    def slow_read_tree(dir_fd: int, name: str, path: str, options: TreeOptions) -> list[Item]:
        reading.set()
        go_on.wait(30)
        return read_tree(dir_fd, name, path, options)

    monkeypatch.setattr("holdfast.changes.single.remove.read_tree", slow_read_tree)
    with opened_world([root], tmp_path / "state") as world:
        deletion = threading.Thread(target=world.delete, args=("big",), kwargs={"recursive": True})
        deletion.start()
        assert reading.wait(30)
        world.write("small/b.txt", "b")
        world.mkdir("small/deeper")
        world.move("small/deeper", "moved")
        inside = threading.Thread(target=world.mkdir, args=("big/c",))
        inside.start()
        inside.join(0.5)
        assert inside.is_alive(), "what touches the tree waits"
        go_on.set()
        deletion.join(30)
        inside.join(30)
        assert sorted(path.name for path in root.rglob("*")) in (
            ["b.txt", "big", "c", "moved", "small"],
            ["b.txt", "moved", "small"],
        )
