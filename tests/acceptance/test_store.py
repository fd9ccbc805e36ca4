"""The project store through a real client: names, parameters, answers and codes as agents know them."""

import json
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.helpers.agent import Agent, Reply


@pytest.fixture
def project() -> str:
    """Give a project that nobody has used."""
    return f"p-{uuid4().hex}"


@pytest.fixture
def files(agent: Agent, project: str) -> "Files":
    """Give the store's tools for one project."""
    return Files(agent, project)


class Files:
    """The tools with the project filled in."""

    def __init__(self, agent: Agent, project: str) -> None:
        self.agent = agent
        self.project = project

    def __call__(self, tool: str, **arguments: Any) -> Reply:
        return self.agent.call(tool, **{"project": self.project, **arguments})

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self(tool, **arguments).ok().data

    def write(self, *paths: str) -> None:
        for path in paths:
            self("file_write", path=path, content=path).ok()

    def paths(self) -> list[str]:
        entries = self.data("file_list", depth=99)["entries"]
        return [entry["path"] for entry in entries if entry["type"] == "FILE"]


@pytest.mark.req("ST-01")
@pytest.mark.parametrize("project", ["", "x" * 129, "a b", "项目", "*"])
def test_a_bad_project_is_refused(agent: Agent, project: str) -> None:
    assert agent.call("file_stat", project=project, path="/a").code == "INVALID_PATH"
    assert agent.call("file_write", project=project, path="/a", content="x").code == "INVALID_PATH"


@pytest.mark.req("ST-02")
def test_bad_paths_are_refused_and_good_ones_taken(files: Files) -> None:
    bad = ["a", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a b", "/a\x7f", "/你好", "/" + "x" * 512]
    assert {files("file_stat", path=path).code for path in bad} == {"INVALID_PATH"}
    for path in ["", "/a", "/a-b_c.d", "/.hidden", "/" + "x" * 511]:
        assert files.data("file_stat", path=path)["exists"] is False


@pytest.mark.req("ST-03")
def test_errors_carry_code_message_and_whether_to_retry(files: Files) -> None:
    error = files("file_read", path="/none").error
    assert set(error) == {"code", "message", "retryable"}
    assert error["retryable"] is False


@pytest.mark.req("ST-04")
def test_only_utf_8_is_written(files: Files) -> None:
    assert files.data("file_write", path="/a", content="é", content_encoding="UTF-8") == {"bytes_written": 2}
    assert files("file_write", path="/a", content="x", content_encoding="latin-1").code == "INVALID_QUERY"
    assert files.data("file_read", path="/a") == {"content": "é", "content_encoding": "utf-8"}


@pytest.mark.req("ST-05")
def test_a_payload_of_the_limit_is_fine_and_one_byte_more_is_not(files: Files) -> None:
    assert files.data("file_write", path="/a", content="x" * 2_000_000) == {"bytes_written": 2_000_000}
    assert files("file_write", path="/a", content="x" * 2_000_001).code == "PAYLOAD_TOO_LARGE"


@pytest.mark.req("ST-06", "ST-07", "ST-08")
def test_stat_says_everything_in_one_form(files: Files) -> None:
    nothing = {"exists": False, "type": None, "size": 0, "created_at": None, "updated_at": None}
    assert files.data("file_stat", path="/d") == nothing
    assert files.data("file_stat", path="") == nothing
    files.write("/d/x")
    file = files.data("file_stat", path="/d/x")
    assert (file["exists"], file["type"], file["size"]) == (True, "FILE", 4)
    assert file["created_at"].endswith("Z")
    directory = {"exists": True, "type": "DIRECTORY", "size": 0, "created_at": None, "updated_at": file["updated_at"]}
    assert files.data("file_stat", path="/d") == directory
    assert files.data("file_stat", path="") == directory


@pytest.mark.req("ST-09", "ST-10", "ST-11")
def test_reads_of_ranges(files: Files) -> None:
    files("file_write", path="/h", content="hello").ok()
    files("file_write", path="/d/u", content="aé€b").ok()
    assert files.data("file_read", path="/h", offset=1, length=3)["content"] == "ell"
    assert files.data("file_read", path="/h", offset=99)["content"] == ""
    assert files("file_read", path="/h", offset=-1).code == "INVALID_OFFSET"
    assert files("file_read", path="/none", length=-2).code == "INVALID_OFFSET"
    assert files("file_read", path="/none").code == "NOT_FOUND"
    assert files("file_read", path="/d").code == "IS_DIRECTORY"
    assert files("file_read", path="").code == "INVALID_PATH"
    assert files.data("file_read", path="/d/u", offset=2, length=3) == {
        "content": "é",
        "content_encoding": "utf-8",
        "start": 1,
        "end": 3,
    }


@pytest.mark.req("ST-12", "ST-13", "ST-14", "ST-16", "ST-18")
def test_writes_by_mode(files: Files) -> None:
    files("file_write", path="/f", content="hello").ok()
    before = files.data("file_stat", path="/f")
    assert files.data("file_write", path="/f", content="world", offset=3) == {"bytes_written": 5}
    files("file_write", path="/f", content="yo", mode="overwrite").ok()
    assert files.data("file_read", path="/f")["content"] == "yolloworld"
    assert files("file_write", path="/f", content="x", offset=11, mode="OVERWRITE").code == "INVALID_OFFSET"
    assert files("file_write", path="/f", content="x", offset=1, mode="TRUNCATE").code == "INVALID_OFFSET"
    assert files("file_write", path="/f", content="x", mode="MERGE").code == "INVALID_OFFSET"
    files("file_write", path="/f", content="", mode="TRUNCATE").ok()
    after = files.data("file_stat", path="/f")
    assert (after["exists"], after["size"], after["created_at"]) == (True, 0, before["created_at"])
    assert after["updated_at"] > before["updated_at"]


@pytest.mark.req("ST-15", "ST-17")
def test_files_and_directories_do_not_mix(files: Files) -> None:
    files.write("/d/x", "/f")
    assert files("file_write", path="/d", content="x").code == "IS_DIRECTORY"
    assert files("file_write", path="/f/x", content="x").code == "NOT_DIRECTORY"
    assert files("file_write", path="", content="x").code == "INVALID_PATH"


@pytest.mark.req("ST-20", "ST-21", "ST-22", "ST-23")
def test_deletes(files: Files) -> None:
    files.write("/a", "/a_b/x", "/aXb/x", "/A_B/x")
    assert files.data("file_delete", path="/a") == {"deleted_count": 1}
    assert files("file_delete", path="/a").code == "NOT_FOUND"
    assert files("file_delete", path="/a_b").code == "NOT_EMPTY"
    assert files.data("file_delete", path="/a_b", recursive=True) == {"deleted_count": 1}
    assert files("file_delete", path="").code == "INVALID_PATH"
    assert files("file_delete", path="", recursive=True).code == "PERMISSION_DENIED"
    assert files.paths() == ["/A_B/x", "/aXb/x"]


@pytest.mark.req("ST-24", "ST-25", "ST-26", "ST-27", "ST-28")
def test_renames(files: Files) -> None:
    files.write("/docs/a", "/docs/b", "/docs2/x", "/f", "/g")
    assert files.data("file_rename", from_path="/docs", to_path="/new") == {"moved_count": 2}
    assert files("file_rename", from_path="/f", to_path="/g").code == "ALREADY_EXISTS"
    assert files.data("file_rename", from_path="/f", to_path="/g", overwrite=True) == {"moved_count": 1}
    assert files.data("file_read", path="/g")["content"] == "/f"
    assert files("file_rename", from_path="/new", to_path="/new/sub").code == "INVALID_PATH"
    assert files("file_rename", from_path="/g", to_path="/g/sub").code == "NOT_DIRECTORY"
    assert files("file_rename", from_path="/new", to_path="/g/sub").code == "NOT_DIRECTORY"
    assert files("file_rename", from_path="", to_path="/x").code == "INVALID_PATH"
    assert files("file_rename", from_path="/none", to_path="/none").code == "NOT_FOUND"
    assert files.data("file_rename", from_path="/g", to_path="/g") == {"moved_count": 0}
    assert files.paths() == ["/docs2/x", "/g", "/new/a", "/new/b"]


@pytest.mark.req("ST-29", "ST-30", "ST-31")
def test_listings(files: Files) -> None:
    assert files.data("file_list") == {"entries": [], "has_more": False}
    files.write("/a/x", "/a-b", "/b")
    listed = files.data("file_list", path="/")
    assert [(entry["name"], entry["type"], entry["created_at"] is None) for entry in listed["entries"]] == [
        ("a", "DIRECTORY", True),
        ("a-b", "FILE", False),
        ("b", "FILE", False),
    ]
    assert files.data("file_list", limit=2)["has_more"] is True
    assert len(files.data("file_list", limit=0, depth=2)["entries"]) == 4
    assert files("file_list", path="/none").code == "NOT_FOUND"
    assert files("file_list", path="/b").code == "NOT_FOUND"
    assert files("file_list", depth=-1).code == "INVALID_OFFSET"


@pytest.mark.req("ST-32")
def test_a_listing_of_one_level_shows_a_large_directory_as_one_entry(files: Files) -> None:
    files.write(*(f"/big/{number}" for number in range(60)), "/small")
    assert [entry["path"] for entry in files.data("file_list", limit=2)["entries"]] == ["/big", "/small"]


@pytest.mark.req("ST-33", "ST-39")
def test_24_parallel_appends_leave_every_token_once(files: Files) -> None:
    calls = [("file_write", {"project": files.project, "path": "/log", "content": f"<{n}>"}) for n in range(24)]
    assert all(not reply.is_error for reply in files.agent.parallel(calls))
    text = files.data("file_read", path="/log")["content"]
    assert sorted(text) == sorted("".join(f"<{n}>" for n in range(24)))


@pytest.mark.req("ST-36")
def test_another_machine_user_is_another_store(files: Files, root: Path, tmp_path: Path) -> None:
    files.write("/a")
    state = tmp_path / "other-state"
    state.mkdir(mode=0o700)
    with Agent([root], state, options=["--in-process"]) as other:
        assert other.call("file_stat", project=files.project, path="/a").data["exists"] is False
        assert other.call("project_list").data == {"projects": []}


@pytest.mark.req("ST-37")
def test_a_reader_sees_old_or_new(files: Files) -> None:
    files("file_write", path="/a", content="0" * 3000).ok()
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(files.data("file_read", path="/a")["content"])

    reader = threading.Thread(target=read)
    reader.start()
    for digit in "123456789":
        files("file_write", path="/a", content=digit * 3000, mode="TRUNCATE").ok()
    done.set()
    reader.join()
    assert all(text == text[0] * 3000 for text in seen)


@pytest.mark.req("ST-38", "ST-42")
def test_a_retried_change_counts_once_and_a_failed_one_not_at_all(files: Files) -> None:
    files.write("/f")
    assert files("file_write", path="/f/x", content="x", idempotency_key="k").code == "NOT_DIRECTORY"
    for _ in range(2):
        assert files.data("file_write", path="/a", content="x", idempotency_key="k") == {"bytes_written": 1}
    assert files.data("file_read", path="/a")["content"] == "x"
    assert files("file_write", path="/a", content="y", idempotency_key="k").code == "CONFLICT"
    assert files.paths() == ["/a", "/f"]


@pytest.mark.req("ST-50")
def test_versions_come_back(files: Files) -> None:
    files("file_write", path="/a", content="one").ok()
    files("file_write", path="/a", content="two", mode="TRUNCATE").ok()
    files("file_delete", path="/a").ok()
    newest, oldest = files.data("file_history", path="/a")["versions"]
    assert (newest["size"], oldest["size"]) == (3, 3)
    assert files.data("file_restore", path="/a", version=oldest["version"]) == {"bytes_written": 3}
    assert files.data("file_read", path="/a")["content"] == "one"
    assert files("file_restore", path="/a", version=99).code == "NOT_FOUND"
    assert files("file_history", path="/none").code == "NOT_FOUND"


@pytest.mark.req("ST-51")
def test_projects_are_listed(files: Files) -> None:
    files.write("/a", "/b")
    (mine,) = [one for one in files.agent.call("project_list").data["projects"] if one["project"] == files.project]
    assert (mine["file_count"], mine["total_bytes"]) == (2, 4)
    assert mine["updated_at"] == files.data("file_stat", path="/b")["updated_at"]


@pytest.mark.req("ST-40")
def test_a_written_file_is_found_and_a_renamed_one_at_its_new_place(files: Files) -> None:
    files("file_write", path="/docs/a", content="the quick brown fox").ok()
    files("file_rename", from_path="/docs/a", to_path="/b").ok()
    (hit,) = files.data("file_search", query="Quick")["chunks"]
    assert (hit["file_path"], hit["chunk_content"], hit["is_full_file"]) == ("/b", "the quick brown fox", True)
    read = files.data("file_read", path="/b", offset=hit["file_seek_start_bytes"], length=hit["file_seek_end_bytes"])
    assert read["content"] == hit["chunk_content"]
    assert files("file_search", query=" ").code == "INVALID_QUERY"
    (everywhere,) = [
        one
        for one in files.data("file_search", project="*", query="quick")["chunks"]
        if one["project"] == files.project
    ]
    assert everywhere["file_path"] == "/b"


@pytest.mark.req("SV-06.d")
def test_the_tools_have_the_names_and_parameters_that_agents_know(agent: Agent) -> None:
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
    listed = {entry.name: entry for entry in agent.tools()}
    for name, parameters in expected.items():
        assert sorted(listed[name].input_schema.get("properties", {})) == sorted(parameters)
        assert listed[name].output_schema
        assert "$ref" not in json.dumps(listed[name].output_schema)
