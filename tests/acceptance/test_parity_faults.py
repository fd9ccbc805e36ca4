"""Where the reference filesystem server goes wrong, and Holdfast does not."""

import os
import time

import pytest

from benchmarks.measure.servers import reference
from tests.helpers.agent import Reply
from tests.helpers.peer import Pair, Side
from tests.helpers.swapper import swapping


@pytest.mark.req("FS-30")
def test_an_edit_that_fits_two_places_is_not_taken_for_the_first(pair: Pair) -> None:
    pair.plant({"a.py": "x = 1\ny = 2\nx = 1\n"})
    ours, theirs = pair.call("edit_file", path="a.py", edits=[{"oldText": "x = 1", "newText": "x = 9"}])
    assert not theirs.is_error
    assert pair.theirs.files() == {"a.py": b"x = 9\ny = 2\nx = 1\n"}
    assert "2" in ours.error["message"]
    assert pair.ours.files() == {"a.py": b"x = 1\ny = 2\nx = 1\n"}


@pytest.mark.req("FS-31")
def test_an_edit_keeps_every_line_ending(pair: Pair) -> None:
    pair.plant({"a.txt": b"one\r\ntwo\r\nthree\n"})
    ours, _theirs = pair.call("edit_file", path="a.txt", edits=[{"oldText": "one\ntwo", "newText": "1\n2"}])
    ours.ok()
    assert pair.theirs.files() == {"a.txt": b"1\n2\nthree\n"}
    assert pair.ours.files() == {"a.txt": b"1\r\n2\r\nthree\n"}


CHINESE = (
    "# 这个文件使用国标编码保存，编辑之后不应该改变其他内容。\n名称 = 旧的\n说明：请检查每一个汉字是否仍然正确。\n"
)


@pytest.mark.req("FS-31", "FS-12.a")
def test_an_edit_keeps_the_encoding(pair: Pair) -> None:
    pair.plant({"a.txt": (CHINESE + "name = old\n").encode("gbk")})
    ours, theirs = pair.call("edit_file", path="a.txt", edits=[{"oldText": "name = old", "newText": "name = new"}])
    assert not theirs.is_error
    assert "\ufffd" in pair.theirs.files()["a.txt"].decode()
    ours.ok()
    assert pair.ours.files() == {"a.txt": (CHINESE + "name = new\n").encode("gbk")}


@pytest.mark.req("FS-12.a")
@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_a_text_in_another_encoding_is_read_as_it_was_written(pair: Pair, encoding: str) -> None:
    pair.plant({"a.txt": CHINESE.encode(encoding)})
    ours, theirs = pair.call("read_text_file", path="a.txt")
    assert "\ufffd" in theirs.ok().text
    assert CHINESE in ours.ok().text


@pytest.mark.req("FS-36.a")
def test_twenty_edits_at_once_are_all_applied(pair: Pair) -> None:
    pair.plant({"a.txt": "".join(f"line {number:02d} = old\n" for number in range(20))})
    edits = [[{"oldText": f"line {number:02d} = old", "newText": f"line {number:02d} = new"}] for number in range(20)]
    calls = [("edit_file", {"path": "a.txt", "edits": edit}) for edit in edits]
    for reply in pair.ours.agent.parallel((tool, pair.ours.placed(arguments)) for tool, arguments in calls):
        reply.ok()
    assert pair.ours.files()["a.txt"].count(b"new") == 20
    with reference(pair.theirs.folder).connect() as pipe:
        answers = pipe.call_at_once([(tool, pair.theirs.placed(arguments)) for tool, arguments in calls])
    assert not any(answer["result"].get("isError") for answer in answers)
    assert pair.theirs.files()["a.txt"].count(b"new") < 20


@pytest.mark.req("FS-04.a")
def test_a_fifo_is_answered_at_once(pair: Pair) -> None:
    for side in (pair.ours, pair.theirs):
        os.mkfifo(side.folder / "pipe")
    begun = time.monotonic()
    assert pair.ours.call("read_text_file", path="pipe").code == "PERMISSION_DENIED"
    assert time.monotonic() - begun < 2.0
    hanging = pair.theirs.agent.start("read_text_file", pair.theirs.placed({"path": "pipe"}))
    with pytest.raises(TimeoutError):
        hanging.result(timeout=1.0)
    (pair.theirs.folder / "pipe").write_text("released")
    assert hanging.result(timeout=20).text == "released"


@pytest.mark.req("FS-15.a")
def test_a_newline_in_a_name_does_not_forge_a_line(pair: Pair) -> None:
    pair.plant({"harmless\n[DIR] secrets": "x"})
    ours, theirs = pair.call("list_directory", path=".")
    assert "[DIR] secrets" in theirs.ok().text.splitlines()
    assert len(ours.ok().text.splitlines()) == 1
    tree, search = pair.ours.call("directory_tree", path="."), pair.ours.call("search_files", path=".", pattern="*")
    assert not {"[DIR] secrets"} & {line.strip() for reply in (tree, search) for line in reply.ok().text.splitlines()}


@pytest.mark.req("FS-13.a")
def test_a_large_file_is_cut_with_a_cursor(pair: Pair) -> None:
    line = b"A line of a log file that grew over the years.\n"
    (pair.theirs.folder / "big.log").write_bytes(line * 64_000)
    assert len(pair.theirs.call("read_text_file", path="big.log").ok().text) == len(line) * 64_000
    (pair.ours.folder / "big.log").write_bytes(line * 640_000)
    ours = pair.ours.call("read_text_file", path="big.log").ok()
    assert 50_000 < len(ours.text) < 150_000
    assert "cursor" in ours.text
    assert ours.texts[0].encode() == line * (len(ours.texts[0]) // len(line))


@pytest.mark.req("FS-30")
def test_valid_python_is_not_broken_by_guessing_at_indentation(pair: Pair) -> None:
    source = "class A:\n    def f(self):\n        if self.x:\n            return 1\n        return 2\n"
    pair.plant({"a.py": source})
    guess = [{"oldText": "if self.x:\n    return 1", "newText": "if self.x:\n    return 3"}]
    ours, theirs = pair.call("edit_file", path="a.py", edits=guess)
    assert not theirs.is_error
    with pytest.raises(IndentationError):
        compile(pair.theirs.files()["a.py"], "a.py", "exec")
    assert ours.error["error_type"] == "validation_error"
    assert pair.ours.files() == {"a.py": source.encode()}


@pytest.mark.req("FS-15.c")
def test_a_text_is_sent_once(pair: Pair) -> None:
    pair.plant(
        {"a.txt": "A text that costs tokens.\n" * 1000, "folder": {f"{number}.txt": "" for number in range(200)}}
    )
    for tool, path in {"read_text_file": "a.txt", "list_directory": "folder", "directory_tree": "."}.items():
        ours, theirs = pair.call(tool, path=path)
        assert sent(theirs) > 2 * len(theirs.text)
        assert sent(ours.ok()) < 1.2 * len(ours.text) + 1000, tool


def sent(reply: Reply) -> int:
    return len(reply.result.model_dump_json(by_alias=True, exclude_none=True))


@pytest.mark.req("FS-02.c")
def test_a_link_swapped_in_under_a_read_leads_nowhere(pair: Pair) -> None:
    for side in (pair.ours, pair.theirs):
        outside = side.folder.parent.parent / f"outside-of-{side.folder.parent.name}"
        outside.mkdir(exist_ok=True)
        (outside / "f.txt").write_text("SECRET")
        (side.folder / "door").mkdir()
        (side.folder / "door" / "f.txt").write_text("inside")
        (side.folder / "link").symlink_to(outside)
    seen = read_under_swap(pair.ours, seconds=2.0)
    assert "inside" in seen
    assert "SECRET" not in seen
    read_under_swap(pair.theirs, seconds=0.2, swaps=10)


def read_under_swap(side: Side, seconds: float, swaps: int = 1000) -> str:
    """Read through a folder that a link to the outside keeps trading places with; return all that was answered."""
    answers: list[str] = []
    until = time.monotonic() + seconds
    with swapping(side.folder / "door", side.folder / "link", swaps):
        while time.monotonic() < until or len(answers) < 20:
            replies = side.agent.parallel([("read_text_file", side.placed({"path": "door/f.txt"}))] * 8)
            answers += [reply.text for reply in replies]
    return "".join(answers)
