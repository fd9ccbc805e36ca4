"""What every journal keeps to: intents durable with their images, true statuses, walls between roots."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import (
    ChangeKind,
    Image,
    Item,
    ItemOutcome,
    ItemStatus,
    NodeType,
    Op,
    Outcome,
    Plan,
    PlanStatus,
    RootUsage,
)
from holdfast.changes.ports import Journal
from holdfast.errors import Conflict

OPENERS: list[Callable[[str], Journal]] = [open_journal]
OLD, NEW = "a" * 64, "b" * 64
AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-02-01T00:00:00.000000Z"


@pytest.fixture(params=OPENERS, ids=["sqlite"])
def opener(request: pytest.FixtureRequest) -> Callable[[str], Journal]:
    opened: Callable[[str], Journal] = request.param
    return opened


@pytest.fixture
def journal(opener: Callable[[str], Journal], tmp_path: Path) -> Iterator[Journal]:
    opened = opener(str(tmp_path))
    yield opened
    opened.close()


def plan(
    id_: str, *, root: str = "/r", path: str = "/r/a", undoes: str | None = None, other: str | None = None
) -> Plan:
    item = Item(
        Op.REPLACE, path, before_hash=OLD, after_hash=NEW, size_bytes=3, mode=0o644, uid=1, gid=2, mtime_ns=2**62
    )
    return Plan(id_, ChangeKind.EDIT, root, (item,), AT, other_root=other, temp_name=".t", undoes=undoes)


def image(hash_: str = OLD, size: int = 3) -> Image:
    return Image(hash_, size, data=b"x" * size)


def test_an_intent_and_its_image_are_there_after_a_crash(opener: Callable[[str], Journal], tmp_path: Path) -> None:
    first = opener(str(tmp_path))
    first.begin(plan("p"), [image()])
    second = opener(str(tmp_path))
    (found,) = second.find_unfinished()
    kept = second.images.find(OLD)
    assert found.id == "p"
    assert found.first == plan("p").first
    assert kept is not None
    assert kept.data == b"xxx"
    second.close()
    first.close()


def test_opening_twice_changes_nothing(opener: Callable[[str], Journal], tmp_path: Path) -> None:
    def contents(journal: Journal) -> tuple[object, ...]:
        return (
            journal.find_unfinished(),
            journal.list_changes(["/r"], 10, None),
            journal.find("ended"),
            journal.images.find(OLD),
        )

    first = opener(str(tmp_path))
    first.begin(plan("ended"), [image()])
    first.finish("ended", Outcome.done(), LATER)
    first.begin(plan("running"), [image()])
    before = contents(first)
    first.close()
    second = opener(str(tmp_path))
    assert contents(second) == before
    assert [each.id for each in second.find_unfinished()] == ["running"]
    second.close()


def test_an_outcome_ends_a_plan_with_its_items(journal: Journal) -> None:
    journal.begin(plan("p"), [image()])
    assert journal.list_changes(["/r"], 10, None) == []
    journal.finish("p", Outcome.done("1:2"), LATER)
    found = journal.find("p")
    assert found is not None
    assert (found.status, found.executed_at, found.first.status) == (PlanStatus.EXECUTED, LATER, ItemStatus.DONE)
    assert found.first.identity == "1:2"
    assert journal.find_unfinished() == []


def test_single_items_may_end_otherwise(journal: Journal) -> None:
    items = tuple(Item(Op.MKDIR, f"/r/{name}", node=NodeType.DIRECTORY) for name in "abc")
    journal.begin(Plan("p", ChangeKind.MKDIR, "/r", items, AT), [])
    skipped: dict[int, tuple[ItemStatus, str | None]] = {1: (ItemStatus.SKIPPED, "was there")}
    journal.finish("p", Outcome(PlanStatus.EXECUTED, ItemStatus.DONE, exceptions=skipped), LATER)
    found = journal.find("p")
    assert found is not None
    assert [item.status for item in found.items] == ["DONE", "SKIPPED", "DONE"]
    assert found.items[1].error_msg == "was there"


def test_a_failed_plan_may_have_kept_foreign_bytes(journal: Journal) -> None:
    journal.begin(plan("p"), [image()])
    assert journal.keep_image(image("c" * 64))
    kept = Item(Op.SAVE, "/r/a", before_hash="c" * 64, status=ItemStatus.DONE)
    journal.finish("p", Outcome.failed("conflict", kept), LATER)
    found = journal.find("p")
    assert found is not None
    assert [(item.op, item.status) for item in found.items] == [(Op.REPLACE, "ERROR"), (Op.SAVE, "DONE")]


def test_an_undo_marks_what_it_undid_and_revives_what_that_had_undone(journal: Journal) -> None:
    for number, undoes in (("1", None), ("2", "1"), ("3", "2")):
        journal.begin(plan(number, undoes=undoes), [image()])
        journal.finish(number, Outcome.done(), LATER)
    statuses = {change.id: change.status for change in journal.list_changes(["/r"], 10, None)}
    assert statuses == {"1": "EXECUTED", "2": "UNDONE", "3": "EXECUTED"}


def test_changes_come_newest_first_in_pages(journal: Journal) -> None:
    for number in range(5):
        journal.begin(plan(str(number)), [image()])
        journal.finish(str(number), Outcome.done(), LATER)
    first = journal.list_changes(["/r"], 2, None)
    second = journal.list_changes(["/r"], 10, first[-1].seq)
    assert [change.id for change in first + second] == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("roots", "seen"),
    [
        (["/r"], ["in"]),
        (["/"], ["sibling", "across", "in"]),
        (["/r", "/q"], ["across", "in"]),
        (["/r-x"], ["sibling"]),
        ([], []),
    ],
)
def test_only_changes_whose_roots_lie_beneath_are_seen(journal: Journal, roots: list[str], seen: list[str]) -> None:
    journal.begin(plan("in", root="/r/sub"), [])
    journal.begin(plan("across", root="/r", other="/q"), [])
    journal.begin(plan("sibling", root="/r-x"), [])
    for id_ in ("in", "across", "sibling"):
        journal.finish(id_, Outcome.done(), LATER)
    assert [change.id for change in journal.list_changes(roots, 10, None)] == seen


@pytest.mark.parametrize(
    ("roots", "is_seen"),
    [
        (["/caf\udce9"], True),
        (["/caf\udce9/sub"], True),
        (["/x", "/caf\udce9"], True),
        (["/"], True),
        (["/caf"], False),
        (["/caf\udce9/s"], False),
        (["/café"], False),
    ],
)
def test_changes_and_plans_of_a_root_whose_name_is_not_utf_8_are_listed(
    journal: Journal, roots: list[str], *, is_seen: bool
) -> None:
    journal.begin(plan("change", root="/caf\udce9/sub", other="/caf\udce9/sub"), [])
    journal.finish("change", Outcome.done(), LATER)
    journal.plans.create(moving("plan", root="/caf\udce9/sub"))
    assert [change.id for change in journal.list_changes(roots, 10, None)] == ["change"] * is_seen
    assert [line.id for line in journal.plans.list_plans(roots, 10, None)] == ["plan"] * is_seen


def test_the_newest_later_change_of_a_path_is_known(journal: Journal) -> None:
    for id_ in ("1", "2", "3"):
        journal.begin(plan(id_), [])
        journal.finish(id_, Outcome.done() if id_ != "3" else Outcome.failed("no"), LATER)
    first = journal.find("1")
    assert first is not None
    assert journal.find_latest_on("/r/a", first.seq) == "2"
    assert journal.find_latest_on("/r/b", 0) is None


def test_an_image_is_kept_once(journal: Journal) -> None:
    assert journal.begin(plan("1"), [image()]) == []
    assert journal.begin(plan("2"), [image()]) == [image()]


def change(
    journal: Journal, id_: str, hash_: str, *, path: str = "/r/a", root: str = "/r", at: str = AT, size: int = 100
) -> None:
    """Make a change of a path that begins with an image of so many bytes."""
    item = Item(Op.REPLACE, path, before_hash=hash_, after_hash=NEW)
    journal.begin(Plan(id_, ChangeKind.EDIT, root, (item,), at), [image(hash_, size)])
    journal.finish(id_, Outcome.done(), at)


def kept(journal: Journal, *hashes: str) -> list[bool]:
    return [journal.images.find(hash_) is not None for hash_ in hashes]


def test_over_the_cap_images_in_between_go_oldest_first_and_the_oldest_of_a_path_stays(journal: Journal) -> None:
    for hash_ in "12345":
        change(journal, hash_, hash_ * 64)
    change(journal, "other", "6" * 64, path="/r/b")
    hashes = [hash_ * 64 for hash_ in "123456"]
    assert journal.images.expire(350, "") == []
    assert kept(journal, *hashes) == [True, False, False, False, True, True]
    assert journal.images.usage() == {"/r": RootUsage(300, 200)}
    journal.images.expire(0, "")
    assert kept(journal, *hashes) == [True, False, False, False, False, True]
    assert journal.images.usage() == {"/r": RootUsage(200, 200)}


def test_running_changes_keep_their_images_and_what_they_restore(journal: Journal) -> None:
    change(journal, "1", "1" * 64)
    change(journal, "2", "2" * 64)
    back = Item(Op.RESTORE, "/r/a", after_hash="2" * 64)
    journal.begin(Plan("undo", ChangeKind.UNDO, "/r", (back,), AT), [])
    journal.begin(plan("running"), [image("4" * 64, 100)])
    journal.images.expire(0, "")
    assert kept(journal, "1" * 64, "2" * 64, "4" * 64) == [True, True, True] or journal.find("running") is None
    assert kept(journal, "2" * 64) == [True]


def test_no_root_evicts_what_another_has_within_its_share(journal: Journal) -> None:
    for hash_ in "123":
        change(journal, f"quiet{hash_}", hash_ * 64, root="/quiet", path="/quiet/a")
    for hash_ in "456789abcdef":
        change(journal, f"loud{hash_}", hash_ * 64, root="/loud", path="/loud/a")
    journal.images.expire(600, "")
    assert kept(journal, *(hash_ * 64 for hash_ in "123")) == [True] * 3
    assert journal.images.usage() == {"/quiet": RootUsage(300, 100), "/loud": RootUsage(300, 100)}


def test_a_content_counts_once_in_a_root_however_often_it_comes_back(journal: Journal) -> None:
    for number in range(6):
        change(journal, str(number), "12"[number % 2] * 64)
    change(journal, "elsewhere", "1" * 64, root="/s", path="/s/a")
    assert journal.images.usage() == {"/r": RootUsage(200, 100), "/s": RootUsage(100, 100)}
    journal.images.expire(100, "")
    assert kept(journal, "1" * 64, "2" * 64) == [True, False]
    assert journal.images.usage() == {"/r": RootUsage(100, 100), "/s": RootUsage(100, 100)}


def test_when_the_oldest_is_past_its_days_the_next_one_takes_its_place(journal: Journal) -> None:
    change(journal, "1", "1" * 64, at=AT)
    for hash_ in "234":
        change(journal, hash_, hash_ * 64, at=LATER)
    journal.images.expire(10_000, LATER)
    assert kept(journal, *(hash_ * 64 for hash_ in "1234")) == [False, True, True, True]
    journal.images.expire(0, LATER)
    assert kept(journal, *(hash_ * 64 for hash_ in "234")) == [True, False, False]
    assert journal.images.usage() == {"/r": RootUsage(100, 100)}


def test_the_sums_are_the_same_after_a_new_start_and_after_a_failure(
    opener: Callable[[str], Journal], tmp_path: Path
) -> None:
    first = opener(str(tmp_path))
    change(first, "1", "1" * 64)
    change(first, "2", "2" * 64, path="/r/b")
    before = first.images.usage()
    with pytest.raises(sqlite3.IntegrityError):
        change(first, "1", "3" * 64)
    assert first.images.usage() == before == {"/r": RootUsage(200, 200)}
    first.close()
    second = opener(str(tmp_path))
    assert second.images.usage() == before
    second.close()


def test_a_packed_image_keeps_the_one_it_differs_from(journal: Journal) -> None:
    change(journal, "1", "1" * 64, at=AT, size=5000)
    change(journal, "2", "2" * 64, at=LATER, size=5000)
    assert journal.images.base_for("2" * 64) == "1" * 64
    packed = Image("2" * 64, 5000, data=b"x", stored_bytes=1, is_packed=True, base_hash="1" * 64, prefix_bytes=4999)
    assert journal.images.pack("2" * 64, packed) is None
    assert journal.images.usage() == {"/r": RootUsage(5001, 5000)}
    journal.images.expire(10_000, LATER)
    assert kept(journal, "1" * 64, "2" * 64) == [True, True]
    journal.images.expire(10_000, "2027")
    assert kept(journal, "1" * 64, "2" * 64) == [False, False]
    assert journal.images.usage() == {}


def test_images_that_no_change_uses_are_forgotten(journal: Journal) -> None:
    change(journal, "1", "1" * 64)
    journal.keep_image(Image("2" * 64, 9, file="22/lost"))
    assert journal.images.forget_unused() == ["22/lost"]
    assert kept(journal, "1" * 64, "2" * 64) == [True, False]


def test_images_older_than_allowed_expire_and_their_files_are_named(journal: Journal) -> None:
    journal.begin(plan("1"), [Image(OLD, 5, file="aa/old")])
    journal.finish("1", Outcome.done(), AT)
    assert journal.images.files() == {"aa/old"}
    assert journal.images.expire(1_000, AT) == []
    assert journal.images.expire(1_000, LATER) == ["aa/old"]
    assert journal.images.find(OLD) is None
    (change,) = journal.list_changes(["/r"], 10, None)
    assert not change.undoable


def test_names_that_are_not_unicode_come_back_as_they_were(journal: Journal) -> None:
    journal.begin(plan("1", path="/r/bad\udcff"), [])
    found = journal.find("1")
    assert found is not None
    assert found.first.src_path == "/r/bad\udcff"
    journal.checkpoint()


def moving(id_: str, *, root: str = "/r", other: str | None = None, undoes: str | None = None) -> Plan:
    items = tuple(
        Item(
            Op.MOVE,
            f"{root}/{n}",
            f"{root}/d/{n}",
            identity="1:2",
            position=n,
            reasoning="why",
            confidence=0.5,
            ctime_ns=2**62,
            composite_hash="c" * 64,
            reverses=n if undoes else None,
        )
        for n in range(3)
    )
    kind = ChangeKind.UNDO if undoes else ChangeKind.ORGANISE
    status = PlanStatus.RUNNING if undoes else PlanStatus.CREATED
    return Plan(id_, kind, root, items, AT, other, undoes=undoes, status=status, stepwise=True, folder=root)


def test_a_stepwise_plan_comes_back_as_it_was_made(journal: Journal) -> None:
    journal.plans.create(moving("p"))
    found = journal.find("p")
    assert found is not None
    assert replace(found, seq=0) == moving("p")
    assert journal.find_unfinished() == []
    assert journal.list_changes(["/r"], 10, None) == []


def test_an_intent_is_there_after_a_crash_with_its_helpers(opener: Callable[[str], Journal], tmp_path: Path) -> None:
    first = opener(str(tmp_path))
    first.plans.create(moving("p"))
    first.plans.approve("p", "h", "me", LATER)
    first.plans.start("p", ClientInfo())
    crossing = moving("p").items[1]._replace(temp_name=".t", quarantine_path="/r/bad\udcff/q")
    first.plans.advance("p", [], [moving("p").items[0], crossing], LATER)
    second = opener(str(tmp_path))
    (found,) = second.plans.find_interrupted()
    assert [item.intended_at for item in found.items] == [LATER, LATER, None]
    assert (found.items[1].temp_name, found.items[1].quarantine_path) == (".t", "/r/bad\udcff/q")
    assert (found.approved_hash, found.approved_by, found.approved_at) == ("h", "me", LATER)
    second.close()
    first.close()


def test_a_plan_that_is_carried_out_later_is_the_newest_change(journal: Journal) -> None:
    journal.plans.create(moving("p"))
    journal.begin(plan("edit"), [])
    journal.finish("edit", Outcome.done(), LATER)
    journal.plans.approve("p", "h", "me", LATER)
    journal.plans.start("p", ClientInfo())
    journal.plans.advance("p", [ItemOutcome(n, ItemStatus.DONE) for n in range(3)], [], LATER)
    assert [change.id for change in journal.list_changes(["/r"], 10, None)] == ["p", "edit"]
    assert journal.find_latest_on("/r/d/1", 1) == "p"


@pytest.mark.parametrize(("roots", "seen"), [(["/r"], ["in"]), (["/"], ["across", "in"]), (["/q"], []), ([], [])])
def test_only_plans_whose_roots_lie_beneath_are_seen(journal: Journal, roots: list[str], seen: list[str]) -> None:
    journal.plans.create(moving("in", root="/r/sub"))
    journal.plans.create(moving("across", other="/q"))
    assert [line.id for line in journal.plans.list_plans(roots, 10, None)] == seen
    assert all(line.moves == {ItemStatus.PENDING: 3} for line in journal.plans.list_plans(roots, 10, None))


def test_the_outcome_of_scattered_items_is_that_of_no_item_between_them(journal: Journal) -> None:
    journal.plans.create(moving("p"))
    journal.plans.approve("p", "h", "me", AT)
    journal.plans.start("p", ClientInfo())
    journal.plans.advance("p", [], [moving("p").items[2], moving("p").items[0]], AT)
    journal.plans.advance(
        "p", [ItemOutcome(2, ItemStatus.DONE), ItemOutcome(0, ItemStatus.DONE)], [moving("p").items[1]], AT
    )
    found = journal.find("p")
    assert found is not None
    assert [item.status for item in found.items] == [ItemStatus.DONE, ItemStatus.PENDING, ItemStatus.DONE]
    with pytest.raises(Conflict):
        journal.plans.advance("p", [ItemOutcome(0, ItemStatus.SKIPPED), ItemOutcome(1, ItemStatus.SKIPPED)], [], AT)
    assert journal.find("p") == found


def test_what_was_set_aside_is_named_once_its_time_is_over_and_then_forgotten(journal: Journal) -> None:
    journal.plans.create(moving("p"))
    journal.plans.approve("p", "h", "me", AT)
    journal.plans.start("p", ClientInfo())
    intents = [item._replace(temp_name=".t", quarantine_path=f"/q/{item.position}") for item in moving("p").items]
    journal.plans.advance("p", [], intents, AT)
    steps = [
        ItemOutcome(0, ItemStatus.DONE, identity="9:9"),
        ItemOutcome(1, ItemStatus.ERROR, "no"),
        ItemOutcome(2, ItemStatus.SKIPPED),
    ]
    journal.plans.advance("p", steps, [], AT)
    assert journal.plans.find_expired_quarantine(AT) == []
    (aside,) = journal.plans.find_expired_quarantine(LATER)
    assert (aside.plan_id, aside.position, aside.path, aside.roots) == ("p", 0, "/q/0", ("/r",))
    journal.plans.forget_quarantine([aside])
    assert journal.plans.find_expired_quarantine(LATER) == []


def test_a_journal_opens_after_a_kill_in_the_middle_of_opening(tmp_path: Path) -> None:
    open_journal(str(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as left_behind:
        left_behind.execute("CREATE TABLE stretch (filler BLOB)")
    open_journal(str(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as looked_at:
        assert not looked_at.execute("SELECT 1 FROM sqlite_master WHERE name = 'stretch'").fetchall()


def test_a_change_knows_its_client_and_a_plan_the_one_that_executed_it(journal: Journal) -> None:
    maker, person = ClientInfo("maker", "1"), ClientInfo(is_command=True)
    journal.begin(replace(plan("edit"), client=maker), [])
    journal.finish("edit", Outcome.done(), LATER)
    journal.plans.create(replace(moving("p"), client=maker))
    made = journal.find("p")
    assert made is not None
    assert made.client == maker
    journal.plans.approve("p", "h", "me", LATER)
    journal.plans.start("p", person)
    journal.plans.advance("p", [ItemOutcome(n, ItemStatus.DONE) for n in range(3)], [], LATER)
    assert [(change.id, change.client) for change in journal.list_changes(["/r"], 10, None)] == [
        ("p", person),
        ("edit", maker),
    ]
