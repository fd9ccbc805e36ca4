"""Changing files through a real client: edits, writes and moves."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.changing import changes, edit, failure, sha256
from tests.helpers.trees import harvest, plant


@pytest.mark.req("FS-05.a")
def test_read_only_mode_refuses_every_change(root: Path, ended_state: Path) -> None:
    (ended_state / "settings.yml").write_text("settings: {folders: {read_only: true}}\n")
    plant(root, {"a.txt": "a", "d": {}})
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "a.txt", "content": "x"}),
        ("edit_file", {"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]}),
        ("edit_files", {"files": [{"path": "a.txt", "edits": [{"old_string": "a", "new_string": "b"}]}]}),
        ("append_text", {"path": "a.txt", "content": "x"}),
        ("create_directory", {"path": "new"}),
        ("move_file", {"source": "a.txt", "destination": "b.txt"}),
        ("delete_file", {"path": "a.txt"}),
        ("undo_change", {"change_id": "0" * 32}),
    ]
    with Agent([root], ended_state) as agent:
        for name, arguments in attempts:
            reply = agent.call_with(name, arguments)
            assert reply.code == "PERMISSION_DENIED", name
            assert "read-only" in reply.error["message"]
        agent.call("list_changes").ok()
    assert harvest(root) == {"a.txt": b"a"}
    assert sorted(os.listdir(root)) == ["a.txt", "d"]


@pytest.mark.req("FS-17.a")
def test_a_move_onto_an_existing_target_is_an_error_and_both_stay(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "a", "b.txt": "b", "d": {"x": "1"}, "e": {}})
    for source, target in (("a.txt", "b.txt"), ("d", "e"), ("d", "a.txt"), ("a.txt", "e")):
        assert agent.call("move_file", source=source, destination=target).code == "ALREADY_EXISTS"
    assert harvest(root) == {"a.txt": b"a", "b.txt": b"b", "d/x": b"1"}


@pytest.mark.req("FS-17.a")
def test_many_moves_to_one_name_at_once_end_with_one_winner(agent: Agent, root: Path) -> None:
    plant(root, {f"{n}.txt": str(n) for n in range(20)})
    replies = agent.parallel(("move_file", {"source": f"{n}.txt", "destination": "target.txt"}) for n in range(20))
    assert sum(not reply.is_error for reply in replies) == 1
    assert sorted(harvest(root).values()) == sorted(str(n).encode() for n in range(20))


@pytest.mark.req("FS-17.b")
def test_a_write_keeps_mode_and_owner_and_leaves_no_helper(agent: Agent, root: Path) -> None:
    path = root / "run.sh"
    path.write_text("old")
    path.chmod(0o754)
    before = path.stat()
    reply = agent.call("write_file", path="run.sh", content="new").ok()
    after = path.stat()
    assert reply.text.startswith("Successfully wrote to run.sh")
    assert sha256(b"new") in reply.text
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.listdir(root) == ["run.sh"]


@pytest.mark.req("FS-17.b")
def test_a_reader_never_sees_half_a_write(agent: Agent, root: Path) -> None:
    path = root / "a.txt"
    versions = {str(n) * 100_000 for n in range(4)}
    path.write_text("0" * 100_000)
    pending = [agent.start("write_file", {"path": "a.txt", "content": text}) for text in sorted(versions) * 3]
    while not all(future.done() for future in pending):
        assert path.read_text() in versions
    assert all(not future.result().is_error for future in pending)


@pytest.mark.req("FS-17.b")
def test_no_link_leads_a_write_outside(agent: Agent, root: Path) -> None:
    outside = root.parent / "outside"
    plant(outside, {"secret.txt": "safe"})
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "dangling").symlink_to(outside / "new.txt")
    (root / "folder").symlink_to(outside)
    os.link(outside / "secret.txt", root / "hard")
    for path in ("file", "dangling", "folder/secret.txt", "folder/new.txt"):
        assert agent.call("write_file", path=path, content="evil").code == "ACCESS_DENIED"
        assert agent.call("append_text", path=path, content="evil").code == "ACCESS_DENIED"
    agent.call("write_file", path="hard", content="inside only").ok()
    assert harvest(outside) == {"secret.txt": b"safe"}


@pytest.mark.req("FS-17.b")
def test_a_missing_directory_is_made_by_create_directory(agent: Agent, root: Path) -> None:
    reply = agent.call("write_file", path="a/b/c.txt", content="x")
    assert reply.code == "NOT_FOUND"
    assert "create_directory" in reply.error["message"]
    agent.call("create_directory", path="a/b").ok()
    agent.call("write_file", path="a/b/c.txt", content="x").ok()
    assert harvest(root) == {"a/b/c.txt": b"x"}


@pytest.mark.req("FS-30")
def test_an_edit_needs_exactly_the_announced_occurrences(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "x = 1\nx = 1\n"})
    error = failure(agent, "a.txt", ("x = 1", "x = 2"))
    assert "found 2 times" in error["message"]
    assert failure(agent, "a.txt", ("  x = 1", "y"))["found"] == 0
    assert harvest(root) == {"a.txt": b"x = 1\nx = 1\n"}
    reply = agent.call(
        "edit_files",
        files=[
            {"path": "a.txt", "edits": [{"old_string": "x = 1", "new_string": "x = 2", "expected_replacements": 2}]}
        ],
    )
    assert reply.ok().data["files"][0]["status"] == "applied"
    assert harvest(root) == {"a.txt": b"x = 2\nx = 2\n"}


@pytest.mark.req("FS-31")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\nzwei\r\ndrei\r\nthree\r\n"),
        (b"\xef\xbb\xbfone\ntwo\nthree", b"\xef\xbb\xbfone\nzwei\ndrei\nthree"),
        (b"one\r\ntwo\nthree\r\nfour\r\n", b"one\r\nzwei\r\ndrei\nthree\r\nfour\r\n"),
        ("\ufeffone\r\ntwo\r\nä".encode("utf-16-le"), "\ufeffone\r\nzwei\r\ndrei\r\nä".encode("utf-16-le")),
    ],
)
def test_bytes_outside_the_edit_survive(agent: Agent, root: Path, before: bytes, after: bytes) -> None:
    path = root / "a.txt"
    path.write_bytes(before)
    path.chmod(0o640)
    assert edit(agent, "a.txt", ("one\ntwo", "one\nzwei\ndrei"))["status"] == "applied"
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.req("FS-32.a")
def test_edits_of_one_file_are_all_or_nothing_and_the_failing_one_is_named(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "one two"})
    error = failure(agent, "a.txt", ("one", "1"), ("1 two", "1 2"), ("three", "3"))
    assert error["message"].startswith("edits[2]")
    assert harvest(root) == {"a.txt": b"one two"}
    edit(agent, "a.txt", ("one", "1"), ("1 two", "1 2"))
    assert harvest(root) == {"a.txt": b"1 2"}


@pytest.mark.req("FS-32.b")
def test_files_of_one_call_are_independent(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "a", "b.txt": "b", "c.txt": "c"})
    wanted = [
        {"path": name, "edits": [{"old_string": old, "new_string": "X"}]}
        for name, old in (("a.txt", "a"), ("b.txt", "nope"), ("missing.txt", "x"), ("../out.txt", "x"), ("c.txt", "c"))
    ]
    reply = agent.call("edit_files", files=wanted).ok()
    outcomes = reply.data["files"]
    assert [outcome["status"] for outcome in outcomes] == ["applied", "failed", "failed", "failed", "applied"]
    assert outcomes[2]["error"]["error_type"] == "file_not_found"
    assert outcomes[3]["error"]["code"] == "ACCESS_DENIED"
    assert reply.text.startswith("Files edited: 2 of 5.")
    assert harvest(root) == {"a.txt": b"X", "b.txt": b"b", "c.txt": b"X"}


@pytest.mark.req("FS-33.a")
def test_an_empty_match_creates_and_never_overwrites(agent: Agent, root: Path) -> None:
    assert edit(agent, "new.txt", ("", "hello\n"))["status"] == "applied"
    assert harvest(root) == {"new.txt": b"hello\n"}
    for match in ("", "  \n"):
        error = failure(agent, "new.txt", (match, "other"))
        assert "OVERWRITE_FILE" in error["hint"]
    assert harvest(root) == {"new.txt": b"hello\n"}


@pytest.mark.req("FS-33.b")
def test_overwrite_and_append_work_as_match(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "old\n"})
    edit(agent, "a.txt", ("OVERWRITE_FILE", "new\n"), ("APPEND_TO_FILE", "more\n"))
    assert harvest(root) == {"a.txt": b"new\nmore\n"}
    agent.call("append_text", path="a.txt", content="end").ok()
    assert harvest(root) == {"a.txt": b"new\nmore\nend"}


@pytest.mark.req("FS-34.a")
def test_a_match_equal_to_its_replacement_is_a_no_change_error(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "same"})
    assert "nothing would change" in failure(agent, "a.txt", ("same", "same"))["message"]
    assert changes(agent) == []


@pytest.mark.req("FS-34.b")
def test_typographic_twins_match_when_they_map_to_one_place(agent: Agent, root: Path) -> None:
    plant(
        root, {"a.txt": "He said \u201cyes\u201d \u2013 twice.\n", "b.txt": "\u201ca\u201d \u2018a\u2019 \u201ca\u201d"}
    )
    edit(agent, "a.txt", ('said "yes" - twice', 'said "no" - twice'))
    assert (root / "a.txt").read_text() == "He said \u201cno\u201d \u2013 twice.\n"
    assert failure(agent, "b.txt", ('"a"', "b"))["found"] == 0


@pytest.mark.req("FS-34.c")
def test_a_near_miss_is_suggested_and_not_applied(agent: Agent, root: Path) -> None:
    text = "def first():\n    return 1\n\n\ndef second(a, b):\n    return a + b\n"
    plant(root, {"a.py": text})
    error = failure(agent, "a.py", ("def second(a,b):\n  return a+b", "x"))
    assert 1 <= len(error["suggestions"]) <= 3
    best = error["suggestions"][0]
    assert (best["start_line"], best["end_line"]) == (5, 6)
    assert 0.5 <= best["similarity"] < 1
    assert harvest(root) == {"a.py": text.encode()}


@pytest.mark.req("FS-34.d")
def test_edit_errors_say_what_went_wrong_and_show_a_small_file(agent: Agent, root: Path) -> None:
    plant(root, {"small.txt": "small", "long.txt": "line\n" * 5_000})
    error = failure(agent, "small.txt", ("nope", "x"))
    assert (error["error"], error["error_type"], error["code"]) == (True, "validation_error", "INVALID_ARGUMENT")
    assert error["hint"]
    assert error["file_content"] == "small"
    assert "file_content" not in failure(agent, "long.txt", ("nope", "x"))
    assert failure(agent, "missing.txt", ("nope", "x"))["error_type"] == "file_not_found"
    assert failure(agent, "small.txt", ("", "x"))["error_type"] == "file_exists"
    assert failure(agent, "small.txt", ("small", "x"), expected_hash=sha256(b"other"))["error_type"] == "conflict"
    single = agent.call("edit_file", path="small.txt", edits=[{"oldText": "nope", "newText": "x"}])
    assert single.error["file_content"] == "small"


@pytest.mark.req("FS-35")
def test_binary_files_large_files_and_long_matches_are_refused(root: Path, ended_state: Path) -> None:
    limits = "settings: {folders: {max_edit_bytes: 1000, max_match_chars: 50}}\n"
    (ended_state / "settings.yml").write_text(limits)
    plant(root, {"a.bin": b"\x00\x01\x02ab", "big.txt": "x" * 1_001, "a.txt": "a" * 60})
    with Agent([root], ended_state) as agent:
        assert "binary" in failure(agent, "a.bin", ("ab", "x"))["message"]
        assert "1001 bytes" in failure(agent, "big.txt", ("xx", "y"))["message"]
        assert "limit is 50" in failure(agent, "a.txt", ("a" * 60, "y"))["message"]


@pytest.mark.req("FS-36.a", "FS-38.b")
def test_twenty_parallel_edits_of_one_file_are_all_applied_and_all_undoable(agent: Agent, root: Path) -> None:
    text = "".join(f"slot {n}: empty\n" for n in range(20))
    plant(root, {"a.txt": text})
    replies = agent.parallel(
        ("edit_file", {"path": "a.txt", "edits": [{"oldText": f"slot {n}: empty", "newText": f"slot {n}: full"}]})
        for n in range(20)
    )
    assert not any(reply.is_error for reply in replies)
    assert (root / "a.txt").read_text() == text.replace("empty", "full")
    for change in changes(agent):
        agent.call("undo_change", change_id=change["change_id"]).ok()
    assert (root / "a.txt").read_text() == text


@pytest.mark.req("FS-36.b")
def test_every_answer_gives_the_hash_that_guards_the_next_edit(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "0"})
    first = edit(agent, "a.txt", ("0", "1"))
    assert first["hash"] == sha256(b"1")
    second = edit(agent, "a.txt", ("1", "2"), expected_hash=first["hash"])
    assert second["hash"] == sha256(b"2")
    stale = failure(agent, "a.txt", ("2", "3"), expected_hash=first["hash"])
    assert stale["code"] == "CONFLICT"
    assert harvest(root) == {"a.txt": b"2"}


@pytest.mark.req("FS-37")
def test_a_dry_run_shows_the_unified_diff_and_writes_nothing(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "".join(f"{n}\n" for n in range(20))})
    before = (root / "a.txt").stat()
    arguments = {"path": "a.txt", "edits": [{"oldText": "10\n", "newText": "ten\n"}]}
    reply = agent.call_with("edit_file", {**arguments, "dryRun": True}).ok()
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n" in reply.text
    after = (root / "a.txt").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert changes(agent) == []
    assert agent.call_with("edit_file", arguments).ok().texts[0] == reply.texts[0]
