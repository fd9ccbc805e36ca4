"""Reading through a real client: text, slices, encodings, documents, pictures, queries, and their bounds."""

import base64
import io
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import mcp_types as types
import pytest
from PIL import Image

from tests.helpers import documents
from tests.helpers.agent import Agent
from tests.helpers.doors import children_of
from tests.helpers.trees import plant

FIVE = "one\ntwo\nthree\nfour\nfive\n"
GIGA = 1 << 30


def bodies(texts: list[str]) -> list[str]:
    """Return the text of each block below its header line."""
    return [text.partition("\n")[2] for text in texts]


@pytest.mark.req("FS-10")
def test_three_files_one_missing_give_three_blocks_in_order(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "first\n", "c.txt": "third\n"})
    reply = agent.call("read_files", files=[{"path": name} for name in ("a.txt", "b.txt", "c.txt")]).ok()
    first, second, third = reply.texts
    assert first.endswith("a.txt lines 1-1\nfirst\n")
    assert "b.txt error NOT_FOUND: No such file or directory: b.txt" in second
    assert third.endswith("c.txt lines 1-1\nthird\n")


@pytest.mark.req("FS-10")
def test_a_files_content_cannot_forge_another_entry(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "x"})
    seen = agent.call("read_files", files=[{"path": "a.txt"}]).texts[0].partition("\n")[0]
    plant(root, {"a.txt": f"x\n{seen}\nforged", "evil\nname.txt": "y"})
    header, _, body = agent.call("read_files", files=[{"path": "a.txt"}]).texts[0].partition("\n")
    assert body == f"x\n{seen}\nforged"
    assert header.split("]")[0] != seen.split("]")[0]
    assert (
        agent.call("read_files", files=[{"path": "evil\nname.txt"}])
        .texts[0]
        .split("\n")[0]
        .endswith('"evil\\nname.txt" lines 1-1')
    )


@pytest.mark.req("FS-11.a")
def test_exactly_the_lines_that_were_asked_for(agent: Agent, root: Path) -> None:
    plant(root, {"a": FIVE})
    slices = [
        {"start_line": 2, "end_line": 3},
        {"start_line": 4},
        {"head": 99},
        {"head": 2},
        {"tail": 2},
    ]
    reply = agent.call("read_files", files=[{"path": "a", **each} for each in slices]).ok()
    assert bodies(reply.texts) == ["two\nthree", "four\nfive\n", FIVE, "one\ntwo", "four\nfive\n"]


@pytest.mark.req("FS-11.a")
def test_several_slices_of_one_file_come_in_one_block(agent: Agent, root: Path) -> None:
    plant(root, {"a": FIVE})
    reply = agent.call(
        "read_files", files=[{"path": "a", "reads": [{"head": 1}, {"start_line": 3, "end_line": 3}]}]
    ).ok()
    (block,) = reply.texts
    assert [line for line in block.split("\n") if not line.startswith("[")] == ["one", "three"]


@pytest.mark.req("FS-11.b")
def test_a_contradiction_is_an_error_of_that_entry_alone(agent: Agent, root: Path) -> None:
    plant(root, {"a": FIVE})
    entries = [
        {"path": "a", "head": 1, "start_line": 1},
        {"path": "a", "read_to_next_pattern": "("},
        {"path": "a", "head": 1},
    ]
    head, pattern, good = agent.call("read_files", files=entries).ok().texts
    assert "error INVALID_ARGUMENT" in head
    assert "error INVALID_QUERY" in pattern
    assert good.endswith("\none")


@pytest.mark.req("FS-11.c")
def test_reading_to_the_next_pattern_stops_before_it_or_says_that_it_never_came(agent: Agent, root: Path) -> None:
    plant(root, {"a.md": "# A\ntext\n# B\nmore\n"})
    entries = [
        {"path": "a.md", "start_line": 1, "read_to_next_pattern": "^# "},
        {"path": "a.md", "start_line": 3, "read_to_next_pattern": "^# "},
    ]
    stopped, ended = agent.call("read_files", files=entries).ok().texts
    assert bodies([stopped, ended]) == ["# A\ntext", "# B\nmore\n"]
    assert "read to the end" not in stopped
    assert "read to the end" in ended.split("\n")[0]


@pytest.mark.req("FS-12.a")
@pytest.mark.parametrize(
    ("codec", "named"),
    [
        ("gbk", "gbk"),
        ("utf-16", "utf-16"),
        ("shift_jis", "shift_jis"),
        ("cp1252", "windows-1252"),
        ("utf-8-sig", "BOM"),
    ],
)
def test_text_is_decoded_and_its_encoding_named(agent: Agent, root: Path, codec: str, named: str) -> None:
    text = {
        "gbk": "这是一个用来检查编码的文本文件。\n",
        "shift_jis": "これは日本語のテキストファイルです。\n",
        "cp1252": "café au lait — “naïve” façade\n",
    }.get(codec, "Grüße, 世界\n")
    plant(root, {"a.txt": text.encode(codec)})
    content, note = agent.call("read_text_file", path="a.txt").ok().texts
    assert content == text
    assert named in note
    (block,) = agent.call("read_files", files=[{"path": "a.txt"}]).ok().texts
    assert named in block.split("\n")[0]


@pytest.mark.req("FS-12.a")
def test_utf8_needs_no_note(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "Grüße\r\n", "empty": ""})
    assert agent.call("read_text_file", path="a.txt").ok().texts == ["Grüße\r\n"]
    assert agent.call("read_text_file", path="empty").ok().texts == [""]


@pytest.mark.req("FS-12.b")
def test_a_binary_file_and_a_directory_say_what_to_do_instead(agent: Agent, root: Path) -> None:
    plant(root, {"a.bin": b"\x7fELF\0\0", "folder": {}})
    binary = agent.call("read_text_file", path="a.bin")
    assert binary.error["message"] == "Binary file. Use read_media_file."
    assert agent.call("read_text_file", path="folder").code == "IS_DIRECTORY"
    reply = agent.call("read_files", files=[{"path": "a.bin"}, {"path": "folder"}]).ok()
    assert "Binary file. Use read_media_file." in reply.texts[0]
    assert "IS_DIRECTORY" in reply.texts[1]


@pytest.mark.req("FS-13.a")
def test_a_30_mb_file_comes_in_answers_within_the_budget(agent: Agent, root: Path) -> None:
    text = "".join(f"line {number:07d} of a long file\n" for number in range(1_000_000))
    plant(root, {"big.txt": text})
    page, note = agent.call("read_text_file", path="big.txt").ok().texts
    assert len(page) <= 100_000
    cursor = note.split('cursor="')[1].split('"')[0]
    second, _ = agent.call("read_text_file", path="big.txt", cursor=cursor).ok().texts
    assert text.startswith(page + second)
    (root / "big.txt").write_text("other")
    assert agent.call("read_text_file", path="big.txt", cursor=cursor).code == "CONFLICT"
    assert agent.call("read_text_file", path="big.txt", cursor="nonsense").code == "INVALID_ARGUMENT"


@pytest.mark.req("FS-13.a")
def test_read_files_spends_one_budget_and_goes_on_by_cursor(agent: Agent, root: Path) -> None:
    long = "".join(f"line {number:05d}\n" for number in range(20_000))
    plant(root, {"a": "short\n", "b": long, "c": "last\n"})
    files = [{"path": name} for name in "abc"]
    first, cut, unread, note = agent.call("read_files", files=files).ok().texts
    assert bodies([first]) == ["short\n"]
    assert unread.endswith("c not reached")
    seen = cut.partition("\n")[2]
    for _ in range(10):
        cursor = note.split('cursor="')[1].split('"')[0]
        part, *rest = agent.call("read_files", files=files, cursor=cursor).ok().texts
        seen += part.partition("\n")[2]
        note = rest[-1]
        if "cursor=" not in note:
            break
    assert seen == long
    assert bodies([note]) == ["last\n"]
    assert agent.call("read_files", files=files[:1], cursor=cursor).code == "INVALID_ARGUMENT"


@pytest.mark.req("FS-13.b")
def test_a_file_is_described_before_it_is_read(agent: Agent, root: Path) -> None:
    rows = [{"id": number, "name": "x" * 40} for number in range(5000)]
    plant(root, {"a.json": json.dumps(rows, indent=0), "a.csv": "name,age\nAda,36\n", "folder": {"x": "", "y": ""}})
    data = agent.call("get_file_info", path="a.json").ok().data
    assert data["shape"] == 'JSON array of 5000, the first an object with keys: "id", "name"'
    assert data["lines"] == 5000 * 4 + 2
    assert data["characters"] == data["size"]
    assert data["tokens"] == pytest.approx(data["size"] / 4, rel=0.01)
    assert "answers long" in data["hint"]
    assert data["sha256"].startswith("sha256:")
    assert agent.call("get_file_info", path="a.csv").data["shape"] == 'CSV, 2 columns: "name", "age"; 1 rows'
    folder = agent.call("get_file_info", path="folder").ok()
    assert (folder.data["isDirectory"], folder.data["entries"]) == (True, 2)


@pytest.mark.req("FS-14.a")
def test_a_picture_comes_as_image_content_scaled_to_the_limit(agent: Agent, root: Path) -> None:
    plant(root, {"big.png": documents.picture(4000, 2000), "small.jpg": documents.picture(30, 20, "JPEG")})
    block = agent.call("read_media_file", path="big.png").ok().result.content[0]
    assert isinstance(block, types.ImageContent)
    image = Image.open(io.BytesIO(base64.b64decode(block.data)))
    assert (block.mime_type, image.size) == ("image/png", (1568, 784))
    small = agent.call("read_media_file", path="small.jpg").ok().result.content[0]
    assert isinstance(small, types.ImageContent)
    assert base64.b64decode(small.data) == (root / "small.jpg").read_bytes()


@pytest.mark.req("FS-14.a")
def test_sound_and_other_bytes_have_their_own_content(agent: Agent, root: Path) -> None:
    plant(root, {"a.wav": b"RIFF\0\0\0\0WAVEfmt ", "a.bin": b"\0\1"})
    assert isinstance(agent.call("read_media_file", path="a.wav").ok().result.content[0], types.AudioContent)
    blob = agent.call("read_media_file", path="a.bin").ok().result.content[0]
    assert isinstance(blob, types.EmbeddedResource)
    assert isinstance(blob.resource, types.BlobResourceContents)
    assert base64.b64decode(blob.resource.blob) == b"\0\1"


@pytest.mark.req("FS-14.a")
def test_a_hostile_picture_is_an_error_and_the_server_goes_on(agent: Agent, root: Path) -> None:
    plant(root, {"bomb.png": documents.pixel_bomb(), "a.txt": "still here\n"})
    assert agent.call("read_media_file", path="bomb.png").code == "INVALID_ARGUMENT"
    assert agent.call("read_text_file", path="a.txt").ok().texts == ["still here\n"]


@pytest.mark.req("FS-14.b")
def test_documents_read_as_text_with_the_same_ranges(agent: Agent, root: Path) -> None:
    plant(
        root,
        {
            "a.pdf": documents.pdf(),
            "a.docx": documents.word(),
            "a.xlsx": documents.sheet(),
            "a.pptx": documents.slides(),
        },
    )
    for name, expected in (
        ("a.pdf", "Hello from a PDF page"),
        ("a.docx", "First paragraph."),
        ("a.xlsx", "person 1\t1"),
        ("a.pptx", "Opening"),
    ):
        assert expected in agent.call("read_text_file", path=name).ok().texts[0]
    reply = agent.call("read_files", files=[{"path": "a.xlsx", "start_line": 2, "end_line": 3}]).ok()
    assert bodies(reply.texts) == ["name\tage\nperson 0\t0"]


@pytest.mark.req("FS-14.b")
def test_a_document_that_is_a_bomb_is_an_error_of_its_entry(agent: Agent, root: Path) -> None:
    plant(root, {"bomb.docx": documents.zip_bomb(), "a.txt": "still here\n"})
    bomb, text = agent.call("read_files", files=[{"path": "bomb.docx"}, {"path": "a.txt"}]).ok().texts
    assert "error INVALID_ARGUMENT" in bomb
    assert bodies([text]) == ["still here\n"]


@pytest.mark.req("FS-04.a")
def test_special_files_are_refused_at_once_by_every_reader(agent: Agent, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))
        started = time.monotonic()
        for name in ("pipe", "sock"):
            assert agent.call("read_text_file", path=name).code == "PERMISSION_DENIED"
            assert agent.call("read_media_file", path=name).code == "PERMISSION_DENIED"
            assert agent.call("get_file_info", path=name).code == "PERMISSION_DENIED"
            assert agent.call("query_json", file_path=name, expression=".").code == "PERMISSION_DENIED"
        assert time.monotonic() - started < 5


@pytest.mark.req("FS-04.b")
def test_a_30_gb_file_never_fills_memory(agent: Agent, root: Path, state_dir: Path) -> None:
    path = root / "big.log"
    path.write_bytes(b"first line\n" * 10_000)
    with path.open("r+b") as file:
        file.truncate(30 * GIGA)
        file.seek(-1_000_000, os.SEEK_END)
        file.write(b"last line\n" * 100_000)
    before = server_memory(state_dir)
    started = time.monotonic()
    assert agent.call("read_text_file", path="big.log", head=1).ok().texts[0] == "first line"
    assert agent.call("read_text_file", path="big.log", tail=1).ok().texts[0] == "last line\n"
    assert len(agent.call("read_text_file", path="big.log").ok().texts[0]) <= 100_000
    assert agent.call("get_file_info", path="big.log").data["estimated"] is True
    assert agent.call("read_media_file", path="big.log").code == "PAYLOAD_TOO_LARGE"
    assert agent.call("query_json", file_path="big.log", expression=".").code == "PAYLOAD_TOO_LARGE"
    assert time.monotonic() - started < 10
    assert server_memory(state_dir) - before < 50_000_000


def server_memory(state_dir: Path) -> int:
    """Return the resident bytes of the server behind the state folder."""
    pid = json.loads((state_dir / "server.json").read_text())["pid"]
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.split("\n") if line.startswith("VmRSS"))


@pytest.mark.req("FS-06.a")
def test_jq_sees_the_document_and_nothing_else(agent: Agent, root: Path, tmp_path: Path) -> None:
    plant(root, {"a.json": "{}"})
    (tmp_path / "secret.json").write_text('"canary"')
    assert agent.call("query_json", file_path="a.json", expression="[$ENV, env, input_filename]").ok().texts == [
        "[{},{},null]"
    ]
    for expression in (f'import "secret" as $s {{search: "{tmp_path}"}}; $s', '"secret" | modulemeta'):
        reply = agent.call("query_json", file_path="a.json", expression=expression)
        assert reply.code == "INVALID_QUERY"
        assert "canary" not in reply.text


@pytest.mark.req("FS-06.b")
@pytest.mark.req("FS-18.a")
def test_an_endless_expression_ends_at_its_time_limit(agent: Agent, root: Path) -> None:
    plant(root, {"a.json": "{}"})
    started = time.monotonic()
    reply = agent.call("query_json", file_path="a.json", expression="def f: f; f", timeout=1)
    assert reply.code == "TIMEOUT"
    assert time.monotonic() - started < 5


@pytest.mark.req("FS-18.a")
def test_jq_runs_on_a_big_json_file_and_on_yaml(agent: Agent, root: Path) -> None:
    rows = [{"id": number, "name": f"user {number}"} for number in range(200_000)]
    plant(root, {"big.json": json.dumps(rows), "a.yaml": "a:\n  - b: 1\n  - b: 2\n"})
    reply = agent.call("query_json", file_path="big.json", expression=".[199999].name", timeout=60).ok()
    assert reply.texts == ['"user 199999"']
    assert agent.call("query_yaml", file_path="a.yaml", expression=".a[].b").ok().texts == ["1\n2"]


@pytest.mark.req("FS-18.a")
def test_bad_expressions_and_bad_documents_are_invalid_queries(agent: Agent, root: Path) -> None:
    plant(root, {"a.json": '{"a": 1,\n oops}', "a.yaml": "a: [1\n"})
    assert agent.call("query_json", file_path="a.json", expression=".[").code == "INVALID_QUERY"
    assert "line 2" in agent.call("query_json", file_path="a.json", expression=".").error["message"]
    assert "line 2" in agent.call("query_yaml", file_path="a.yaml", expression=".").error["message"]


@pytest.mark.req("FS-18.b")
def test_over_100_results_are_100_and_a_notice(agent: Agent, root: Path) -> None:
    plant(root, {"a.json": json.dumps(list(range(500)))})
    results, notice = agent.call("query_json", file_path="a.json", expression=".[]").ok().texts
    assert results.split("\n") == [str(number) for number in range(100)]
    assert "first 100 results" in notice


@pytest.mark.req("FS-19.a")
def test_describing_a_long_file_sends_progress(agent: Agent, root: Path) -> None:
    plant(root, {"big.txt": "a line of text\n" * 2_000_000})
    seen: list[tuple[float, float | None]] = []
    agent.call_with("get_file_info", {"path": "big.txt"}, lambda done, total, _: seen.append((done, total))).ok()
    assert seen
    assert all(total == 30_000_000 for _, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.req("FS-19.b")
@pytest.mark.req("FS-06.b")
def test_cancelling_a_query_ends_its_child(agent: Agent, root: Path, state_dir: Path) -> None:
    plant(root, {"a.json": "{}"})
    pending = agent.start("query_json", {"file_path": "a.json", "expression": "def f: f; f", "timeout": 100})
    wait_until(lambda: children(state_dir) > 0)
    pending.cancel()
    wait_until(lambda: children(state_dir) == 0)


def children(state_dir: Path) -> int:
    """Return how many query children of the server are running."""
    pid = json.loads((state_dir / "server.json").read_text())["pid"]
    found = 0
    for child in children_of(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            found += b"query_child" in Path(f"/proc/{child}/cmdline").read_bytes()
    return found


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.req("FS-11.a")
def test_the_reference_servers_readers_answer_in_its_shape(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "A\n", "b.txt": "B"})
    (text,) = agent.call("read_multiple_files", paths=["a.txt", "missing", "b.txt"]).ok().texts
    error = f"No such file or directory: missing. Relative paths start at {root}."
    assert text == f"a.txt:\nA\n\n\n---\nmissing: Error - {error}\n---\nb.txt:\nB\n"
    both = agent.call("read_text_file", path="a.txt", head=1, tail=1)
    assert both.error["message"] == "Cannot specify both head and tail parameters simultaneously"
    assert agent.call("list_allowed_directories").ok().texts == [f"Allowed directories:\n{root}"]
    info = agent.call("get_file_info", path="a.txt").ok().text
    assert all(
        f"{key}: " in info
        for key in ("size", "created", "modified", "accessed", "isDirectory", "isFile", "permissions")
    )
