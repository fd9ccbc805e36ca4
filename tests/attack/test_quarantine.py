"""What waits in quarantine is reached by no link, whatever the verb and however the link is spelt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

SECRET = "the bytes of another plan"
LINKS = {
    "q": ".holdfast-quarantine",
    "chain": "q",
    "deep": "sub/up/.holdfast-quarantine",
    "sub/up": "..",
    "spelt": ".Holdfast-QUARANTINE",
    "file": ".holdfast-quarantine/3.0",
    "sub/relative": "../.holdfast-quarantine",
}
READING: dict[str, dict[str, Any]] = {
    "read_text_file": {"path": "{}/3.0"},
    "read_files": {"files": [{"path": "{}/3.0"}]},
    "read_media_file": {"path": "{}/3.0"},
    "read_multiple_files": {"paths": ["{}/3.0"]},
    "list_directory": {"path": "{}"},
    "list_directory_with_sizes": {"path": "{}"},
    "directory_tree": {"path": "{}"},
    "get_file_info": {"path": "{}/3.0"},
    "search_files": {"path": "{}", "pattern": "*"},
    "grep_content": {"search_path": "{}", "pattern": "bytes"},
    "query_json": {"file_path": "{}/data.json", "expression": "."},
    "query_yaml": {"file_path": "{}/data.json", "expression": "."},
    "search_folders": {"path": "{}", "query": "bytes"},
}
CHANGING: dict[str, dict[str, Any]] = {
    "write_file": {"path": "{}/new.txt", "content": "x"},
    "edit_file": {"path": "{}/3.0", "edits": [{"oldText": "bytes", "newText": "x"}]},
    "edit_files": {"files": [{"path": "{}/3.0", "edits": [{"old_string": "bytes", "new_string": "x"}]}]},
    "append_text": {"path": "{}/3.0", "content": "x"},
    "create_directory": {"path": "{}/folder"},
    "move_file": {"source": "{}/3.0", "destination": "stolen.txt"},
    "delete_file": {"path": "{}/3.0"},
    "propose_and_review": {"path": "{}/3.0", "old_string": "bytes", "new_string": "x"},
    "create_organization_plan": {"folder_path": "{}"},
}
REFUSALS = {"NOT_FOUND", "ACCESS_DENIED", "NOT_DIRECTORY"}
OF_THE_LINK = ("move_file", "delete_file")
"""These move or delete a link itself, and leave alone what it leads to."""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, state_dir: Path) -> Iterator[Agent]:
    root = tmp_path_factory.mktemp("attack") / "project"
    plant(root, {".holdfast-quarantine": {"3.0": SECRET, "data.json": f'{{"x": "{SECRET}"}}'}, "sub": {}})
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    (root / "absolute").symlink_to(root / ".holdfast-quarantine")
    with Agent([root], state_dir) as connected:
        yield connected


def fill(arguments: dict[str, Any], link: str) -> dict[str, Any]:
    """Return arguments with the link for each `{}`; the link to a file stands for the whole path."""

    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(each) for each in value]
        if isinstance(value, dict):
            return {name: put(each) for name, each in value.items()}
        if not isinstance(value, str) or "{}" not in value:
            return value
        return link if link == "file" else value.format(link)

    return {name: put(value) for name, value in arguments.items()}


@pytest.mark.req("FS-02.b")
@pytest.mark.parametrize("link", [".holdfast-quarantine", *LINKS, "absolute"])
def test_no_verb_reaches_the_quarantine(agent: Agent, link: str) -> None:
    if link == "sub/up":
        link = "sub/up/.holdfast-quarantine"
    offered = {tool.name for tool in agent.tools()}
    assert offered >= {"read_text_file", "grep_content", "write_file", "propose_and_review"}
    for tool, arguments in {**READING, **CHANGING}.items():
        if link == "file" and tool in OF_THE_LINK:
            continue
        reply = agent.call(tool, **fill(arguments, link))
        assert SECRET not in reply.text, (tool, link)
        assert reply.refusals, (tool, link, reply.text)
        assert "unknown argument" not in reply.text, reply.text
        assert set(reply.refusals) <= REFUSALS, (tool, link, reply.text)


@pytest.mark.req("FS-02.b")
def test_a_search_from_above_finds_nothing_in_the_quarantine(agent: Agent) -> None:
    for tool, arguments in (
        ("grep_content", {"search_path": ".", "pattern": "bytes", "include_ignored": True}),
        ("search_files", {"path": ".", "pattern": "**/*3.0*"}),
        ("directory_tree", {"path": "."}),
        ("search_folders", {"query": "the bytes of another plan"}),
    ):
        reply = agent.call(tool, **arguments).ok()
        assert SECRET not in reply.text, tool
        assert '"3.0"' not in reply.text, tool
