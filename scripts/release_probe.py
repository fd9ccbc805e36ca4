"""Calls an installed Holdfast with the official client, one tool of each group, over stdio and over HTTP.

`prove_release.py` runs it with the Python of a virtual environment that holds the wheel and nothing else.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("files", "write_file", {"path": "note.txt", "content": "The release date is the first of May.\n"}, ""),
    ("files", "read_text_file", {"path": "note.txt"}, "first of May"),
    ("review", "list_reviews", {}, ""),
    ("organise", "create_organization_plan", {"folder_path": "."}, "plan"),
    ("search", "search_folders", {"query": "release date"}, "first of May"),
    ("search", "grep_content", {"pattern": "release"}, "note.txt"),
    ("store", "file_write", {"project": "p", "path": "/a.md", "content": "Kept in the store."}, ""),
    ("store", "file_search", {"project": "p", "query": "store"}, "Kept in the store"),
    ("pipe", "mcp_pipe", {"steps": [{"id": "s", "tool": "list_allowed_directories", "arguments": {}}]}, ""),
]
"""The group, the tool, its arguments, and what its answer holds."""


async def call_everything(client: Client, door: str) -> None:
    """Make the calls, and end the process at the first that fails."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    for group, tool, arguments, expected in CALLS:
        result = await client.call_tool(tool, arguments)
        text = "\n".join(getattr(block, "text", "") for block in result.content)
        if tool not in listed or result.is_error or expected not in text:
            sys.exit(f"{door}: {tool} of {group}: {text[:500]}")
    print(f"{door}: {len(listed)} tools listed; {len(CALLS)} calls, one of each group at least")


async def over_stdio(program: str, folder: Path, errors: TextIO) -> None:
    """Start `holdfast stdio` as a client does."""
    environment = {"HOLDFAST_STATE_DIR": os.environ["HOLDFAST_STATE_DIR"], "PATH": os.environ["PATH"]}
    parameters = StdioServerParameters(command=program, args=["stdio", str(folder)], env=environment)
    async with Client(stdio_client(parameters, errlog=errors)) as client:
        await call_everything(client, "stdio")


async def over_http(url: str, token: str) -> None:
    """Connect to a running server."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        page = await http.get(url, headers={"Accept": "text/html"})
        if page.status_code != 200 or "<script" not in page.text:
            sys.exit(f"the console answered {page.status_code}")
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await call_everything(client, "HTTP")


def main() -> None:
    """Serve over stdio, then over HTTP, with a state folder and a folder of files that are removed in the end."""
    program = str(Path(sys.executable).parent / "holdfast")
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as top:
        os.environ["HOLDFAST_STATE_DIR"] = f"{top}/state"
        folder = Path(top, "files")
        folder.mkdir()
        try:
            with Path(os.devnull).open("w") as errors:
                anyio.run(over_stdio, program, folder, errors)
        finally:
            subprocess.run([program, "stop"], check=False, capture_output=True, timeout=60)
        command = [program, "serve", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                assert server.stdout is not None
                first = next(
                    (address for line in server.stdout if (address := re.search(r"http://127\.0\.0\.1:\d+", line))),
                    None,
                )
                if first is None:
                    sys.exit("serve printed no address")
                anyio.run(over_http, first[0], Path(top, "state", "agent.token").read_text().strip())
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
