"""A client process of the soak: lanes that read and write through every group of tools, one call after another.

`python -m tests.torture.soak_client CONFIG`, where CONFIG is JSON. Each second it prints how many calls were made; its last
line has the times of the calls as well. Every call has the outcome that it must come back with; any other one is an error.
"""

import http.client
import json
import math
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.transport.client.calls import call_by_socket
from holdfast.transport.state_folder import StateFolder
from tests.helpers.agent import command
from tests.helpers.doors import ACCEPT, INITIALIZE
from tests.torture.wire import Broken, Door, NotSent, Stream

FILES = 20
STEP = 1.05
"""Times are counted in classes, each of them so many times as long as the one before."""
_RELAY_CALLS = 10_000
_LINE_CALLS = 500
_MAX_ERRORS = 20


@dataclass(frozen=True)
class Config:
    """What a client is told. It ends after `calls` calls and `seconds` seconds, whichever is later; `pause` is between calls.

    Odd lanes speak through a relay of their own, the others HTTP with the key of local clients, one of three WebSocket.
    """

    state: str
    root: str
    port: int
    key: str
    lanes: int
    calls: int
    seconds: float
    pause: float = 0.0
    seed: int = 1


class Tally:
    """What all lanes have done."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0
        self.times: dict[str, Counter[int]] = {}
        self.tools: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def add(self, door: str, tool: str, seconds: float, error: str = "") -> None:
        """Count one call."""
        step = max(0, round(math.log(max(seconds, 1e-6) * 1e5, STEP)))
        with self.lock:
            self.calls += 1
            self.tools[tool] += 1
            self.times.setdefault(door, Counter())[step] += 1
            if error and (error in self.errors or len(self.errors) < _MAX_ERRORS):
                self.errors[error] += 1

    def report(self, *, is_last: bool) -> str:
        """Return a line of JSON."""
        with self.lock:
            facts: dict[str, Any] = {"calls": self.calls, "errors": dict(self.errors)}
            if is_last:
                facts |= {"times": {door: dict(steps) for door, steps in self.times.items()}, "tools": dict(self.tools)}
        return json.dumps(facts)


class Relay:
    """`holdfast stdio`, spoken to one call at a time."""

    def __init__(self, config: Config) -> None:
        environment = {**os.environ, "HOLDFAST_STATE_DIR": config.state}
        self._process = subprocess.Popen(
            command("stdio", config.root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd="/"
        )
        self._number = 0
        self._send({"id": 0, "method": "initialize", "params": INITIALIZE})
        self._answer(0)
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result; Broken when there is none."""
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        self._send({"id": self._number, "method": "tools/call", "params": params})
        return self._answer(self._number)

    def give_up(self, tool: str, arguments: dict[str, Any]) -> None:
        """Begin a call, and cancel it at once."""
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        self._send({"id": self._number, "method": "tools/call", "params": params})
        self._send({"method": "notifications/cancelled", "params": {"requestId": self._number}})

    def close(self) -> None:
        """End the relay as a client does, by the end of its input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Broken("the relay ended") from error

    def _answer(self, number: int) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                if "result" not in message:
                    raise Broken(f"protocol error {message['error'].get('code')}")
                result: dict[str, Any] = message["result"]
                return result
        raise Broken("the relay ended")


class Lane:
    """One sequence of calls in a folder and a project of its own."""

    def __init__(self, config: Config, number: int, tally: Tally) -> None:
        self._config = config
        self._tally = tally
        self._name = f"lane-{number}"
        self._choose = random.Random(f"{config.seed}.{number}")
        self.door = "stdio" if number % 2 else "websocket" if number % 3 == 0 else "http"
        self._line: Relay | Door | Stream | None = None
        self._line_calls = 0
        self._count = 0
        self._text = ""
        self._last_at = time.perf_counter()
        self._folder = Path(config.root) / self._name
        self._folder.mkdir(exist_ok=True)
        for file in range(FILES):
            (self._folder / f"file {file}.txt").write_text(f"mark {file}\n" + "alpha beta gamma delta\n" * (file * 20))
        (self._folder / "data.json").write_text(json.dumps({"rows": [{"number": row} for row in range(200)]}))
        for stored in range(FILES):
            text = f"# Note {stored}\n\nthe quick brown fox number {stored} of {self._name}\n"
            self.call("file_write", project=self._name, path=f"/notes/{stored}.md", content=text, mode="TRUNCATE")

    def run(self, until: float) -> None:
        """Make calls until there are enough and the time is over."""
        actions, weights = zip(*ACTIONS, strict=True)
        while self._tally.calls < self._config.calls or time.monotonic() < until:
            (action,) = self._choose.choices(actions, weights)
            action(self)
        self._hang_up()

    def call(self, tool: str, expected: str = "", /, **arguments: Any) -> dict[str, Any]:
        """Make a call, which must succeed, or fail with that code; return its data, empty when it went wrong."""
        if self._config.pause:
            time.sleep(self._config.pause)
        began = time.perf_counter()
        try:
            result = self._connected().call(tool, arguments)
        except (Broken, NotSent) as error:
            fault = (
                f"{tool} over {self.door}: {type(error).__name__} {error}, call {self._line_calls} of the connection"
            )
            fault += f", {began - self._last_at:.3f} s after the last one"
            self._tally.add(self.door, tool, time.perf_counter() - began, fault)
            self._hang_up()
            return {}
        self._last_at = time.perf_counter()
        seconds = self._last_at - began
        data = result.get("structuredContent") or {}
        self._text = "".join(block.get("text", "") for block in result.get("content", []))
        outcome = str(data.get("code", "error")) if result.get("isError") else ""
        message = str(data.get("message", self._text))[:200]
        self._tally.add(self.door, tool, seconds, "" if outcome == expected else f"{tool}: {outcome} {message}")
        return data if outcome == expected else {}

    def _connected(self) -> Relay | Door | Stream:
        self._line_calls += 1
        if self._line_calls > (_RELAY_CALLS if self.door == "stdio" else _LINE_CALLS):
            self._hang_up()
        if self._line is None:
            config = self._config
            if self.door == "stdio":
                self._line = Relay(config)
            else:
                self._line = (Door if self.door == "http" else Stream)(config.port, config.key)
        return self._line

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line, self._line_calls = None, 0

    def _path(self, name: str = "") -> str:
        return str(self._folder / (name or f"file {self._choose.randrange(FILES)}.txt"))

    def _stored(self) -> dict[str, str]:
        return {"project": self._name, "path": f"/notes/{self._choose.randrange(FILES)}.md"}

    def _next(self) -> int:
        self._count += 1
        return self._count

    def read(self) -> None:
        """Read a file, whole or its first lines."""
        if self._next() % 2:
            self.call("read_text_file", path=self._path())
        else:
            self.call("read_text_file", path=self._path(), head=5)

    def read_several(self) -> None:
        """Read several files at once."""
        self.call("read_files", files=[{"path": self._path()}, {"path": self._path(), "tail": 3}])

    def describe(self) -> None:
        """Ask what a file is."""
        self.call("get_file_info", path=self._path())

    def list_folder(self) -> None:
        """List the folder in one of three ways."""
        tool = self._choose.choice(["list_directory", "list_directory_with_sizes", "directory_tree"])
        self.call(tool, path=str(self._folder))

    def allowed(self) -> None:
        """Ask for the allowed directories."""
        self.call("list_allowed_directories")

    def miss(self) -> None:
        """Ask for what is not there, outside, or wrong."""
        self.call("read_text_file", "NOT_FOUND", path=self._path("nothing.txt"))
        self.call("read_text_file", "ACCESS_DENIED", path="/etc/hosts")
        self.call("read_text_file", "INVALID_ARGUMENT", path=self._path(), head="many")

    def find(self) -> None:
        """Find files by name."""
        self.call("search_files", path=str(self._folder), pattern="**/*7*")

    def grep(self) -> None:
        """Search content; through a relay, sometimes give up at once."""
        search = {"pattern": "mark 1[0-9]", "search_path": str(self._folder)}
        if isinstance(self._line, Relay) and self._next() % 3 == 0:
            self._line.give_up("grep_content", search)
        self.call("grep_content", **search)

    def query(self) -> None:
        """Run a jq program."""
        self.call("query_json", file_path=self._path("data.json"), expression=".rows | map(.number) | add")

    def write(self) -> None:
        """Write a file, and sometimes take it back."""
        self.call("write_file", path=self._path("written.txt"), content=f"text {self._next()}\n" * 30)
        change = re.search(r"^change ([0-9a-f]{32})$", self._text, re.MULTILINE)
        if change and self._choose.random() < 0.3:
            self.call("undo_change", change_id=change[1])

    def edit(self) -> None:
        """Replace a line and put it back, and append to a file that is made anew."""
        path = self._path("file 3.txt")
        self.call("edit_file", path=path, edits=[{"oldText": "mark 3", "newText": "other 3"}])
        self.call("edit_file", path=path, edits=[{"oldText": "other 3", "newText": "mark 3"}])
        self.call("write_file", path=self._path("log.txt"), content="begin\n")
        self.call("append_text", path=self._path("log.txt"), content=f"line {self._next()}\n")

    def move(self) -> None:
        """Make a directory, move a file there and back, and delete the directory."""
        folder = self._path(f"made {self._next()}")
        self.call("create_directory", path=folder)
        self.call("move_file", source=self._path("file 5.txt"), destination=f"{folder}/file 5.txt")
        self.call("move_file", source=f"{folder}/file 5.txt", destination=self._path("file 5.txt"))
        self.call("delete_file", path=folder, recursive=True)

    def list_own(self) -> None:
        """List changes, reviews and plans."""
        self.call(self._choose.choice(["list_changes", "list_reviews", "list_plans"]))

    def review(self) -> None:
        """Propose a change, which the person approves, and commit it."""
        path = self._path("reviewed.txt")
        Path(path).write_text("first\n")
        text = f"second {self._next()}\n"
        proposed = self.call("propose_and_review", path=path, old_string="first\n", new_string=text)
        if not proposed:
            return
        reviews = self._as_person("pending_reviews").get("reviews", [])
        review_id = next(review["review_id"] for review in reviews if review["path"] == path)
        view = self._as_person("show_review", review_id=review_id)
        shown_hash = view.get("shown_hash", "")
        if self._as_person("decide_review", review_id=review_id, decision="approve", shown_hash=shown_hash):
            self.call("commit_review", session_path=proposed["session_path"], original_path=path)

    def organise(self) -> None:
        """Tidy a folder: plan, approval, execution, undo; then delete it."""
        folder = self._folder / f"messy {self._next()}"
        folder.mkdir()
        for number in range(6):
            (folder / f"invoice {number}.txt").write_text(f"invoice {number} total amount due 12 EUR\n" * 5)
        if plan_id := self.call("create_organization_plan", folder_path=str(folder)).get("plan_id"):
            self.call("revise_plan", plan_id=plan_id, changes=[{"path": "invoice 0.txt", "folder": "Invoices"}])
            plan = self.call("get_plan", plan_id=plan_id)
            self._as_person("approve_plan", plan_id=plan_id, plan_hash=plan.get("plan_hash", ""))
            self.call("execute_plan", plan_id=plan_id)
            self.call("undo_plan", plan_id=plan_id)
        self.call("delete_file", path=str(folder), recursive=True)

    def search_folders(self) -> None:
        """Search the indexed folders."""
        self.call("search_folders", query="alpha gamma mark", path=str(self._folder))

    def read_store(self) -> None:
        """Read, stat or list stored files."""
        tool = self._choose.choice(["file_stat", "file_read", "file_list", "file_history", "project_list"])
        if tool == "project_list":
            self.call(tool)
        elif tool == "file_list":
            self.call(tool, project=self._name, path="/notes")
        else:
            self.call(tool, **self._stored())

    def write_store(self) -> None:
        """Write, rename, delete and restore a stored file."""
        stored = {"project": self._name, "path": "/drafts/a.md"}
        self.call("file_write", **stored, content=f"a note on turn {self._next()}\n", mode="TRUNCATE")
        self.call("file_rename", project=self._name, from_path="/drafts/a.md", to_path="/drafts/b.md", overwrite=True)
        self.call("file_delete", project=self._name, path="/drafts/b.md")
        self.call("file_read", "NOT_FOUND", **stored)

    def search_store(self) -> None:
        """Search stored files."""
        self.call("file_search", project=self._name, query="quick brown fox")

    def pipe(self) -> None:
        """Run three steps in one call."""
        steps: list[dict[str, Any]] = [
            {"id": "a", "tool": "get_file_info", "arguments": {"path": self._path()}},
            {"id": "b", "tool": "read_text_file", "arguments": {"path": self._path()}},
            {"id": "c", "tool": "file_stat", "after": ["b"], "arguments": self._stored()},
        ]
        self.call("mcp_pipe", steps=steps)

    def session(self) -> None:
        """Open a session over HTTP, call a tool in it and end it; through the other doors connect anew."""
        if self.door != "http":
            self._hang_up()
            return
        began = time.perf_counter()
        problem = _use_session(self._config, self._path())
        self._tally.add(self.door, "session", time.perf_counter() - began, f"session: {problem}" if problem else "")

    def _as_person(self, tool: str, **arguments: Any) -> dict[str, Any]:
        began = time.perf_counter()
        result = call_by_socket(StateFolder(self._config.state), tool, arguments, "person")
        data: dict[str, Any] = result.get("structuredContent") or {}
        error = f"{tool}: {data.get('code')} {data.get('message')}" if result.get("isError") else ""
        self._tally.add("person", tool, time.perf_counter() - began, error)
        return {} if error else data


ACTIONS: list[tuple[Callable[[Lane], None], float]] = [
    (Lane.read, 330),
    (Lane.read_several, 60),
    (Lane.describe, 130),
    (Lane.list_folder, 80),
    (Lane.allowed, 60),
    (Lane.miss, 15),
    (Lane.find, 6),
    (Lane.grep, 2),
    (Lane.query, 1),
    (Lane.write, 8),
    (Lane.edit, 4),
    (Lane.move, 2),
    (Lane.list_own, 30),
    (Lane.review, 0.5),
    (Lane.organise, 0.1),
    (Lane.search_folders, 2),
    (Lane.read_store, 240),
    (Lane.write_store, 4),
    (Lane.search_store, 5),
    (Lane.pipe, 20),
    (Lane.session, 0.3),
]
"""What a lane does, and how often in comparison."""


def _use_session(config: Config, path: str) -> str:
    """Go through a session of the handshake era; return what went wrong."""
    connection = http.client.HTTPConnection("127.0.0.1", config.port, timeout=30)
    headers = {"Authorization": f"Bearer {config.key}", "Accept": ACCEPT, "Content-Type": "application/json"}
    call: dict[str, Any] = {"name": "read_text_file", "arguments": {"path": path}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": call},
    ]
    try:
        for message in messages:
            connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status not in (200, 202) or b'"error":{"code"' in text or b'"isError":true' in text:
                return f"{message['method']}: {answer.status}"
            if session := answer.getheader("mcp-session-id"):
                headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": str(INITIALIZE["protocolVersion"])}
        connection.request("DELETE", "/mcp", headers=headers)
        answer = connection.getresponse()
        answer.read()
        return "" if answer.status in (200, 204) else f"DELETE: {answer.status}"
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def main() -> None:
    """Run every lane to its end."""
    config, tally = Config(**json.loads(sys.argv[1])), Tally()
    until = time.monotonic() + config.seconds
    failed = threading.Event()

    def run(number: int) -> None:
        try:
            Lane(config, number, tally).run(until)
        except BaseException:
            failed.set()
            raise

    lanes = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(config.lanes)]
    for lane in lanes:
        lane.start()
    while any(lane.is_alive() for lane in lanes) and not failed.is_set():
        time.sleep(1)
        print(tally.report(is_last=False), flush=True)
    print(tally.report(is_last=True), flush=True)
    sys.exit(1 if failed.is_set() else 0)


if __name__ == "__main__":
    main()
