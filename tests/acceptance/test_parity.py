"""Holdfast drops in for the reference filesystem server: the same names, the same meaning, and none of its faults."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from PIL import Image

from tests.helpers.agent import LEGACY, Agent, Reply
from tests.helpers.peer import Pair
from tests.helpers.trees import Tree

UNLISTED = {"read_multiple_files", "list_directory_with_sizes"}
"""Called like any other, and listed only with `compat`."""


def lines(text: str) -> list[str]:
    """Take a listing as the set of its lines: only ours is sorted by name."""
    return sorted(line.rstrip() for line in text.splitlines())


@pytest.mark.req("SV-06.d")
def test_every_tool_of_the_reference_is_here_with_its_parameters(sides: Pair, ended_state: Path) -> None:
    (ended_state / "settings.yml").write_text("settings: {folders: {compat: true}}\n")
    with Agent([sides.ours.folder], ended_state, mode=LEGACY) as agent:
        ours = {tool.name: tool for tool in agent.tools()}
        agent.call("list_allowed_directories").ok()
    theirs = {tool.name: tool for tool in sides.theirs.agent.tools() if tool.name != "read_file"}
    assert set(theirs) <= set(ours)
    for name, tool in theirs.items():
        assert_drops_in(ours[name], tool)


def assert_drops_in(ours: types.Tool, theirs: types.Tool) -> None:
    mine, other = ours.input_schema, theirs.input_schema
    assert set(mine.get("required", [])) == set(other.get("required", [])), ours.name
    for name, wanted in other.get("properties", {}).items():
        assert_takes(mine["properties"][name], wanted, f"{ours.name}.{name}")


def assert_takes(ours: dict[str, Any], theirs: dict[str, Any], where: str) -> None:
    narrower = {"integer": "number"}
    kind = ours["type"]
    assert theirs["type"] in (kind, narrower.get(kind)), where
    assert ours.get("enum") == theirs.get("enum"), where
    assert ours.get("default") == theirs.get("default") or not theirs.get("default"), where
    if kind == "array":
        assert_takes(ours["items"], theirs["items"], where)
    for name, wanted in theirs.get("properties", {}).items():
        assert_takes(ours["properties"][name], wanted, f"{where}.{name}")


@pytest.mark.req("SV-06.d")
def test_two_older_twins_can_be_called_and_are_not_listed(sides: Pair) -> None:
    ours = {tool.name for tool in sides.ours.agent.tools()}
    assert {tool.name for tool in sides.theirs.agent.tools()} - ours == UNLISTED | {"read_file"}
    sides.ours.call("read_multiple_files", paths=["none"]).ok()
    sides.ours.call("list_directory_with_sizes", path=".").ok()


@pytest.mark.req("SV-06.d")
def test_the_hints_are_those_of_the_reference(sides: Pair) -> None:
    theirs = {tool.name: tool.annotations for tool in sides.theirs.agent.tools()}
    for tool in sides.ours.agent.tools():
        known = theirs.get(tool.name)
        if known is not None and tool.annotations is not None:
            assert tool.annotations.read_only_hint == known.read_only_hint, tool.name


@pytest.mark.req("FS-11.a")
@pytest.mark.parametrize("selection", [{}, {"head": 2}, {"tail": 2}, {"head": 99}, {"tail": 99}])
def test_a_text_file_reads_the_same(pair: Pair, selection: dict[str, int]) -> None:
    pair.plant({"a.txt": "one\ntwo\nthree ünï 漢字 🙂\nfour"})
    assert pair.same("read_text_file", str, path="a.txt", **selection)


@pytest.mark.req("FS-11.a")
def test_the_last_line_of_a_file_that_ends_with_a_newline_is_its_last_line(pair: Pair) -> None:
    pair.plant({"a.txt": "one\ntwo\nthree\n"})
    ours, theirs = pair.call("read_text_file", path="a.txt", tail=2)
    assert ours.ok().text == "two\nthree\n"
    assert theirs.ok().text == "three\n"


@pytest.mark.req("FS-11.b", "FS-12.b")
def test_a_read_that_cannot_be_answered_is_an_error(pair: Pair) -> None:
    pair.plant({"a.txt": "one\n", "folder": {}})
    pair.both_refuse("read_text_file", path="a.txt", head=1, tail=1)
    pair.both_refuse("read_text_file", path="missing.txt")
    pair.both_refuse("read_text_file", path="folder")
    pair.both_refuse("read_text_file", path="/etc/hostname")
    pair.both_refuse("read_media_file", path="missing.png")


@pytest.mark.req("FS-14.a")
def test_media_come_as_the_same_blocks(pair: Pair, tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    Image.new("RGB", (3, 2), "red").save(picture)
    sound = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
    pair.plant({"dot.png": picture.read_bytes(), "beep.wav": sound, "some.bin": b"\x00\x01\x02\xff"})
    for name, kind in {"dot.png": "image", "beep.wav": "audio", "some.bin": "resource"}.items():
        ours, theirs = pair.call("read_media_file", path=name)
        assert media_of(ours.ok()) == media_of(theirs.ok()), name
        assert media_of(ours)[0] == kind


def media_of(reply: Reply) -> tuple[str, str | None, bytes]:
    block = next(block for block in reply.result.content if block.type != "text")
    if isinstance(block, types.EmbeddedResource):
        assert isinstance(block.resource, types.BlobResourceContents)
        return block.type, block.resource.mime_type, base64.b64decode(block.resource.blob)
    assert isinstance(block, types.ImageContent | types.AudioContent)
    return block.type, block.mime_type, base64.b64decode(block.data)


@pytest.mark.req("FS-10")
def test_many_files_are_read_and_one_missing_does_not_fail_the_call(pair: Pair) -> None:
    pair.plant({"a.txt": "alpha", "c.txt": "gamma"})
    for reply in pair.call("read_multiple_files", paths=["a.txt", "missing.txt", "c.txt"]):
        text = reply.ok().text
        assert text.index("alpha") < text.index("missing.txt") < text.index("gamma")
    pair.both_refuse("read_multiple_files", paths=[])


@pytest.mark.req("FS-17.b")
def test_a_file_is_written_and_written_over(pair: Pair) -> None:
    pair.plant({"old.txt": "before\n"})
    for side in (pair.ours, pair.theirs):
        (side.folder / "old.txt").chmod(0o640)
    for name in ("new.txt", "old.txt"):
        for reply in pair.call("write_file", path=name, content="ünï\r\nafter"):
            reply.ok()
    assert pair.same_disk() == {name: "ünï\r\nafter".encode() for name in ("new.txt", "old.txt")}
    for side in (pair.ours, pair.theirs):
        assert stat.S_IMODE((side.folder / "old.txt").stat().st_mode) == 0o640


@pytest.mark.req("FS-17.b", "FS-02.a")
def test_a_write_that_cannot_be_done_is_an_error(pair: Pair) -> None:
    pair.plant({"folder": {}})
    pair.both_refuse("write_file", path="no/such/folder/a.txt", content="x")
    pair.both_refuse("write_file", path="folder", content="x")
    pair.both_refuse("write_file", path="../../outside.txt", content="x")


EDITS = [{"oldText": "two", "newText": "2"}, {"oldText": "2\nthree", "newText": "2\n3"}]


@pytest.mark.req("FS-32.a")
def test_edits_apply_in_order_and_answer_with_the_same_diff(pair: Pair) -> None:
    pair.plant({"a.txt": "one\ntwo\nthree\n"})
    assert pair.same("edit_file", diff_lines, path="a.txt", edits=EDITS) == ["-two", "-three", "+2", "+3"]
    assert pair.same_disk() == {"a.txt": b"one\n2\n3\n"}


@pytest.mark.req("FS-37")
def test_a_dry_run_answers_with_the_same_diff_and_writes_nothing(pair: Pair) -> None:
    pair.plant({"a.txt": "one\ntwo\nthree\n"})
    assert pair.same("edit_file", diff_lines, path="a.txt", edits=EDITS, dryRun=True)
    assert pair.same_disk() == {"a.txt": b"one\ntwo\nthree\n"}


@pytest.mark.req("FS-32.a", "FS-30")
def test_an_edit_that_matches_nothing_changes_nothing(pair: Pair) -> None:
    pair.plant({"a.txt": "one\ntwo\n"})
    edits = [{"oldText": "one", "newText": "1"}, {"oldText": "absent", "newText": "x"}]
    pair.both_refuse("edit_file", path="a.txt", edits=edits)
    pair.both_refuse("edit_file", path="missing.txt", edits=[{"oldText": "x", "newText": "y"}])


def diff_lines(text: str) -> list[str]:
    """Take a diff as its changed lines."""
    return [line for line in text.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]


@pytest.mark.req("FS-17.b")
def test_folders_are_made_with_their_parents_and_may_be_there_already(pair: Pair) -> None:
    for path in ("a/b/c", "a/b/c", "a"):
        for reply in pair.call("create_directory", path=path):
            reply.ok()
    for side in (pair.ours, pair.theirs):
        assert (side.folder / "a/b/c").is_dir()
    pair.plant({"file": "x"})
    pair.both_refuse("create_directory", path="file")


@pytest.mark.req("FS-17.a")
def test_files_and_folders_move_and_never_onto_something(pair: Pair) -> None:
    pair.plant({"a.txt": "a", "b.txt": "b", "folder": {"c.txt": "c"}, "other": {}})
    for source, destination in [("a.txt", "other/moved.txt"), ("folder", "other/folder")]:
        for reply in pair.call("move_file", source=source, destination=destination):
            reply.ok()
    assert pair.same_disk() == {"b.txt": b"b", "other/moved.txt": b"a", "other/folder/c.txt": b"c"}
    pair.both_refuse("move_file", source="b.txt", destination="other/moved.txt")
    pair.both_refuse("move_file", source="missing", destination="x")
    pair.both_refuse("move_file", source="b.txt", destination="../../../x")


TREE: Tree = {
    "a.txt": "x",
    "b.py": "y" * 2000,
    "#odd.txt": "",
    "sp ace.txt": "",
    ".hidden": {"inner.py": "", ".deep": ""},
    "src": {"main.py": "", "lib": {"main.py": "", "util.js": "", "deep": {"x.py": ""}}, "ab.txt": ""},
    "node_modules": {"pkg": {"index.js": ""}},
    "empty": {},
}


@pytest.mark.req("FS-15.b")
def test_a_folder_is_listed_with_the_same_lines(pair: Pair) -> None:
    pair.plant(TREE)
    assert "[DIR] src" in pair.same("list_directory", lines, path=".")
    pair.both_refuse("list_directory", path="missing")
    pair.both_refuse("list_directory", path="a.txt")


@pytest.mark.req("FS-15.b")
@pytest.mark.parametrize("order", [None, "name", "size"])
def test_a_folder_is_listed_with_sizes_in_the_same_lines_and_order(pair: Pair, order: str | None) -> None:
    pair.plant({"big.txt": "x" * 5000, "mid.txt": "x" * 300, "small.txt": "x", "folder": {}})
    arguments = {"sortBy": order} if order else {}
    said = pair.same(
        "list_directory_with_sizes", sized_lines if order == "size" else ordered_lines, path=".", **arguments
    )
    assert any("4.88 KB" in line for line in said)


def ordered_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def sized_lines(text: str) -> list[str]:
    """Take the lines in their order, without folders: the reference sorts a folder by the size of its own table."""
    return [line for line in ordered_lines(text) if not line.startswith("[DIR]")]


@pytest.mark.req("FS-15.c")
@pytest.mark.parametrize(
    "exclude", [[], ["node_modules"], ["*.py"], ["**/*.py"], ["src/lib"], ["lib"], ["**/deep/**", "a.txt"]]
)
def test_a_tree_has_the_same_entries(pair: Pair, exclude: list[str]) -> None:
    pair.plant(TREE)
    ours, theirs = pair.call("directory_tree", path=".", excludePatterns=exclude)
    assert entries_of(json.loads(ours.ok().texts[0])) == entries_of(json.loads(theirs.ok().text))
    assert len(ours.text) < len(theirs.text)


def entries_of(nodes: list[dict[str, Any]], above: str = "") -> set[str]:
    found = set()
    for node in nodes:
        is_folder = node["type"] == "directory"
        found.add(f"{above}{node['name']}{'/' if is_folder else ''}")
        found |= entries_of(node.get("children", []), f"{above}{node['name']}/")
    return found


PATTERNS = [
    "*.py", "**/*.py", "**", "**/*", "*", "src/**", "src/*", "src", "**/src", "a*", "?.txt", "[ab]*", "[!a]*", "[a-c].*",
    "*.{py,txt}", "**/{main,util}.*", "{src,empty}", ".*", "**/.*", "**/.deep", "!*.py", "**/deep/**", "src/**/main.py",
    "**/lib/**/*.py", "+(a|b).*", "@(a|b)*", "?(a)b.*", "sp ace.txt", "A.TXT", "nothing*",
    "{1..3}.txt", "src/*/main.py", "**/main.py", "src/**/", "src//main.py", "*/*", "a.tx[t]", "\\*.py",
]  # fmt: skip


@pytest.mark.req("FS-16.b")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_name_pattern_finds_the_same(pair: Pair, pattern: str) -> None:
    pair.plant(TREE)
    pair.same("search_files", found_lines, path=".", pattern=pattern)


@pytest.mark.req("FS-16.b")
@pytest.mark.parametrize(
    "exclude", [["src"], ["src/**"], ["**/lib"], ["**/*.py"], ["*.py", "**/deep"], [".hidden", "node_modules"]]
)
def test_excluded_patterns_leave_out_the_same(pair: Pair, exclude: list[str]) -> None:
    pair.plant(TREE)
    assert pair.same("search_files", found_lines, path=".", pattern="**/*", excludePatterns=exclude)


@pytest.mark.req("FS-16.b")
def test_a_pattern_may_begin_with_a_number_sign_or_a_dot_and_slash(pair: Pair) -> None:
    pair.plant(TREE)
    for pattern, found in {"#odd.txt": "#odd.txt", "./*.py": "b.py"}.items():
        ours, theirs = pair.call("search_files", path=".", pattern=pattern)
        assert ours.ok().text == str(pair.ours.folder / found)
        assert theirs.ok().text == "No matches found"


@pytest.mark.req("FS-16.b")
def test_a_search_starts_where_it_is_told(pair: Pair) -> None:
    pair.plant(TREE)
    assert pair.same("search_files", found_lines, path="src", pattern="*.py") == ["<folder>/src/main.py"]
    pair.both_refuse("search_files", path="/etc", pattern="*")


def found_lines(text: str) -> list[str]:
    """Take a search as its set of paths; the two end the sentence about nothing differently."""
    return [] if text.startswith("No matches found") else lines(text)


@pytest.mark.req("FS-13.b")
def test_what_is_told_of_a_file_and_a_folder_is_the_same(pair: Pair) -> None:
    pair.plant({"a.txt": "alpha\n", "folder": {}})
    for side in (pair.ours, pair.theirs):
        (side.folder / "a.txt").chmod(0o604)
        os.utime(side.folder / "a.txt", (1_600_000_000, 1_700_000_000))
    for name in ("a.txt", "folder"):
        ours, theirs = pair.call("get_file_info", path=name)
        known = facts(theirs.ok().text)
        mine = facts(ours.ok().text)
        for key in ("isDirectory", "isFile", "permissions", *(["size"] if name == "a.txt" else [])):
            assert mine[key] == known[key], key
        assert {"created", "modified", "accessed"} <= set(mine)
    pair.both_refuse("get_file_info", path="missing")


def facts(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


@pytest.mark.req("FS-01.a")
def test_the_allowed_directories_are_told_in_the_same_words(sides: Pair) -> None:
    assert sides.same("list_allowed_directories") == "Allowed directories:\n<folder>"
