"""`holdfast tools` and `holdfast call`: declarations for a model's API, and any tool from a terminal or a script."""

import json
from pathlib import Path

import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.declarations import declare
from holdfast.tools.table import TOOLS
from tests.helpers.doors import House

AGENTS = [tool for tool in TOOLS if tool.audience is CallerKind.AGENT and tool.listed]


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Give a state folder with nothing running."""
    return House(tmp_path)


@pytest.mark.req("SV-43.b")
@pytest.mark.parametrize("form", ["mcp", "openai", "gemini"])
def test_declarations_are_printed_for_all_tools_and_for_one(house: House, form: str) -> None:
    printed = json.loads(house.run("tools", "--as", form).stdout)
    assert printed == [declare(tool, form) for tool in AGENTS]  # type: ignore[arg-type]
    edit = json.loads(house.run("tools", "edit_files", "--as", form).stdout)
    assert edit in printed


@pytest.mark.req("SV-43.b")
def test_the_tools_are_listed_less_what_the_settings_switch_off(house: House) -> None:
    house.settings(
        "settings:\n  mcp:\n    tools:\n      delete_file: {enabled: false}\n    groups:\n      store: {enabled: false}\n"
    )
    names = [tool["name"] for tool in json.loads(house.run("tools", "--json").stdout)]
    assert "edit_files" in names
    assert not {"delete_file", "file_write", "decide_review"} & set(names)
    assert "decide_review" in house.run("tools", "--person").stdout
    one = house.run("tools", "move_file").stdout
    assert "source  (string, required)" in one
    wrong = house.run("tools", "mov_file")
    assert wrong.returncode == 1
    assert "move_file" in wrong.stderr


@pytest.mark.req("SV-43.c")
def test_a_workspace_is_described_for_a_folder(house: House) -> None:
    text = house.run("tools", "--workspace", str(house.root)).stdout
    assert f"- {house.root}\n" in text
    assert "edit_files" in text


@pytest.mark.req("SV-43.a")
def test_any_tool_is_called_with_its_arguments_as_json(house: House) -> None:
    folder = ("--dir", str(house.root))
    assert house.run("call", "read_text_file", *folder, "--json", '{"path": "a.txt"}').stdout == "hello\n"
    made = house.run("call", "write_file", *folder, "--json", '{"path": "b.txt", "content": "by hand"}')
    assert made.returncode == 0, made.stderr
    raw = json.loads(house.run("call", "all_changes", "--raw").stdout)
    [change] = raw["structuredContent"]["changes"]
    assert change["is_yours"] is True
    arguments = json.dumps({"change_id": change["change_id"]}).encode()
    undone = house.run_bytes("call", "undo_for_person", "--json", "-", stdin=arguments)
    assert undone.returncode == 0, undone.stderr
    assert not (house.root / "b.txt").exists()


@pytest.mark.req("SV-43.a")
def test_a_call_that_fails_has_the_exit_status_of_its_error(house: House) -> None:
    folder = ("--dir", str(house.root))
    for arguments, status, words in (
        (("read_text_file", *folder, "--json", "{"), 2, "JSON object"),
        (("read_text_file", *folder, "--json", "[1]"), 2, "JSON object"),
        (("read_text_file", *folder, "--json", '{"path": "/etc/passwd"}'), 13, "outside"),
        (("read_text_file", *folder, "--json", '{"pfad": "a.txt"}'), 2, "path"),
        (("no_such_tool",), 1, "no tool"),
    ):
        ran = house.run("call", *arguments)
        assert ran.returncode == status, ran.stderr
        assert words in ran.stderr
        assert ran.stdout == ""
    failed = house.run("call", "read_text_file", *folder, "--raw", "--json", '{"path": "none.txt"}')
    assert json.loads(failed.stdout)["error"]["code"] == "NOT_FOUND"


@pytest.mark.req("SV-43.a")
def test_control_characters_of_a_file_stay_bytes_in_a_pipe(house: House) -> None:
    (house.root / "esc.txt").write_text("\x1b[31mred\x1b[0m\n")
    ran = house.run_bytes("call", "read_text_file", "--dir", str(house.root), "--json", '{"path": "esc.txt"}')
    assert ran.stdout == b"\x1b[31mred\x1b[0m\n"
