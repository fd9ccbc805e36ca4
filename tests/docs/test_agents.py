"""The page about what an agent is told: every row that has a call is made, and its texts are what is answered."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.documents import pdf, word
from tests.helpers.trees import plant

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
FOLDER = "/home/you"
ROW = re.compile(r"^\| `(\w+) (\{.*?\})`(?:, again)? \| (.+) \|$", re.MULTILINE)
TEXT = re.compile(r"`([^`]+)`")
LOWEST_NUMBER_OF_ROWS = 35


@pytest.fixture
def agent(tmp_path: Path, state_dir: Path) -> Iterator[Agent]:
    """Give an agent of the folder that the page describes."""
    root = tmp_path / "proj"
    root.mkdir()
    plant(root, {"src": {"app.py": "import os\n"}, "README.md": "Read me.\n", "paper.docx": word()})
    plant(root, {".gitignore": "build/\n", "build": {"made.txt": "needle\n"}, "report.pdf": pdf("Some text.")})
    (root / "latest").symlink_to("release-7")
    with Agent([root], state_dir) as connected:
        yield connected


def answered(agent: Agent, tool: str, arguments: dict[str, Any]) -> str:
    """Return all that an answer says: the message of an error, and what stands beside it."""
    reply = agent.call_with(tool, arguments)
    return "\n".join(map(str, reply.error.values())) if reply.is_error else reply.text


def test_an_agent_is_told_what_the_page_says(agent: Agent, tmp_path: Path) -> None:
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) >= LOWEST_NUMBER_OF_ROWS
    for tool, arguments, texts in rows:
        text = answered(agent, tool, json.loads(arguments.replace(FOLDER, str(tmp_path)))).replace(
            str(tmp_path), FOLDER
        )
        for promised in TEXT.findall(texts):
            pieces = [piece for piece in promised.split("…") if piece]
            assert re.search(".*".join(map(re.escape, pieces)), text), f"{tool} {arguments}: {promised}\n{text}"
