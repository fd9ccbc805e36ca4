"""What every journal keeps to for the person: filters of the list, ids by their beginning, undos, and letting images go."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import ChangeKind, Image, Item, Op, Outcome, Plan
from holdfast.changes.ports import Journal
from holdfast.changes.selection import ChangeFilter, PruneSelection

OPENERS: list[Callable[[str], Journal]] = [open_journal]
DESK, RIVAL, PERSON = ClientInfo("desk", "1"), ClientInfo("rival", "2"), ClientInfo("holdfast", "1", is_command=True)


@pytest.fixture(params=OPENERS, ids=["sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    opened: Journal = request.param(str(tmp_path))
    yield opened
    opened.close()


def at(day: int) -> str:
    return f"2026-01-{day:02d}T00:00:00.000000Z"


def record(
    journal: Journal,
    id_: str,
    day: int,
    *,
    client: ClientInfo = DESK,
    root: str = "/r",
    path: str = "/r/a",
    **more: str,
) -> str:
    """Record one edit, made on a day, whose earlier bytes are its own."""
    item = Item(Op.REPLACE, path, before_hash=id_.ljust(64, "0"), after_hash="f" * 64, size_bytes=3)
    plan = Plan(id_, ChangeKind.EDIT, root, (item,), at(1), client=client)
    plan = replace(plan, kind=ChangeKind.UNDO, undoes=more["undoes"]) if more else plan
    journal.begin(plan, [Image(id_.ljust(64, "0"), 3, data=b"abc")])
    journal.finish(id_, Outcome.done(), at(day))
    return id_


def ids(journal: Journal, roots: list[str] | None = None, **wanted: object) -> list[str]:
    chosen = ChangeFilter(**wanted)  # type: ignore[arg-type]  # one filter at a time, by its name
    return [change.id for change in journal.list_changes(roots, 10, None, chosen)]


def test_every_filter_of_the_list_narrows_it(journal: Journal) -> None:
    record(journal, "a", 2)
    record(journal, "b", 3, client=RIVAL, root="/q", path="/q/x")
    record(journal, "c", 4, client=PERSON, undoes="a")
    assert ids(journal) == ["c", "b", "a"]
    assert ids(journal, ["/q"]) == ["b"]
    assert ids(journal, client=ClientInfo("rival")) == ["b"]
    assert ids(journal, client=ClientInfo("rival", "1")) == []
    assert ids(journal, client=ClientInfo(is_command=True)) == ["c"]
    assert ids(journal, client=ClientInfo("holdfast")) == []
    assert ids(journal, since=at(3)) == ["c", "b"]
    assert ids(journal, until=at(3)) == ["b", "a"]
    assert ids(journal, kinds=(ChangeKind.EDIT,)) == ["b", "a"]
    assert ids(journal, directory="/q") == ["b"]
    assert ids(journal, directory="/r/a") == ["c", "a"]
    assert journal.list_clients() == [RIVAL, DESK]


def test_an_id_is_found_by_its_beginning_and_an_undo_by_what_it_undid(journal: Journal) -> None:
    for id_ in ("ab1", "ab2", "b%"):
        record(journal, id_, 2)
    assert journal.find_ids("ab") == ["ab2", "ab1"]
    assert journal.find_ids("%") == []
    assert journal.find_undo_of("ab1") is None
    record(journal, "c", 3, undoes="ab1")
    assert journal.find_undo_of("ab1") == "c"
    record(journal, "d", 4, undoes="c")
    assert journal.find_undo_of("ab1") is None


def test_images_are_let_go_by_age_or_by_size_and_only_of_the_chosen_roots(journal: Journal) -> None:
    for number, root in enumerate(("/r", "/q", "/r")):
        record(journal, f"{number}a", number + 2, root=root, path=f"{root}/{number}")
    counted, files = journal.prune(PruneSelection(to_bytes=3, roots=("/r",)), dry_run=True)
    assert (counted.images, counted.size_bytes, counted.changes, files) == (1, 3, 1, [])
    assert [plan.id for plan in counted.newest_changes] == ["0a"]
    assert journal.prune(PruneSelection(to_bytes=3, roots=("/r",)), dry_run=False)[0] == counted
    missing = {change.id: change.images_missing for change in journal.list_changes(None, 10, None)}
    assert missing == {"0a": 1, "1a": 0, "2a": 0}
    assert journal.prune(PruneSelection(before=at(1)), dry_run=False)[0].images == 0
    assert journal.prune(PruneSelection(before="9999"), dry_run=False)[0].images == 2


def test_a_running_change_keeps_its_images(journal: Journal) -> None:
    item = Item(Op.REPLACE, "/r/a", before_hash="e" * 64, after_hash="f" * 64)
    journal.begin(Plan("p", ChangeKind.EDIT, "/r", (item,), at(1)), [Image("e" * 64, 3, data=b"abc")])
    assert journal.prune(PruneSelection(to_bytes=0), dry_run=False)[0].images == 0
