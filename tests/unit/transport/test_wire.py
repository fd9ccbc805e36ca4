"""Results as the wire has them, made without the protocol's library."""

import json
import subprocess
import sys
from typing import Any

import mcp_types
import pytest
from pydantic import BaseModel
from pydantic_core import to_json

from holdfast.errors import NotFound
from holdfast.tools.answer import Answer
from holdfast.transport.mcp.wire import SERVER_INFO, answer_result, dump, error_result, stateless_result


class Described(BaseModel):
    """The data of an answer that quotes a file."""

    shape: str
    counts: dict[str, int] = {}


def test_the_servers_name_goes_under_the_protocols_own_key() -> None:
    assert SERVER_INFO == mcp_types.SERVER_INFO_META_KEY
    assert stateless_result({}, {"name": "x"})["_meta"] == {mcp_types.SERVER_INFO_META_KEY: {"name": "x"}}


def test_a_command_that_runs_a_tool_by_itself_does_not_load_the_protocols_library() -> None:
    script = "import sys, holdfast.wiring.build, holdfast.transport.mcp.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert not {"mcp", "mcp_types"} & set(done.stdout.split())


@pytest.mark.parametrize("text", ["a\ud800b", "\udc80", "\ud83d\ude00"])
def test_an_answer_or_error_that_quotes_a_lone_surrogate_can_be_sent(text: str) -> None:
    result = answer_result(Answer.of(text, data=Described(shape=text, counts={text: 1})))
    to_json(result)
    assert result["structuredContent"]["shape"] == result["content"][0]["text"]
    error = error_result(NotFound(text, hint=text))
    assert error["structuredContent"]["hint"] == result["content"][0]["text"]
    to_json(error)


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x" * 300_000, "b": [1, 'é\U0001f600\n"' * 60_000, None], "c": {"d": [{"e": "\u2028" * 200_000}]}},
        {"content": [{"text": "\\" * 131_072 + '"'}], "isError": False, "n": 1.5},
        {"rows": [{"name": f"é{row}", "size": row} for row in range(2_001)], "none": [], "one": ["y" * 200_000]},
        {"few": ["z" * 400] * 999, "nested": [[[]] * 1_001, {"": [{}]}]},
        {},
    ],
)
def test_a_value_dumped_in_pieces_is_the_same_value(value: dict[str, Any]) -> None:
    assert json.loads(dump(value)) == value
