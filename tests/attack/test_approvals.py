"""An agent that changes what a person is about to approve: each command of the person refuses, in these words."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import stop_server
from tests.helpers.organising import HOUSE, Tidier, approved, organise, organised, tidying
from tests.helpers.reviewer import TEXT, Reviewer, reviewing, with_settings
from tests.helpers.terminal import answered
from tests.helpers.trees import harvest, plant

pytestmark = pytest.mark.timeout(120)

EVIL = "os.system('evil')\n"
NO_SUCH, WRONG = 1, 2
SETTINGS = {"server": {"port": 0}, "review": {"wait_seconds": 0.2}}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder whose calls hardly wait."""
    folder = with_settings(tmp_path_factory.mktemp("state"), SETTINGS)
    yield folder
    stop_server(folder)


@pytest.fixture
def desk(root: Path, state: Path) -> Iterator[Reviewer]:
    with reviewing(root, state) as reviewer:
        yield reviewer


@pytest.fixture
def tidier(root: Path, state: Path) -> Iterator[Tidier]:
    plant(root, HOUSE)
    with tidying(root, state) as tidier:
        yield tidier


def propose(desk: Reviewer, *texts: str) -> tuple[str, str]:
    """Propose one hunk for each text; return the session and the id that the person sees."""
    desk.write()
    edits = [
        {"old_string": f"line {number}\n", "new_string": text} for number, text in zip((3, 27), texts, strict=False)
    ]
    session = str(desk.propose(path="a.txt", edits=edits)["session_path"])
    (review,) = desk.waiting()
    return session, str(review["review_id"])


def show(desk: Reviewer, review: str) -> tuple[str, list[str]]:
    """Look at a review; return the code and the codes of the hunks."""
    shown = json.loads(desk.command("show", review, "--json").stdout)
    return shown["code"], [hunk["code"] for hunk in shown["hunks"]]


def refused(desk: Reviewer, *words: str) -> str:
    """Approve in vain, and return what the terminal says."""
    done = desk.command("approve", *words)
    assert (done.returncode in (NO_SUCH, WRONG), "APPROVE:" in done.stdout) == (True, False), done
    return done.stderr


def approve(desk: Reviewer) -> None:
    """Look at the one review of this folder and approve it."""
    (review,) = desk.waiting()
    code, _ = show(desk, review["review_id"])
    assert desk.command("approve", review["review_id"], code, "--yes").returncode == 0


def nothing_approved(desk: Reviewer, session: str) -> bool:
    """Return whether the review still waits, and a commit writes nothing."""
    assert desk.commit(session).code == "CONFLICT"
    assert (desk.root / "a.txt").read_text() == TEXT
    return bool(desk.propose(path="a.txt", session_path=session)["user_action"] == "PENDING")


@pytest.mark.req("RV-12.a")
def test_a_review_that_is_replaced_after_it_was_shown_is_refused(desk: Reviewer) -> None:
    session, review = propose(desk, "print('hello')\n")
    code, _ = show(desk, review)
    desk.propose(path="a.txt", session_path=session, old_string="print('hello')\n", new_string=EVIL)
    assert refused(desk, review, code, "--yes") == (
        f"holdfast: The code '{code}' does not fit: what it named has changed since you looked, or it is mistyped. "
        f"Nothing was approved. Look again: holdfast review show {review[:8]}\n"
    )
    assert nothing_approved(desk, session)
    assert show(desk, review)[0] != code


@pytest.mark.req("RV-12.a")
def test_yes_without_a_code_approves_nothing_and_teaches_the_code(desk: Reviewer) -> None:
    session, review = propose(desk, EVIL)
    short = review[:8]
    advice = (
        f"Look at it with `holdfast review show {short}`, then approve what it showed: "
        f"holdfast review approve {short} CODE --yes\n"
    )
    assert refused(desk, review, "--yes") == f"holdfast: --yes needs the code of what you have looked at. {advice}"
    assert refused(desk, review) == f"holdfast: There is no terminal to ask at. {advice}"
    for wrong in ("a", "aaaaaaaa", "é", "0" * 500):
        assert "does not fit" in refused(desk, review, wrong, "--yes")
    assert nothing_approved(desk, session)


@pytest.mark.req("RV-12.a")
def test_the_code_of_one_review_is_not_that_of_another(desk: Reviewer) -> None:
    session, review = propose(desk, "print('hello')\n")
    code, _ = show(desk, review)
    desk.command("reject", review)
    again, other = propose(desk, "print('hello')  # again\n")
    desk.propose(
        path="a.txt", session_path=again, old_string="print('hello')  # again\n", new_string="print('hello')\n"
    )
    assert "does not fit" in refused(desk, other, code, "--yes")
    assert "There is no open review" in refused(desk, review, code, "--yes")
    assert nothing_approved(desk, again)
    assert session != again


@pytest.mark.req("RV-12.b")
def test_a_hunk_that_takes_the_place_of_another_is_not_approved(desk: Reviewer) -> None:
    session, review = propose(desk, "three\n", EVIL)
    code, (first, second) = show(desk, review)
    desk.propose(path="a.txt", session_path=session, old_string="three\n", new_string="line 3\n")
    assert show(desk, review)[1] == [second], "a hunk keeps its code whatever becomes of the others"
    assert "does not fit" in refused(desk, review, code, "--hunks", first, "--yes")
    newer, _ = show(desk, review)
    for unknown in (first, "1"):
        assert refused(desk, review, newer, "--hunks", unknown, "--yes") == (
            f"holdfast: This review has no hunk with the code '{unknown}'. --hunks takes the codes that "
            f"`holdfast review show {review[:8]}` prints, with commas between them.\n"
        )
    assert nothing_approved(desk, session)


@pytest.mark.req("RV-12.b")
def test_a_hunk_with_the_same_place_and_another_text_has_another_code(desk: Reviewer) -> None:
    session, review = propose(desk, "three\n")
    _, (harmless,) = show(desk, review)
    desk.propose(path="a.txt", session_path=session, old_string="three\n", new_string=EVIL)
    _, (evil,) = show(desk, review)
    assert harmless != evil


@pytest.mark.req("RV-12.a")
def test_a_review_that_changes_while_the_person_is_asked_is_not_approved(desk: Reviewer) -> None:
    session, review = propose(desk, "print('hello')\n")

    class Late:
        """Says yes at the terminal, once the agent has proposed something else."""

        def __init__(self) -> None:
            self.status, self.output = answered(
                desk.state,
                b"y\n",
                "review",
                "approve",
                review,
                before=lambda: desk.propose(
                    path="a.txt", session_path=session, old_string="print('hello')\n", new_string=EVIL
                ),
            )

    late = Late()
    assert (late.status, b"+print('hello')" in late.output) == (NO_SUCH, True)
    assert nothing_approved(desk, session)


@pytest.mark.req("RV-12.a")
def test_a_plan_that_is_revised_after_it_was_shown_is_refused(tidier: Tidier, state: Path) -> None:
    before = harvest(tidier.root)
    plan = tidier.plan()
    name = plan["plan_id"]
    shown = organised(state, "show", name)
    assert f"organise approve {name[:8]} {shown['code']} --yes" in organise(state, "show", name).stdout
    tidier.revise(plan, scan_0012__txt="Recipes")
    late = organise(state, "approve", name, shown["code"], "--yes")
    assert (late.returncode, late.stdout, late.stderr) == (
        NO_SUCH,
        "",
        f"holdfast: The code '{shown['code']}' does not fit: what it named has changed since you looked, or it is "
        f"mistyped. Nothing was approved. Look again: holdfast organise show {name[:8]} --all\n",
    )
    blind = organise(state, "approve", name, "--yes")
    assert (blind.returncode, blind.stderr) == (
        WRONG,
        f"holdfast: --yes needs the code of what you have looked at. Look at it with `holdfast organise show {name[:8]} "
        f"--all`, then approve what it showed: holdfast organise approve {name[:8]} CODE --yes\n",
    )
    assert tidier.execute(plan).code == "PERMISSION_DENIED"
    assert harvest(tidier.root) == before


def swap(root: Path) -> None:
    """Exchange two directories that hold a file of the same name and content."""
    (root / "mine").rename(root / "aside")
    (root / "other").rename(root / "mine")
    (root / "aside").rename(root / "other")


@pytest.mark.req("RV-12.c")
@pytest.mark.parametrize("is_new", [True, False])
def test_another_directory_in_the_place_of_the_one_that_was_shown_is_a_conflict(desk: Reviewer, is_new: bool) -> None:
    plant(desk.root, {name: {} if is_new else {"a.txt": TEXT} for name in ("mine", "other")})
    edit = {"new_string": "new\n"} if is_new else {"old_string": "line 3\n", "new_string": "three\n"}
    path = str(desk.root / "mine/a.txt")
    session = str(desk.propose(path=path, **edit)["session_path"])
    approve(desk)
    swap(desk.root)
    conflict = desk.commit(session, path)
    assert (conflict.code, conflict.error["user_action"]) == ("CONFLICT", "CONFLICT")
    assert "Another directory is in the place of the one" in conflict.error["message"]
    assert harvest(desk.root) == ({} if is_new else dict.fromkeys(("mine/a.txt", "other/a.txt"), TEXT.encode()))
    swap(desk.root)
    desk.commit(session, path).ok()
    assert (desk.root / "mine/a.txt").read_text() in ("new\n", TEXT.replace("line 3\n", "three\n"))


@pytest.mark.req("RV-12.c")
def test_a_link_in_the_place_of_the_directory_is_a_conflict(desk: Reviewer) -> None:
    plant(desk.root, {name: {"a.txt": TEXT} for name in ("mine", "other")})
    path = str(desk.root / "mine/a.txt")
    session = str(desk.propose(path=path, old_string="line 3\n", new_string="three\n")["session_path"])
    approve(desk)
    (desk.root / "mine").rename(desk.root / "moved")
    (desk.root / "mine").symlink_to("moved")
    assert desk.commit(session, path).code in ("CONFLICT", "NOT_FOUND")
    assert (desk.root / "moved/a.txt").read_text() == TEXT


@pytest.mark.req("RV-12.c")
def test_a_file_that_is_saved_anew_under_its_name_is_merged(desk: Reviewer) -> None:
    plant(desk.root, {"mine": {"a.txt": TEXT}})
    path = desk.root / "mine/a.txt"
    session = str(desk.propose(path=str(path), old_string="line 3\n", new_string="three\n")["session_path"])
    approve(desk)
    (desk.root / "mine/fresh").write_text(TEXT.replace("line 27\n", "twenty-seven\n"))
    (desk.root / "mine/fresh").replace(path)
    desk.commit(session, str(path)).ok()
    assert path.read_text() == TEXT.replace("line 27\n", "twenty-seven\n").replace("line 3\n", "three\n")


@pytest.mark.req("RV-12.c")
def test_the_directory_is_known_again_after_a_restart(root: Path, ended_state: Path) -> None:
    with_settings(ended_state, SETTINGS)
    plant(root, {name: {"a.txt": TEXT} for name in ("mine", "other")})
    path = str(root / "mine/a.txt")
    with reviewing(root, ended_state) as desk:
        session = str(desk.propose(path=path, old_string="line 3\n", new_string="three\n")["session_path"])
        approve(desk)
    stop_server(ended_state)
    swap(root)
    with reviewing(root, ended_state) as desk:
        assert desk.commit(session, path).code == "CONFLICT"
        stop_server(ended_state)
    swap(root)
    with reviewing(root, ended_state) as desk:
        desk.commit(session, path).ok()
    assert (root / "other/a.txt").read_text() == TEXT


@pytest.mark.req("RV-12.c")
@pytest.mark.parametrize("name", ["Invoices", "inbox"])
def test_a_plan_moves_nothing_into_or_out_of_another_directory(root: Path, ended_state: Path, name: str) -> None:
    inbox = {name: text for name, text in HOUSE.items() if isinstance(text, str)}
    folders = {name: below for name, below in HOUSE.items() if not isinstance(below, str)}
    plant(root, {**folders, "inbox": inbox})
    with tidying(root, ended_state) as tidier:
        plan = tidier.plan(include_subfolders=True)
        moves = tidier.moves(plan)
        touched = [source for source, target in moves.items() if name in (source.split("/")[0], target.split("/")[0])]
        assert touched
        approved(ended_state, plan["plan_id"])
        shutil.copytree(root / name, root / "copy", copy_function=os.link)
        (root / name).rename(root / "original")
        (root / "copy").rename(root / name)
        done = tidier.execute(plan)
        problems = {move["path"]: move["error"] for move in done.data["problems"]}
        assert problems.keys() >= set(touched)
        assert {problems[source] for source in touched} == {
            "A directory in its path was replaced since the plan was made."
        }
