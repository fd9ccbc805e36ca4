"""Nothing leaves the machine: the server, a relay and every command are traced, with each kind of model.

A lookup, a connection to anything but what the settings name, or a file outside the state folder, the served folders and
what the command names fails the test. Each run has a home and a temporary folder of its own, which are empty afterwards.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

from holdfast.cli.main import cli
from tests.helpers.agent import Agent, command
from tests.helpers.chat import chat_server
from tests.helpers.collector import trace_collector
from tests.helpers.documents import pdf, picture, word
from tests.helpers.doors import children_of, is_alive, until
from tests.helpers.langfuse import langfuse_server
from tests.helpers.models import model_server
from tests.helpers.organising import HOUSE
from tests.helpers.tracing import Allowance, traced
from tests.helpers.trees import plant

pytestmark = [pytest.mark.timeout(300)]

TREE = {**HOUSE, "data.json": '{"a": [1, 2]}', "page.pdf": pdf(), "letter.docx": word(), "picture.png": picture(40, 30)}
MAY_FAIL = (("review", "edit"), ("doctor",))
"""The editor saves nothing; the machine of the tests may lack what the doctor looks for."""
KINDS = ("minilm", "endpoints", "none")


@dataclass
class Traced:
    """One state folder whose processes are traced, each into a log of its own."""

    folder: Path
    settings: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    ports: set[int] = field(default_factory=set)
    offences: dict[str, list[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state, self.root = self.folder / "state", self.folder / "project"
        self.home, self.temporary, self.logs = (self.folder / name for name in ("home", "temporary", "logs"))
        for made in (self.state, self.home, self.temporary, self.logs):
            made.mkdir(mode=0o700)
        plant(self.root, TREE)
        (self.state / "settings.yml").write_text(json.dumps({"settings": self.settings}))

    @property
    def env(self) -> dict[str, str]:
        """Return an environment with nothing of the tests in it; bytecode is made when a package is installed."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "HOLDFAST_STATE_DIR": str(self.state),
            "PYTHONDONTWRITEBYTECODE": "1",
            "EDITOR": "true",
            **self.environment,
        }

    def judge(self, name: str, log: Path) -> None:
        """Look through a trace."""
        allowed = Allowance((self.state, self.root, self.temporary), frozenset(self.ports))
        found = allowed.offences(log)
        if found:
            self.offences[name] = found

    def run(self, *words: str, given: bytes = b"", seconds: float = 60) -> "subprocess.CompletedProcess[bytes]":
        """Run one command to its end, or end it after some seconds, and judge its trace."""
        log = self.logs / f"{len(list(self.logs.iterdir()))}-{words[0]}"
        process = subprocess.Popen(
            [*traced(log), *command(*words)],
            env=self.env,
            cwd=self.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            out, err = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            for child in children_of(process.pid):
                os.kill(child, signal.SIGTERM)
            out, err = process.communicate(timeout=30)
        self.judge(" ".join(words), log)
        if process.returncode != 0 and words[:2] not in MAY_FAIL:
            self.failures[" ".join(words)] = f"{process.returncode} {err.decode()}"
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def data(self, *words: str) -> dict[str, Any]:
        """Run one command that succeeds, and return the JSON that it prints."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, (words, done.stderr.decode())
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextmanager
    def serve(self) -> Iterator[None]:
        """Run the server in the foreground."""
        log = self.logs / "serve"
        words = [*traced(log), *command("serve", "--port", "0", str(self.root))]
        process = subprocess.Popen(
            words,
            env=self.env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        facts = until("the server is up", lambda: self._facts() or process.poll() is not None, 60)
        assert facts is not True, process.stderr.read()
        self.ports.add(facts["port"])
        try:
            yield
        finally:
            os.kill(facts["pid"], signal.SIGTERM)
            process.wait(60)
            process.stderr.close()
            self.judge("serve", log)

    @contextmanager
    def background_server(self) -> Iterator[None]:
        """Let a relay start a server; its trace ends with the server."""
        log = self.logs / "background"
        words = [*traced(log), *command("stdio", str(self.root))]
        process = subprocess.Popen(
            words,
            env=self.env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        facts = until("the relay has started a server", lambda: self._facts() or process.poll() is not None, 60)
        assert facts is not True, process.stderr.read()
        self.ports.add(facts["port"])
        yield
        process.wait(60)
        process.stderr.close()
        self.judge("stdio", log)

    def _facts(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.state / "server.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found if is_alive(found["pid"]) else {}


@contextmanager
def place_of(kind: str, folder: Path) -> Iterator[Traced]:
    """Give a state folder whose settings name one kind of model; endpoints are servers of this test."""
    settings: dict[str, Any] = {"review": {"wait_seconds": 0.1}}
    with ExitStack() as stack:
        if kind != "endpoints":
            settings["mcp"] = {"files": {"search": {"embedder": {"kind": kind}}}}
            yield Traced(folder, settings)
            return
        models = stack.enter_context(model_server())
        chat = stack.enter_context(chat_server("Invoices"))
        langfuse = stack.enter_context(langfuse_server())
        collector = stack.enter_context(trace_collector())
        embedder = {"kind": "openai", "endpoint": f"{models.url}/v1/embeddings", "api_key": "sk-test"}
        rerank = {"endpoint": f"{models.url}/v2/rerank"}
        settings["mcp"] = {"files": {"search": {"embedder": embedder, "rerank": rerank}}}
        settings["organiser"] = {"classifier": "openai", "share_content": True, "llm": {"endpoint": chat.url}}
        settings["observe"] = {"traces": {"endpoint": collector.url}}
        place = Traced(folder, settings, {**langfuse.environment, "OPENAI_API_KEY": "sk-test"})
        place.ports |= {urlsplit(url).port or 0 for url in (models.url, chat.url, langfuse.url, collector.url)}
        yield place
        assert models.requests, "the endpoint of embeddings was asked"
        assert chat.requests, "the chat model was asked"
        assert langfuse.bodies, "Langfuse was told"
        assert collector.spans, "the collector of traces got spans"


def use_every_tool(place: Traced) -> None:
    """Call the tools of an agent through a traced relay, among them all that start a child process."""
    log = place.logs / "stdio"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "new.txt", "content": "the harbour master sleeps\n"}),
        ("edit_file", {"path": "new.txt", "edits": [{"oldText": "sleeps", "newText": "wakes"}]}),
        ("read_text_file", {"path": "new.txt"}),
        ("read_text_file", {"path": "page.pdf"}),
        ("read_text_file", {"path": "letter.docx"}),
        ("read_media_file", {"path": "picture.png"}),
        ("grep_content", {"search_path": ".", "pattern": "harbour"}),
        ("search_files", {"path": ".", "pattern": "*.txt"}),
        ("query_json", {"file_path": "data.json", "expression": ".a"}),
        ("search_folders", {"query": "who wakes at the harbour"}),
        ("file_write", {"project": "p", "path": "/a.txt", "content": "the lighthouse keeper reads"}),
        ("file_search", {"project": "p", "query": "a keeper of lights"}),
        ("propose_and_review", {"path": "new.txt", "old_string": "wakes", "new_string": "dreams"}),
        ("propose_and_review", {"path": "data.json", "old_string": "1", "new_string": "3"}),
        ("propose_and_review", {"path": "pasta.txt", "old_string": "flour", "new_string": "rice"}),
        ("create_organization_plan", {"folder_path": "."}),
        ("list_changes", {}),
    ]
    with Agent([place.root], place.state, env=place.env, prefix=traced(log)) as agent:
        for tool, arguments in calls:
            agent.call(tool, **arguments).ok()
    place.judge("stdio", log)


Step = Callable[[Traced], object]


def steps(*words: str) -> Step:
    """Return a step that runs one command."""
    return lambda place: place.run(*words)


def reviews(place: Traced) -> list[str]:
    return [str(review["review_id"]) for review in place.data("review", "list")["reviews"]]


def review_that(place: Traced, *actions: str) -> str:
    listed = place.data("review", "list")["reviews"]
    return str(next(review["review_id"] for review in listed if review["user_action"] in actions))


def change_of(place: Traced, kind: str) -> str:
    changes = place.data("changes", "list")["changes"]
    return str(next(change["change_id"] for change in changes if change["kind"] == kind))


def approve_review(place: Traced) -> None:
    review = reviews(place)[0]
    assert place.run("review", "approve", review, place.data("review", "show", review)["code"], "--yes").returncode == 0


def approve_plan(place: Traced) -> None:
    assert place.run("organise", "approve", "", place.data("organise", "show")["code"], "--yes").returncode == 0


def restore(place: Traced) -> None:
    versions = place.data("files", "history", "-p", "p", "/b.txt")["versions"]
    place.run("files", "restore", "-p", "p", "/b.txt", str(versions[0]["version"]))


def create_and_revoke(place: Traced) -> None:
    key = place.data("keys", "create")
    assert place.run("keys", "revoke", str(key["id"])).returncode == 0


def create_rotate_and_erase(place: Traced) -> None:
    key = place.data("keys", "create")
    assert place.run("keys", "rotate", str(key["id"])).returncode == 0
    assert place.run("keys", "erase", str(key["id"]), "--yes").returncode == 0


CASES: dict[str, Step] = {
    "status": steps("status"),
    "open": steps("open", "--print"),
    "calls": steps("calls"),
    "policy show": steps("policy", "show"),
    "policy test": steps("policy", "test", "notes.txt"),
    "tools": steps("tools", "--as", "openai"),
    "call": steps("call", "read_text_file", "--json", '{"path": "data.json"}'),
    "review": steps("review"),
    "review list": steps("review", "list"),
    "review show": lambda place: place.run("review", "show", reviews(place)[0], "--side-by-side"),
    "review revise": lambda place: place.run("review", "revise", reviews(place)[0], "-m", "shorter"),
    "review reject": lambda place: place.run("review", "reject", reviews(place)[0]),
    "review edit": lambda place: place.run("review", "edit", reviews(place)[0]),
    "review approve": approve_review,
    "review apply": lambda place: place.run("review", "apply", review_that(place, "APPROVE")),
    "review withdraw": lambda place: place.run("review", "withdraw", review_that(place, "PENDING", "REVIEW")),
    "organise scan": steps("organise", "scan", "."),
    "organise list": steps("organise", "list"),
    "organise show": steps("organise", "show", "--all"),
    "organise move": steps("organise", "move", "scan_0012.txt", "Recipes"),
    "organise explain": steps("organise", "explain", "pasta.txt"),
    "organise evaluate": steps("organise", "evaluate", "."),
    "organise approve": approve_plan,
    "organise execute": steps("organise", "execute"),
    "organise undo": steps("organise", "undo"),
    "organise cancel": steps("organise", "cancel"),
    "changes list": steps("changes", "list", "."),
    "changes show": lambda place: place.run("changes", "show", change_of(place, "edit")),
    "changes diff": steps("changes", "diff", "--since", "1h"),
    "undo": steps("undo", "--yes"),
    "redo": steps("redo", "--yes"),
    "changes restore": lambda place: place.run("changes", "restore", change_of(place, "edit")),
    "changes prune": steps("changes", "prune", "--before", "10d", "--yes"),
    "search": steps("search", "the harbour", "."),
    "files put": steps("files", "put", "-p", "p", "/b.txt", "new.txt"),
    "files ls": steps("files", "ls", "-p", "p"),
    "files cat": steps("files", "cat", "-p", "p", "/b.txt"),
    "files stat": steps("files", "stat", "-p", "p", "/b.txt"),
    "files search": steps("files", "search", "-p", "p", "harbour"),
    "files rm": steps("files", "rm", "-p", "p", "/b.txt"),
    "files history": steps("files", "history", "-p", "p", "/b.txt"),
    "files restore": restore,
    "files mv": steps("files", "mv", "-p", "p", "/b.txt", "/c.txt"),
    "files projects": steps("files", "projects"),
    "files export": steps("files", "export", "p", "exported"),
    "files import": steps("files", "import", "exported", "q"),
    "index status": steps("index", "status"),
    "index retry": steps("index", "retry"),
    "index rebuild": steps("index", "rebuild"),
    "index drain": steps("index", "drain"),
    "keys create": create_and_revoke,
    "keys list": steps("keys", "list"),
    "keys revoke": create_and_revoke,
    "keys rotate": create_rotate_and_erase,
    "keys erase": create_rotate_and_erase,
    "config show": steps("config", "show"),
    "config check": steps("config", "check"),
    "doctor": steps("doctor"),
    "migrate": steps("migrate"),
    "backup create": steps("backup", "create", "backup.tar"),
    "backup verify": steps("backup", "verify", "backup.tar"),
    "restore": lambda place: None,
    "install": steps("install", "cursor", "--project", "--yes", "."),
    "uninstall": steps("uninstall", "cursor", "--project", "--yes"),
    "serve": lambda place: None,
    "stdio": lambda place: None,
    "stop": lambda place: None,
    "worker": lambda place: None,
}
"""What is run for each command, in this order, while a server runs; those that need none, or are servers, by the test."""


def commands_of(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every command that can be typed, by its words."""
    if not isinstance(group, click.Group) or (path and group.invoke_without_command):
        yield " ".join(path)
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from commands_of(found, (*path, name))


@pytest.mark.req("SV-33.a")
def test_every_command_is_traced() -> None:
    assert set(CASES) == set(commands_of(cli)), "a command without a case, or a case without a command"


@pytest.mark.req("SV-33.a")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaves_the_machine(kind: str, tmp_path: Path) -> None:
    with place_of(kind, tmp_path) as place:
        with place.serve():
            use_every_tool(place)
            for step in CASES.values():
                step(place)
        if kind == "minilm":
            run_without_a_server(place)
    assert place.failures == {}, "each command did its work"
    assert place.offences == {}
    assert list(place.home.iterdir()) == []
    assert list(place.temporary.iterdir()) == []


def run_without_a_server(place: Traced) -> None:
    """Run what works on the state itself, a relay that starts a server in the background, and a worker."""
    for words in (
        ["review", "list"],
        ["organise", "scan", "."],
        ["files", "search", "-p", "p", "harbour"],
        ["index", "drain"],
        ["restore", "backup.tar", "--yes"],
        ["stdio", "--in-process", "."],
    ):
        place.run(*words)
    with place.background_server():
        place.run("search", "the harbour", ".")
        place.run("stop")
    place.run("worker", seconds=4)


REPORT = """
import os, socket
def report():
    os.makedirs(os.path.expanduser("~/.cache"), exist_ok=True)
    open(os.path.expanduser("~/.cache/deviceid"), "w").close()
    open("/dev/shm/.ses", "w").close()
    os.unlink("/dev/shm/.ses")
    try:
        socket.getaddrinfo("telemetry.invalid", 443)
    except OSError:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", ("127.0.0.1", 53))
    with socket.socket(socket.AF_INET) as line:
        line.connect_ex(("127.0.0.1", 9))
"""
STAND_IN = REPORT + 'if os.environ.get("ORT_DISABLE_TELEMETRY") != "1":\n    report()\n'
LOAD = "from holdfast.adapters.models import minilm\n{}minilm.load_onnxruntime()\n"


def offences_of(folder: Path, code: str) -> list[str]:
    """Return what the checker says of Python code that may import a library which reports what it is used for."""
    place = Traced(folder, {})
    (place.root / "onnxruntime.py").write_text(STAND_IN)
    log = place.logs / "code"
    env = {**place.env, "PYTHONPATH": str(place.root)}
    done = subprocess.run(
        [*traced(log), sys.executable, "-c", code], env=env, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    place.judge("code", log)
    return place.offences.get("code", [])


@pytest.mark.req("SV-33.b")
def test_the_trace_shows_a_library_that_reports(tmp_path: Path) -> None:
    found = offences_of(tmp_path, f"{REPORT}\nreport()\n")
    for offence in (
        f"mkdir of {tmp_path}/home/.cache",
        f"openat of {tmp_path}/home/.cache/deviceid",
        "openat of /dev/shm/.ses",
        "lookup: /etc/resolv.conf",
        "sendto to 127.0.0.1 port 53",
        "connect to 127.0.0.1 port 9",
    ):
        assert offence in found, found


@pytest.mark.req("SV-33.b")
def test_telemetry_is_off_before_the_library_is_imported_and_is_seen_when_it_is_not(tmp_path: Path) -> None:
    for name in ("off", "on"):
        (tmp_path / name).mkdir()
    assert offences_of(tmp_path / "off", LOAD.format("")) == []
    without_switch = LOAD.format("minilm.disable_onnx_telemetry = lambda: None\n")
    assert "connect to 127.0.0.1 port 9" in offences_of(tmp_path / "on", without_switch)
