"""The person's tools for files: known directories, large folders by page, whole texts, saves by hash, each with its undo."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.person import Person
from tests.helpers.trees import harvest, plant

pytestmark = pytest.mark.timeout(120)

LATIN = b"caf\xe9.txt".decode(errors="surrogateescape")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a directory that an agent works in."""
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def agent(root: Path, state_dir: Path) -> Iterator[Agent]:
    """Give an agent that is connected with the directory."""
    with Agent([root], state_dir, name="desk") as client:
        client.call("list_allowed_directories").ok()
        yield client


@pytest.fixture
def person(agent: Agent, state_dir: Path) -> Person:
    """Give the person of the server that serves the agent."""
    return Person(state_dir)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.mark.req("SV-40.a")
def test_the_directories_of_clients_and_of_past_changes_are_known_with_their_sources(
    person: Person, agent: Agent, root: Path
) -> None:
    (known,) = [known for known in person.call("known_roots")["roots"] if known["path"] == str(root)]
    assert known == {"path": str(root), "name": "project", "exists": True, "writable": True, "sources": ["client"]}

    agent.call("write_file", path="a.txt", content="a").ok()

    (known,) = [known for known in person.call("known_roots")["roots"] if known["path"] == str(root)]
    assert known["sources"] == ["client", "changes"]


@pytest.mark.req("SV-40.a")
def test_a_folder_is_paged_sorted_and_filtered_with_its_true_total(person: Person, root: Path) -> None:
    plant(root, {f"f{number:03}.txt": "x" * number for number in range(30)})
    plant(root, {"Zoo": {"a": ""}, "b": {}, ".hidden": "1"})
    os.utime(root / "f007.txt", (2_000_000_000, 2_000_000_000))

    page = person.call("browse_folder", path=str(root), offset=0, limit=5)
    assert [(entry["name"], entry["type"]) for entry in page["entries"]] == [
        ("b", "directory"),
        ("Zoo", "directory"),
        (".hidden", "file"),
        ("f000.txt", "file"),
        ("f001.txt", "file"),
    ]
    assert (page["total"], page["has_more"]) == (33, True)
    last = person.call("browse_folder", path=str(root), offset=32, limit=5)
    assert [entry["name"] for entry in last["entries"]] == ["f029.txt"]
    assert last["has_more"] is False
    largest = person.call("browse_folder", path=str(root), sort="size", limit=2)["entries"]
    assert [(entry["name"], entry["size_bytes"]) for entry in largest] == [("f029.txt", 29), ("f028.txt", 28)]
    assert person.call("browse_folder", path=str(root), sort="modified", limit=1)["entries"][0]["name"] == "f007.txt"
    filtered = person.call("browse_folder", path=str(root), filter="F00", limit=3)
    assert [entry["name"] for entry in filtered["entries"]] == ["f000.txt", "f001.txt", "f002.txt"]
    assert filtered["total"] == 10
    assert person.call("browse_folder", path=str(root), offset=99)["entries"] == []


@pytest.mark.req("SV-40.a")
def test_a_page_shows_what_was_added_and_removed_since(person: Person, root: Path) -> None:
    plant(root, {"a": "", "c": ""})
    time.sleep(0.2)
    steps: list[tuple[list[str], Callable[[], object]]] = [
        (["a", "c"], (root / "b").touch),
        (["a", "b", "c"], (root / "a").unlink),
        (["b", "c"], list),
    ]
    for expected, change in steps:
        for _ in range(2):
            names = [entry["name"] for entry in person.call("browse_folder", path=str(root))["entries"]]
            assert names == expected
        change()


@pytest.mark.req("SV-40.a")
def test_a_name_that_is_not_utf8_can_be_opened_renamed_and_deleted(person: Person, root: Path) -> None:
    plant(root, {LATIN: "text\n"})
    (entry,) = person.call("browse_folder", path=str(root))["entries"]
    assert entry["name"] == "caf\ufffd.txt"
    assert entry["path"] == f"file://{root}/caf%E9.txt"

    opened = person.call("open_file", path=entry["path"])
    assert (opened["text"], opened["name"]) == ("text\n", "caf\ufffd.txt")
    saved = person.call("save_file", path=entry["path"], text="new\n", expected_hash=opened["hash"])
    assert harvest(root) == {LATIN: b"new\n"}
    person.call("undo_for_person", change_id=saved["change_id"])
    moved = person.call("move_for_person", path=entry["path"], destination=f"{root}/coffee.txt")
    assert harvest(root) == {"coffee.txt": b"text\n"}
    person.call("undo_for_person", change_id=moved["change_id"])
    person.call("delete_for_person", path=entry["path"])
    assert harvest(root) == {}


@pytest.mark.req("SV-40.b")
def test_a_file_is_opened_whole_with_its_hash_and_saved_under_it(person: Person, root: Path) -> None:
    path = root / "a.txt"
    path.write_bytes(b"one\ntwo\n")
    opened = person.call("open_file", path=str(path))
    assert opened["text"] == "one\ntwo\n"
    assert opened["hash"] == digest(b"one\ntwo\n")
    assert (opened["encoding"], opened["line_ending"], opened["media_type"]) == ("utf-8", "LF", "text/plain")
    assert (opened["is_binary"], opened["can_save"], opened.get("reason")) == (False, True, None)

    saved = person.call("save_file", path=str(path), text="one\nthree\n", expected_hash=opened["hash"])

    assert path.read_bytes() == b"one\nthree\n"
    assert saved["hash"] == digest(b"one\nthree\n")
    (newest, *_) = person.call("all_changes", directory=str(root))["changes"]
    assert (newest["change_id"], newest["kind"], newest["is_yours"]) == (saved["change_id"], "write", True)
    person.call("undo_for_person", change_id=saved["change_id"])
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.req("SV-40.b")
def test_a_save_against_another_content_is_a_conflict_with_the_present_hash(person: Person, root: Path) -> None:
    path = root / "a.txt"
    path.write_text("mine\n")
    opened = person.call("open_file", path=str(path))
    path.write_text("theirs\n")

    error = person.refused("save_file", path=str(path), text="x", expected_hash=opened["hash"])

    assert (error["code"], error["present_hash"]) == ("CONFLICT", digest(b"theirs\n"))
    assert person.refused("save_file", path=str(path), text="x")["present_hash"] == digest(b"theirs\n")
    path.unlink()
    assert person.refused("save_file", path=str(path), text="x", expected_hash=opened["hash"])["code"] == "CONFLICT"
    assert harvest(root) == {}
    made = person.call("save_file", path=str(path), text="new\n")
    assert path.read_text() == "new\n"
    assert person.call("save_file", path=str(path), text="new\n", expected_hash=made["hash"]).get("change_id") is None


@pytest.mark.req("SV-40.b")
@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a\r\nb\r\n", "a\nc\nb\n", b"a\r\nc\r\nb\r\n"),
        (b"a\r\nb\nc\rd", "a\nb\nX\nc\nd", b"a\r\nb\nX\nc\rd"),
        ("grün\r\n".encode("cp1252"), "grün\nblau\n", "grün\r\nblau\r\n".encode("cp1252")),
        (b"\xff\xfe" + "a\n".encode("utf-16-le"), "b\n", b"\xff\xfe" + "b\n".encode("utf-16-le")),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", "", b""),
    ],
)
def test_a_save_keeps_the_encoding_and_the_line_ends_of_lines_that_were_there(
    person: Person, root: Path, before: bytes, text: str, after: bytes
) -> None:
    path = root / "a.txt"
    path.write_bytes(before)
    opened = person.call("open_file", path=str(path))

    person.call("save_file", path=str(path), text=text, expected_hash=opened["hash"])

    assert path.read_bytes() == after


@pytest.mark.req("SV-40.b")
def test_what_is_no_text_is_opened_with_the_reason_and_not_saved(person: Person, root: Path) -> None:
    plant(root, {"p.png": b"\x89PNG\r\n\x1a\n\0\0", "big.txt": b"x" * 5_000_001})
    (root / "locked.txt").write_text("a")
    (root / "locked.txt").chmod(0o444)
    png = person.call("open_file", path=str(root / "p.png"))
    assert (png.get("text"), png["is_binary"], png["can_save"], png["media_type"]) == (None, True, False, "image/png")
    big = person.call("open_file", path=str(root / "big.txt"))
    assert (big.get("text"), big.get("hash"), big["size_bytes"], big["is_binary"]) == (None, None, 5_000_001, False)
    assert "are opened here" in big["reason"]
    error = person.refused("save_file", path=str(root / "p.png"), text="x", expected_hash=png["hash"])
    assert error["code"] == "INVALID_ARGUMENT"
    if os.geteuid():
        assert person.call("open_file", path=str(root / "locked.txt"))["can_save"] is False


@pytest.mark.req("SV-40.b")
def test_directories_are_made_moved_and_deleted_with_one_undo_each(person: Person, root: Path) -> None:
    plant(root, {"tree": {"a": "1", "sub": {"b": "22"}}})
    original = harvest(root)
    made = person.call("make_directory_for_person", path=str(root / "x" / "y"))
    assert (root / "x" / "y").is_dir()
    assert person.call("make_directory_for_person", path=str(root / "x" / "y")).get("change_id") is None
    moved = person.call("move_for_person", path=str(root / "tree"), destination=str(root / "x" / "tree"))
    error = person.refused("move_for_person", path=str(root / "x"), destination=str(root / "x"))
    assert error["code"] in ("ALREADY_EXISTS", "INVALID_ARGUMENT")
    preview = person.call("preview_delete", path=str(root / "x"))
    assert preview == {
        "path": str(root / "x"),
        "type": "directory",
        "entries": 6,
        "files": 2,
        "directories": 4,
        "size_bytes": 3,
        "can_be_undone": True,
    }
    assert person.refused("delete_for_person", path=str(root / "x"))["code"] == "INVALID_ARGUMENT"
    (root / "x" / "late").touch()
    assert person.refused("delete_for_person", path=str(root / "x"), expected_entries=6)["code"] == "CONFLICT"
    (root / "x" / "late").unlink()
    deleted = person.call("delete_for_person", path=str(root / "x"), expected_entries=6)
    assert harvest(root) == {}
    for change in (deleted, moved, made):
        person.call("undo_for_person", change_id=change["change_id"])
    assert harvest(root) == original


ATTACKS: dict[str, Callable[[Path], str]] = {
    "outside": lambda root: str(root.parent / "outside" / "secret.txt"),
    "climbing": lambda root: f"{root}/../outside/secret.txt",
    "climbing in a URI": lambda root: f"file://{root}/%2e%2e/outside/secret.txt",
    "through a link to a file": lambda root: str(root / "link.txt"),
    "through a link to a directory": lambda root: str(root / "door" / "secret.txt"),
    "relative": lambda root: "a.txt",
    "with NUL": lambda root: f"{root}/a\0b",
    "with NUL in a URI": lambda root: f"file://{root}/a%00b",
    "another machine": lambda root: "file://elsewhere/etc/passwd",
    "the system": lambda root: "/etc/passwd",
}


@pytest.mark.req("SV-40.c")
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_outside_the_known_directories_is_read_or_changed(
    person: Person, root: Path, state_dir: Path, attack: str
) -> None:
    outside = root.parent / "outside"
    plant(root.parent, {"outside": {"secret.txt": "CANARY"}})
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "door").symlink_to(outside)
    path = ATTACKS[attack](root)
    before = harvest(root.parent)

    errors = [
        person.refused("open_file", path=path),
        person.refused("save_file", path=path, text="owned", expected_hash=digest(b"CANARY")),
        person.refused("save_file", path=path, text="owned"),
    ]
    if "link" not in attack:
        errors += [
            person.refused("browse_folder", path=path),
            person.refused("move_for_person", path=f"{root}/nothing", destination=path),
            person.refused("make_directory_for_person", path=path),
            person.refused("preview_delete", path=path),
            person.refused("delete_for_person", path=path),
            person.refused("history_of", path=path),
        ]

    assert {error["code"] for error in errors} <= {"ACCESS_DENIED", "INVALID_PATH", "NOT_FOUND"}, errors
    assert "CANARY" not in str(errors)
    assert harvest(root.parent) == before


@pytest.mark.req("SV-40.c")
def test_a_link_that_takes_the_place_of_a_known_directory_opens_nothing(
    person: Person, agent: Agent, root: Path, tmp_path: Path
) -> None:
    plant(tmp_path, {"outside": {"secret.txt": "CANARY"}})
    agent.call("write_file", path="a.txt", content="a").ok()
    root.rename(tmp_path / "elsewhere")
    root.symlink_to(tmp_path / "outside")

    for tool in ("browse_folder", "open_file"):
        error = person.refused(tool, path=str(root / "secret.txt") if tool == "open_file" else str(root))
        assert error["code"] in ("ACCESS_DENIED", "NOT_FOUND")


@pytest.mark.req("SV-40.c")
def test_fifos_devices_and_the_state_folder_are_refused(person: Person, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (entry,) = person.call("browse_folder", path=str(root))["entries"]
    assert (entry["type"], entry.get("size_bytes")) == ("other", None)
    began = time.monotonic()
    assert person.refused("open_file", path=str(root / "pipe"))["code"] == "PERMISSION_DENIED"
    assert person.refused("save_file", path=str(root / "pipe"), text="x", expected_hash="0")["code"] in (
        "PERMISSION_DENIED",
        "CONFLICT",
    )
    assert time.monotonic() - began < 5


@pytest.mark.req("SV-40.c")
def test_no_agent_can_list_or_call_a_tool_of_the_person(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "a"})
    for tool, arguments in {
        "known_roots": {},
        "browse_folder": {"path": str(root)},
        "open_file": {"path": str(root / "a.txt")},
        "save_file": {"path": str(root / "a.txt"), "text": "x"},
        "delete_for_person": {"path": str(root / "a.txt")},
    }.items():
        assert agent.call(tool, **arguments).code == "NOT_FOUND"
    assert harvest(root) == {"a.txt": b"a"}


@pytest.mark.req("SV-40.b")
def test_the_history_of_a_file_goes_back_through_its_moves(person: Person, agent: Agent, root: Path) -> None:
    plant(root, {"docs": {"a.txt": "1\n"}, "other.txt": "1\n"})
    agent.call("write_file", path="docs/a.txt", content="2\n").ok()
    agent.call("write_file", path="other.txt", content="2\n").ok()
    agent.call("move_file", source="docs/a.txt", destination="docs/b.txt").ok()
    agent.call("move_file", source="docs", destination="texts").ok()
    person.call("make_directory_for_person", path=str(root / "docs"))
    (root / "docs" / "b.txt").write_text("another file\n")
    agent.call("write_file", path="docs/b.txt", content="another file again\n").ok()
    agent.call("write_file", path="texts/b.txt", content="3\n").ok()

    history = person.call("history_of", path=str(root / "texts" / "b.txt"))

    rows = [(change["kind"], change["path"].removeprefix(f"{root}/")) for change in history["changes"]]
    assert rows == [("write", "texts/b.txt"), ("move", "docs"), ("move", "docs/a.txt"), ("write", "docs/a.txt")]
    assert history["has_more"] is False
    first = person.call("history_of", path=str(root / "texts" / "b.txt"), limit=2)
    assert first["has_more"] is True
    rest = person.call("history_of", path=str(root / "texts" / "b.txt"), older_than=first["changes"][-1]["change_id"])
    assert first["changes"] + rest["changes"] == history["changes"]


@pytest.mark.req("SV-40.e")
def test_names_and_lines_are_found_in_one_directory_or_in_all(person: Person, agent: Agent, root: Path) -> None:
    plant(root, {"docs": {"Plan.md": "first\nthe (plan) of 1+1\n", LATIN: "the plan\n"}, "plan": {}, "b.bin": "\0plan"})

    by_name = person.call("find_names", text="PLAN")
    own = [hit for hit in by_name["hits"] if str(root) in hit["path"]]
    assert [(hit["name"], hit["type"]) for hit in own] == [("Plan.md", "file"), ("plan", "directory")]
    assert by_name["is_whole"] is True
    (latin,) = [hit for hit in person.call("find_names", text="caf")["hits"] if str(root) in hit["path"]]
    assert latin["path"] == f"file://{root}/docs/caf%E9.txt"

    lines = person.call("find_lines", text="the (PLAN) of 1+", path=str(root))
    assert lines["hits"] == [{"path": f"{root}/docs/Plan.md", "line": 2, "text": "the (plan) of 1+1"}]
    assert person.call("find_lines", text="PLAN", match_case=True)["hits"] == []
    pattern = person.call("find_lines", text="^the .?plan", is_pattern=True)["hits"]
    assert [hit["path"] for hit in pattern] == [f"{root}/docs/Plan.md", latin["path"]]
    cut = person.call("find_lines", text="plan", limit=1)
    assert (len(cut["hits"]), cut["is_whole"]) == (1, False)
    in_file = person.call("find_lines", text="first", path=f"{root}/docs/Plan.md")["hits"]
    assert [(hit["path"], hit["line"]) for hit in in_file] == [(f"{root}/docs/Plan.md", 1)]
    assert person.refused("find_lines", text="(", is_pattern=True)["code"] == "INVALID_QUERY"
    assert person.refused("find_names", text="x", path="/")["code"] == "ACCESS_DENIED"
