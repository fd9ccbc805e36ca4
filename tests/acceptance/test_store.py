"""The project store through a real client, on SQLite and on PostgreSQL: names, parameters, answers and codes."""

import json
from typing import Any

import httpx2
import pytest

from tests.helpers.stores import SMALL, Deployment, Files

pytestmark = pytest.mark.timeout(90)

NOTHING = {"exists": False, "type": None, "size": 0, "created_at": None, "updated_at": None}
RAW = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def raw_call(tool: str, **arguments: Any) -> str:
    """Return a request as it goes over the wire, lone surrogates and all."""
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


@pytest.mark.req("ST-41", "SV-21.a")
def test_files_land_in_the_database_of_the_deployment(place: Deployment, files: Files) -> None:
    files("file_write", path="/a", content="kept").ok()
    (row,) = place.rows(f"SELECT path, content, size, deleted FROM mcp_files WHERE project = '{files.project}'")
    assert (row["path"], bytes(row["content"]), row["size"], bool(row["deleted"])) == ("/a", b"kept", 4, False)
    stored = list((place.house.state / "store").glob("*.db"))
    assert bool(stored) is not place.is_postgres


@pytest.mark.req("ST-01")
@pytest.mark.parametrize("project", ["", "x" * 129, "a b", "项目", "*"])
def test_a_bad_project_is_refused(place: Deployment, project: str) -> None:
    files = Files(place.agent, project)
    calls: dict[str, dict[str, Any]] = {
        "file_stat": {"path": "/a"},
        "file_read": {"path": "/a"},
        "file_write": {"path": "/a", "content": "x"},
        "file_delete": {"path": "/a"},
        "file_rename": {"from_path": "/a", "to_path": "/b"},
        "file_list": {},
        "file_history": {"path": "/a"},
        "file_restore": {"path": "/a", "version": 1},
    }
    assert {files(tool, **arguments).code for tool, arguments in calls.items()} == {"INVALID_PATH"}


@pytest.mark.req("ST-01")
@pytest.mark.parametrize("project", ["x" * 128, "A.b_c-9", "."])
def test_a_good_project_is_taken(place: Deployment, project: str) -> None:
    Files(place.agent, project).replace("/a", "x")


@pytest.mark.req("ST-02")
def test_bad_paths_are_refused_and_good_ones_taken(files: Files) -> None:
    bad = ["a", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a b", "/a\x7f", "/你好", "/" + "x" * 512]
    for path in bad:
        codes = {
            files("file_stat", path=path).code,
            files("file_write", path=path, content="x").code,
            files("file_rename", from_path="/none", to_path=path).code,
        }
        assert codes == {"INVALID_PATH"}, path
    assert files.data("file_stat", path="") == NOTHING
    for path in ["/a", "/a-b_c.d", "/.hidden", "/" + "x" * 511]:
        assert files.data("file_stat", path=path) == NOTHING
        files.write(path)
    assert len(files.paths()) == 4


@pytest.mark.req("ST-03")
def test_without_a_known_key_nothing_is_read_or_written(place: Deployment, files: Files) -> None:
    files.replace("/secret", "a canary")
    calls = [
        raw_call("file_read", project=files.project, path="/secret"),
        raw_call("file_write", project=files.project, path="/new", content="x"),
    ]
    for key in ({}, {"authorization": "Bearer short"}, {"authorization": "Basic YTpi"}):
        for call in calls:
            answer = httpx2.post(f"{place.house.url}/mcp", content=call, headers={**RAW, **key})
            assert answer.status_code == 401
            assert "canary" not in answer.text
    assert files.paths() == ["/secret"]


@pytest.mark.req("ST-03")
def test_errors_carry_code_message_and_whether_to_retry(files: Files) -> None:
    error = files("file_read", path="/none").error
    assert set(error) == {"code", "message", "retryable"}
    assert error["retryable"] is False
    assert "/none" in error["message"]


@pytest.mark.req("ST-04")
def test_only_utf_8_is_written(files: Files) -> None:
    for encoding in ("", "utf-8", "UTF-8", "Utf-8"):
        files("file_write", path="/a", content="é", content_encoding=encoding, mode="TRUNCATE").ok()
    assert files("file_write", path="/a", content="x", content_encoding="latin-1").code == "INVALID_QUERY"
    assert files.data("file_read", path="/a") == {"content": "é", "content_encoding": "utf-8"}


@pytest.mark.req("ST-04")
def test_a_lone_surrogate_is_answered_at_every_door(place: Deployment, files: Files) -> None:
    half = {"project": files.project, "path": "/a", "content": "x\ud800"}
    headers = {**RAW, "authorization": f"Bearer {place.house.token}"}
    answer = httpx2.post(f"{place.house.url}/mcp", content=raw_call("file_write", **half), headers=headers)
    assert answer.json()["result"]["structuredContent"]["code"] == "INVALID_QUERY"
    with place.house.relay() as relay:
        relay.initialize()
        told = relay.ask(1, "tools/call", name="file_write", arguments=half)
        assert told["result"]["structuredContent"]["code"] == "INVALID_QUERY"
    assert files.data("file_stat", path="/a") == NOTHING


@pytest.mark.req("ST-05")
def test_payloads_and_files_up_to_the_limit_are_fine_and_one_byte_more_is_not(files: Files) -> None:
    payload = "x" * 2_000_000
    assert files("file_write", path="/a", content=payload + "x").code == "PAYLOAD_TOO_LARGE"
    for _ in range(5):
        assert files.data("file_write", path="/a", content=payload) == {"bytes_written": 2_000_000}
    assert files("file_write", path="/a", content="x").code == "PAYLOAD_TOO_LARGE"
    assert files.data("file_stat", path="/a")["size"] == 10_000_000


@pytest.mark.req("ST-05")
def test_a_full_project_takes_nothing_more_but_may_shrink(small: Deployment, project: str) -> None:
    files = Files(small.agent, project)
    for number in range(10):
        files.replace(f"/{number}", "x" * 100)
    assert files("file_write", path="/more", content="x").code == "QUOTA_EXCEEDED"
    assert files("file_write", path="/0", content="x").code == "QUOTA_EXCEEDED"
    files.replace("/0", "x" * 99)
    files("file_write", path="/0", content="x").ok()
    files("file_delete", path="/1").ok()
    files.replace("/2", "y" * 100)
    files.replace("/more", "x" * 100)
    (deleted,) = files.data("file_history", path="/1")["versions"]
    assert files("file_restore", path="/1", version=deleted["version"]).code == "QUOTA_EXCEEDED"
    (mine,) = [one for one in small.agent.call("project_list").data["projects"] if one["project"] == project]
    assert mine["total_bytes"] == SMALL["max_project_bytes"]


@pytest.mark.req("ST-06", "ST-07", "ST-08")
def test_stat_says_everything_in_one_form(files: Files) -> None:
    assert files.data("file_stat", path="/d") == NOTHING
    assert files.data("file_stat", path="") == NOTHING
    files.write("/d/x", "/d/e/y")
    first, last = (files.data("file_stat", path=path) for path in ("/d/x", "/d/e/y"))
    assert (first["exists"], first["type"], first["size"]) == (True, "FILE", 4)
    assert first["created_at"] == first["updated_at"]
    assert first["created_at"].endswith("Z")
    directory = {"exists": True, "type": "DIRECTORY", "size": 0, "created_at": None, "updated_at": last["updated_at"]}
    assert files.data("file_stat", path="/d") == directory
    assert files.data("file_stat", path="") == directory
    files("file_delete", path="/d", recursive=True).ok()
    assert files.data("file_stat", path="") == NOTHING


@pytest.mark.req("ST-09")
def test_reads_of_what_is_no_file(files: Files) -> None:
    files.write("/d/x")
    assert files("file_read", path="/d").code == "IS_DIRECTORY"
    assert files("file_read", path="/none").code == "NOT_FOUND"
    assert files("file_read", path="").code == "INVALID_PATH"


@pytest.mark.req("ST-10")
def test_reads_of_ranges(files: Files) -> None:
    files.replace("/h", "hello")
    ranges = {(0, -1): "hello", (1, 3): "ell", (5, -1): "", (99, -1): "", (0, 0): "", (3, 99): "lo"}
    for (offset, length), expected in ranges.items():
        found = files.data("file_read", path="/h", offset=offset, length=length)
        assert found == {"content": expected, "content_encoding": "utf-8"}
    for path in ("/h", "/none"):
        assert files("file_read", path=path, offset=-1).code == "INVALID_OFFSET"
        assert files("file_read", path=path, length=-2).code == "INVALID_OFFSET"


@pytest.mark.req("ST-11")
@pytest.mark.parametrize(
    ("offset", "length", "content", "start", "end"),
    [(2, 3, "é", 1, 3), (1, 1, "é", 1, 3), (4, 1, "€", 3, 6), (0, 4, "aé", 0, 3), (5, -1, "€b", 3, 7)],
)
def test_a_slice_keeps_characters_whole_and_says_where_it_is(
    files: Files, offset: int, length: int, content: str, start: int, end: int
) -> None:
    files.replace("/u", "aé€b")
    found = files.data("file_read", path="/u", offset=offset, length=length)
    assert (found["content"], found["start"], found["end"]) == (content, start, end)


@pytest.mark.req("ST-12")
def test_writes_append_by_default(files: Files) -> None:
    assert files.data("file_write", path="/f", content="hello") == {"bytes_written": 5}
    assert files.data("file_write", path="/f", content="world", offset=3) == {"bytes_written": 5}
    assert files.text("/f") == "helloworld"
    assert files("file_write", path="/f", content="x", offset=-1).code == "INVALID_OFFSET"


@pytest.mark.req("ST-13", "ST-16")
def test_overwriting_in_place(files: Files) -> None:
    def overwritten(before: str, content: str, offset: int) -> str:
        files.replace("/f", before)
        reply = files("file_write", path="/f", content=content, offset=offset, mode="overWrite")
        return reply.code if reply.is_error else files.text("/f")

    assert overwritten("hello", "yo", 0) == "yollo"
    assert overwritten("ABCDE", "XX", 2) == "ABXXE"
    assert overwritten("ABCDE", "XX", 4) == "ABCDXX"
    assert overwritten("ABCDE", "X", 5) == "ABCDEX"
    assert overwritten("ABCDE", "X", 6) == "INVALID_OFFSET"
    assert overwritten("aéb", "X", 1) == "INVALID_OFFSET"
    assert files.text("/f") == "aéb"
    assert files("file_write", path="/new", content="x", offset=1, mode="OVERWRITE").code == "INVALID_OFFSET"
    files("file_write", path="/new", content="x", mode="OVERWRITE").ok()
    assert files.text("/new") == "x"


@pytest.mark.req("ST-14", "ST-16")
def test_replacing(files: Files) -> None:
    files.replace("/f", "hello")
    files("file_write", path="/f", content="yo", mode="truncate").ok()
    assert files.text("/f") == "yo"
    assert files("file_write", path="/f", content="x", offset=1, mode="TRUNCATE").code == "INVALID_OFFSET"
    assert files("file_write", path="/f", content="x", mode="MERGE").code == "INVALID_OFFSET"
    files.replace("/f", "")
    found = files.data("file_stat", path="/f")
    assert (found["exists"], found["type"], found["size"]) == (True, "FILE", 0)


@pytest.mark.req("ST-15", "ST-17")
def test_files_and_directories_do_not_mix(files: Files) -> None:
    files.write("/d/x", "/f", "/deep/er/and/deeper")
    assert files("file_write", path="/d", content="x").code == "IS_DIRECTORY"
    assert files("file_write", path="/f/x", content="x").code == "NOT_DIRECTORY"
    assert files("file_write", path="", content="x").code == "INVALID_PATH"
    assert files.paths() == ["/d/x", "/deep/er/and/deeper", "/f"]


@pytest.mark.req("ST-18")
def test_created_at_stays_and_updated_at_moves_forward(files: Files) -> None:
    seen = []
    for _ in range(8):
        files("file_write", path="/f", content="x").ok()
        seen.append(files.data("file_stat", path="/f"))
    assert {one["created_at"] for one in seen} == {seen[0]["created_at"]}
    times = [one["updated_at"] for one in seen]
    assert times == sorted(set(times))


@pytest.mark.req("ST-20", "ST-21")
def test_deletes(files: Files) -> None:
    files.write("/a", "/d/x", "/d/e/y")
    assert files.data("file_delete", path="/a") == {"deleted_count": 1}
    assert files("file_delete", path="/a").code == "NOT_FOUND"
    assert files("file_delete", path="/d").code == "NOT_EMPTY"
    assert files("file_delete", path="").code == "INVALID_PATH"
    assert files("file_delete", path="", recursive=True).code == "PERMISSION_DENIED"
    assert files.data("file_delete", path="/d", recursive=True) == {"deleted_count": 2}
    assert files.paths() == []


@pytest.mark.req("ST-21")
def test_a_project_is_wiped_where_that_is_allowed(small: Deployment, project: str) -> None:
    files = Files(small.agent, project)
    files.write("/a", "/d/x")
    assert files("file_delete", path="").code == "INVALID_PATH"
    assert files.data("file_delete", path="", recursive=True) == {"deleted_count": 2}
    assert files.paths() == []


@pytest.mark.req("ST-22")
def test_after_a_delete_a_write_creates_anew_and_the_old_row_stays(place: Deployment, files: Files) -> None:
    files.replace("/a", "old")
    before = files.data("file_stat", path="/a")
    files("file_delete", path="/a").ok()
    assert files.data("file_stat", path="/a") == NOTHING
    assert files.data("file_list") == {"entries": [], "has_more": False}
    files.replace("/a", "new")
    assert files.data("file_stat", path="/a")["created_at"] > before["created_at"]
    rows = place.rows(f"SELECT content, deleted FROM mcp_files WHERE project = '{files.project}' ORDER BY id")
    assert [(bytes(row["content"]), bool(row["deleted"])) for row in rows] == [(b"old", True), (b"new", False)]


@pytest.mark.req("SV-06.d")
def test_the_tools_have_the_names_and_parameters_that_agents_know(place: Deployment) -> None:
    expected = {
        "file_stat": ["project", "path"],
        "file_read": ["project", "path", "offset", "length"],
        "file_write": ["project", "path", "content", "content_encoding", "offset", "mode", "idempotency_key"],
        "file_delete": ["project", "path", "recursive", "idempotency_key"],
        "file_rename": ["project", "from_path", "to_path", "overwrite", "idempotency_key"],
        "file_list": ["project", "path", "depth", "limit"],
        "file_search": ["project", "query", "path_prefix", "limit"],
        "file_history": ["project", "path"],
        "file_restore": ["project", "path", "version", "idempotency_key"],
        "project_list": [],
    }
    listed = {entry.name: entry for entry in place.agent.tools()}
    for name, parameters in expected.items():
        assert sorted(listed[name].input_schema.get("properties", {})) == sorted(parameters)
        assert listed[name].output_schema
        assert "$ref" not in json.dumps(listed[name].output_schema)


@pytest.mark.req("SV-06", "FS-15")
def test_a_text_that_is_read_comes_as_text_too_up_to_the_budget_of_an_answer(files: Files) -> None:
    long = "0123456789" * 15_000
    files("file_write", path="/long", content=long).ok()
    files("file_write", path="/short", content="short").ok()
    assert files("file_read", path="/short").ok().text == "short"
    answer = files("file_read", path="/long").ok()
    assert answer.data["content"] == long
    text, note = answer.texts
    assert note == "[Cut by the token budget at byte 100000 of the range to 150000. For more: offset=100000]"
    assert text + files("file_read", path="/long", offset=100_000).ok().text == long
