"""Results as the wire has them, made without the protocol's library."""

import subprocess
import sys

import mcp_types

from holdfast.transport.mcp.wire import SERVER_INFO, stamped


def test_the_servers_name_goes_under_the_protocols_own_key() -> None:
    assert SERVER_INFO == mcp_types.SERVER_INFO_META_KEY
    assert stamped({}, {"name": "x"})["_meta"] == {mcp_types.SERVER_INFO_META_KEY: {"name": "x"}}


def test_a_command_that_runs_a_tool_by_itself_does_not_load_the_protocols_library() -> None:
    script = "import sys, holdfast.wiring, holdfast.transport.mcp.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert not {"mcp", "mcp_types"} & set(done.stdout.split())
