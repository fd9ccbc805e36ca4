"""Every reading tool over JSON that breaks careless readers: always an answer, or a tool error with a code of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.nasty_json import nasty_documents
from tests.helpers.pipe import Pipe

pytestmark = [pytest.mark.timeout(300), pytest.mark.req("SV-05", "SV-06")]

DOCUMENTS = nasty_documents()
STEPS_PER_PIPE = 10
QUERIED_SHARE = 4
"""A query starts a process, so one document in four is queried."""


def reading_calls(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return a call of every tool that reads a local file as text."""
    edit = {"path": name, "edits": [{"oldText": "1", "newText": "\N{PILE OF POO}"}], "dryRun": True}
    return [
        ("get_file_info", {"path": name}),
        ("read_text_file", {"path": name}),
        ("read_text_file", {"path": name, "tail": 1}),
        ("read_files", {"files": [{"path": name, "start_line": 1, "read_to_next_pattern": "."}]}),
        ("read_media_file", {"path": name}),
        ("grep_content", {"pattern": ".", "search_path": name, "section_patterns": ["."]}),
        ("edit_file", edit),
    ]


def answered(pipe: Pipe, number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call after making sure that it is one, and no fault of the server."""
    answer = pipe.ask(number, "tools/call", {"name": tool, "arguments": arguments})
    assert "result" in answer, (tool, arguments, answer)
    result: dict[str, Any] = answer["result"]
    assert not result["isError"] or result["structuredContent"]["code"] != "INTERNAL", (tool, arguments, result)
    json.dumps(result, ensure_ascii=False).encode()
    return result


def plant_documents(root: Path) -> list[str]:
    """Write every document under its name as JSON and as a file without a suffix; return the names."""
    names = []
    for name, data in DOCUMENTS.items():
        for path in (f"{name}.json", name):
            (root / path).write_bytes(data)
            names.append(path)
    return names


def test_a_key_that_is_a_lone_surrogate_is_shown_as_a_replacement_character(root: Path, state_dir: Path) -> None:
    (root / "a.json").write_text(r'{"\ud800": 1}')
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        result = answered(pipe, 1, "get_file_info", {"path": "a.json"})
    assert result["structuredContent"]["shape"] == 'JSON object, 1 keys: "\ufffd"'


def test_every_tool_that_reads_files_answers_for_every_document(root: Path, state_dir: Path) -> None:
    names = plant_documents(root)
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        calls = [call for name in names for call in reading_calls(name)]
        calls += [
            ("list_directory", {"path": "."}),
            ("directory_tree", {"path": "."}),
            ("grep_content", {"pattern": "needle"}),
            ("search_folders", {"query": "needle"}),
        ]
        for number, (tool, arguments) in enumerate(calls, start=1):
            answered(pipe, number, tool, arguments)


def test_queries_and_pipes_answer_for_nasty_documents(root: Path, state_dir: Path) -> None:
    plant_documents(root)
    names = [f"{name}.json" for name in DOCUMENTS][::QUERIED_SHARE]
    calls = [
        (tool, {"file_path": name, "expression": "., (.. | keys?)"})
        for name in names
        for tool in ("query_json", "query_yaml")
    ]
    calls += [("get_file_info", {"path": name}) for name in names]
    steps = [
        {"id": f"s{number}", "tool": tool, "arguments": arguments} for number, (tool, arguments) in enumerate(calls)
    ]
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        for number, start in enumerate(range(0, len(steps), STEPS_PER_PIPE), start=1):
            some = steps[start : start + STEPS_PER_PIPE]
            result = answered(pipe, number, "mcp_pipe", {"steps": some, "continue_on_error": True})
            for outcome in result["structuredContent"]["steps"]:
                assert outcome["status"] == "ok" or outcome["error"]["code"] != "INTERNAL", outcome


def test_the_store_answers_for_every_document(root: Path, state_dir: Path) -> None:
    with Pipe([root], state_dir) as pipe:
        pipe.initialize()
        for number, (name, data) in enumerate(DOCUMENTS.items()):
            text = data.decode("utf-8", "surrogateescape")
            place = {"project": "nasty", "path": f"/{name}.json"}
            for at, content in enumerate((text, text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))):
                answered(pipe, 10 * number + at, "file_write", {**place, "content": content, "mode": "TRUNCATE"})
            answered(pipe, 10 * number + 2, "file_read", {**place, "offset": 1})
            query = {"project": "nasty", "query": text[:200]}
            answered(pipe, 10 * number + 3, "file_search", query)
