"""`holdfast install`: one line connects a client, and nothing else of its configuration changes."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.helpers.doors import House
from tests.helpers.editor import fake_code
from tests.helpers.installer import ClientHome
from tests.helpers.terminal import answered

CLAUDE = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "weather": { "command": "npx", "args": ["-y", "weather"], "env": { "KEY": "s\\u00e9cret" } }
  }
}
"""
CODE = """\ufeff// VS Code\r
{\r
\t"inputs": [ ], // none\r
\t"servers": {\r
\t\t/* mine */\r
\t\t"git": { "type": "stdio", "command": "git-mcp", },\r
\t},\r
}\r
"""
STATE = '{"numStartups":7,"projects":{"/p":{"mcpServers":{"holdfast":{"command":"x"}}}},"mcpServers":{"a":{"url":"https://example.org"}},"z":[1,2]}'
SETTINGS = """// Zed settings
{
    "theme": "One Dark",
    "context_servers": {
        // "off": { "command": "x" },
    },
    "vim_mode": true, // yes
}
"""
CODEX = """\
model = "gpt" # best
[mcp_servers.docs]
command = "docs"
args = [
  "a", # ]
]

[profiles.x]
y = "[mcp_servers.holdfast]"
"""
GOOSE = """\
GOOSE_MODEL: x  # best
extensions:
  developer:
    enabled: true
    type: builtin
  # off for now
  memory: {enabled: false}
slash: ['a', "b"]
"""
SAMPLES = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", CLAUDE),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "{\n}"),
    ("claude-code", ".claude.json", STATE),
    ("cursor", ".cursor/mcp.json", '{ "mcpServers": { } }'),
    ("cursor", ".cursor/mcp.json", ""),
    ("vscode", ".config/Code/User/mcp.json", CODE),
    ("windsurf", ".codeium/windsurf/mcp_config.json", CLAUDE.replace("\n", "\r\n").replace("  ", "\t")),
    ("zed", ".config/zed/settings.json", SETTINGS),
    ("gemini", ".gemini/settings.json", '{\n "selectedAuthType": "x"\n}\n'),
    ("codex", ".codex/config.toml", CODEX),
    ("codex", ".codex/config.toml", CODEX.replace("\n", "\r\n").rstrip()),
    ("goose", ".config/goose/config.yaml", GOOSE),
    ("goose", ".config/goose/config.yaml", GOOSE.replace("\n", "\r\n").rstrip()),
    ("lm-studio", ".lmstudio/mcp.json", '{\n  "mcpServers": {}\n}'),
    ("lm-studio", ".cache/lm-studio/mcp.json", CLAUDE),
]
PLACES = {client: place for client, place, _content in reversed(SAMPLES)}
SECTIONS = {"vscode": "servers", "zed": "context_servers", "codex": "mcp_servers", "goose": "extensions"}


@pytest.fixture
def home(tmp_path: Path) -> ClientHome:
    return ClientHome(tmp_path)


def parse(path: Path) -> dict[str, Any]:
    """Read a configuration with a parser that is not the one under test."""
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    # YAML holds JSON; its comments and trailing commas are those that the samples have.
    lines = [line.split(" //")[0].replace("/* mine */", "") for line in text.splitlines() if line.strip()[:2] != "//"]
    found = yaml.safe_load(text if path.suffix == ".yaml" else "\n".join(lines).replace("\t", "  "))
    return dict(found or {})


def entry_of(path: Path, client: str) -> dict[str, Any]:
    return dict(parse(path)[SECTIONS.get(client, "mcpServers")]["holdfast"])


@pytest.mark.req("SV-07.a")
@pytest.mark.parametrize(("client", "place", "content"), SAMPLES)
def test_an_entry_comes_and_goes_and_nothing_else_of_the_file_changes(
    home: ClientHome, client: str, place: str, content: str
) -> None:
    path = home.write(place, content)
    before = parse(path)

    report = home.report("install", client, str(home.notes), "--yes")

    assert (report["status"], report["config"]) == ("written", str(path))
    entry = entry_of(path, client)
    started = [entry.get("command") or entry["cmd"], *entry["args"]]
    assert started[-2:] == ["stdio", str(home.notes)]
    assert os.access(started[0], os.X_OK)
    after = parse(path)
    section = SECTIONS.get(client, "mcpServers")
    after[section].pop("holdfast")
    before.setdefault(section, {})
    assert {**after, section: after[section] or {}} == {**before, section: before[section] or {}}
    written = path.read_bytes()
    assert b"\r\n" not in content.encode() or written.count(b"\n") == written.count(b"\r\n")

    again = home.report("install", client, str(home.notes), "--yes")
    assert (again["status"], again["backup"]) == ("unchanged", None)
    assert path.read_bytes() == written

    removed = home.report("uninstall", client, "--yes")
    assert removed["status"] == "removed"
    assert path.read_bytes() == content.encode()
    assert home.report("uninstall", client, "--yes")["status"] == "unchanged"


@pytest.mark.req("SV-07.a")
@pytest.mark.parametrize("client", list(PLACES))
def test_a_file_that_was_not_there_is_made_and_goes_again(home: ClientHome, client: str) -> None:
    path = home.path / PLACES[client]
    for _round in range(2):
        home.ok("install", client, str(home.notes), "--yes")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert entry_of(path, client)["args"][-1] == str(home.notes)
        home.ok("uninstall", client, "--yes")
        assert not path.exists()


@pytest.mark.req("SV-07.a")
def test_a_second_run_with_other_options_changes_these_alone(home: ClientHome) -> None:
    home.ok("install", "cursor", str(home.notes), "--yes")
    path = home.path / ".cursor/mcp.json"
    path.write_text(
        path.read_text().replace('"command"', '"disabled": true, // mine\n      "env": {"MINE": "1"},\n      "command"')
    )

    home.ok(
        "install",
        "cursor",
        str(home.project),
        "--read-only",
        "--tools",
        "files,review",
        "--yes",
        HOLDFAST_STATE_DIR="/s",
    )

    entry = entry_of(path, "cursor")
    assert entry["args"][entry["args"].index("stdio") :] == [
        "stdio", "--tools", "files,review", "--read-only", str(home.project),
    ]  # fmt: skip
    assert entry["env"] == {"MINE": "1", "HOLDFAST_STATE_DIR": "/s"}
    assert '"disabled": true, // mine' in path.read_text()
    home.ok("install", "cursor", str(home.project), "--review", "--yes")
    assert entry_of(path, "cursor")["env"] == {"MINE": "1"}
    assert entry_of(path, "cursor")["args"][-2:] == ["--review", str(home.project)]


@pytest.mark.req("SV-07.a")
def test_what_was_changed_since_stays_when_the_entry_goes(home: ClientHome) -> None:
    path = home.write(".cursor/mcp.json", CLAUDE)
    home.ok("install", "cursor", str(home.notes), "--yes")
    path.write_text(path.read_text().replace("weather", "forecast"))
    home.ok("uninstall", "cursor", "--yes")
    assert path.read_text() == CLAUDE.replace("weather", "forecast")


@pytest.mark.req("SV-07.a")
@pytest.mark.parametrize(
    ("client", "place", "args"),
    [
        ("claude-code", ".mcp.json", ["stdio"]),
        ("cursor", ".cursor/mcp.json", ["stdio", "${workspaceFolder}"]),
        ("vscode", ".vscode/mcp.json", ["stdio", "${workspaceFolder}"]),
        ("gemini", ".gemini/settings.json", ["stdio"]),
        ("codex", ".codex/config.toml", ["stdio"]),
    ],
)
def test_a_project_has_a_configuration_of_its_own(home: ClientHome, client: str, place: str, args: list[str]) -> None:
    home.ok("install", client, "--project", "--yes", cwd=home.project)
    entry = entry_of(home.project / place, client)
    assert entry["args"][-len(args) :] == args
    assert home.run("install", "zed", "--project", "--yes", cwd=home.project).returncode == 2


@pytest.mark.req("SV-07.b")
@pytest.mark.parametrize("link", [".cursor", ".cursor/mcp.json"])
def test_a_link_that_came_with_a_project_leads_to_no_file_elsewhere(home: ClientHome, link: str) -> None:
    mine = home.write(".claude/mcp.json", CLAUDE)
    planted = home.project / link
    planted.parent.mkdir(exist_ok=True)
    for target in (mine if link.endswith("json") else mine.parent, home.path / "not-there-yet"):
        planted.unlink(missing_ok=True)
        planted.symlink_to(target)
        before = home.tree()
        for command in ("install", "uninstall"):
            ran = home.run(command, "cursor", "--project", "--yes", cwd=home.project)
            assert ran.returncode != 0
            assert "leads out of the project" in ran.stderr
        assert home.tree() == before
    planted.unlink()
    (home.project / "shared").mkdir()
    planted.symlink_to(home.project / "shared" / ("mcp.json" if link.endswith("json") else ""))
    home.ok("install", "cursor", "--project", "--yes", cwd=home.project)
    assert (home.project / "shared/mcp.json").exists()


@pytest.mark.req("SV-07.b")
def test_the_change_is_shown_before_it_is_written_and_a_person_is_asked(
    home: ClientHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.path))
    path = home.write(".gemini/settings.json", "{}\n")
    words = ("install", "gemini", str(home.notes))
    status, shown = answered(tmp_path / "state", b"n\n", *words)
    assert status != 0
    assert b'+    "holdfast": {' in shown
    assert path.read_text() == "{}\n"
    status, _shown = answered(tmp_path / "state", b"y\n", *words)
    assert status == 0
    assert entry_of(path, "gemini")["env"] == {"HOLDFAST_STATE_DIR": str(tmp_path / "state")}

    silent = home.run("uninstall", "gemini")
    assert silent.returncode == 2
    assert "--yes" in silent.stderr
    assert "holdfast" in path.read_text()


@pytest.mark.req("SV-07.b")
def test_nothing_is_written_by_a_dry_run(home: ClientHome) -> None:
    before = home.tree()
    assert '+    "holdfast": {' in home.ok("install", "cursor", str(home.notes), "--dry-run")
    assert home.report("install", "codex", "--dry-run")["status"] == "would_write"
    assert home.tree() == before


@pytest.mark.req("SV-07.b")
def test_links_and_modes_stay_and_each_state_before_a_change_has_a_backup(home: ClientHome) -> None:
    real = home.write("dotfiles/mcp.json", CLAUDE)
    real.chmod(0o640)
    link = home.path / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/mcp.json")

    first = home.report("install", "cursor", str(home.notes), "--yes")["backup"]
    middle = real.read_bytes()
    second = home.report("install", "cursor", str(home.project), "--yes")["backup"]

    assert link.is_symlink()
    assert [Path(first).read_bytes(), Path(second).read_bytes()] == [CLAUDE.encode(), middle]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (real, Path(first), Path(second))} == {0o640}
    assert sorted(path.name for path in real.parent.iterdir()) == [
        "mcp.json", "mcp.json.holdfast-backup", "mcp.json.holdfast-backup-2",
    ]  # fmt: skip


@pytest.mark.req("SV-07.c")
@pytest.mark.parametrize(
    ("client", "place", "content", "problem"),
    [
        ("cursor", ".cursor/mcp.json", '{\n  "mcpServers": {\n    "a": {} \n    "b": {}\n  }\n}', "line 4, column 5"),
        ("vscode", ".config/Code/User/mcp.json", '{\n"servers": {', "line 2, column 13"),
        ("codex", ".codex/config.toml", "a = 1\nb = [1\n", "line 3, column 1"),
        ("goose", ".config/goose/config.yaml", "a: 1\n  b: 2\n", "line 2, column 4"),
        ("gemini", ".gemini/settings.json", b"\xff\xfe{\x00}\x00", "not UTF-8"),
        ("zed", ".config/zed/settings.json", '{"context_servers": ["x"]}', "not a mapping"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n", "[mcp_servers.holdfast]"),
        (
            "cursor",
            ".cursor/mcp.json",
            '{"mcpServers": {"holdfast": {"command": "npx", "args": ["x"]}}}',
            "another server",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_and_left_alone(
    home: ClientHome, client: str, place: str, content: str | bytes, problem: str
) -> None:
    home.write(place, content)
    before = home.tree()
    for words in (("install", client, str(home.notes)), ("uninstall", client)):
        ran = home.run(*words, "--yes")
        if words[0] == "install" or ran.returncode:
            assert ran.returncode in (1, 2)
            assert place.rsplit("/", maxsplit=1)[-1] in ran.stderr
        if words[0] == "install":
            assert problem in ran.stderr
    assert home.tree() == before
    report = json.loads(home.run("install", client, str(home.notes), "--json", "--yes").stdout)
    assert report["error"]["code"] in ("INVALID_ARGUMENT", "CONFLICT")


@pytest.mark.req("SV-07.c")
def test_a_read_only_file_is_refused_and_left_alone(home: ClientHome) -> None:
    path = home.write(".gemini/settings.json", "{}")
    path.chmod(0o444)
    before = home.tree()
    ran = home.run("install", "gemini", "--yes")
    assert ran.returncode == 13
    assert "read-only" in ran.stderr
    assert home.tree() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


@pytest.mark.req("SV-07.c")
def test_what_is_no_file_or_no_folder_is_refused(home: ClientHome) -> None:
    (home.path / ".gemini/settings.json").mkdir(parents=True)
    assert "regular file" in home.run("install", "gemini", "--yes").stderr
    home.write(".codex", "a file")
    assert home.run("install", "codex", "--yes").returncode != 0
    assert "There is no folder" in home.run("install", "cursor", str(home.path / "nowhere"), "--yes").stderr
    assert "name the folders" in home.run("install", "claude-desktop", "--yes").stderr
    assert "files, review" in home.run("install", "gemini", "--tools", "flies", "--yes").stderr
    assert "claude-desktop, claude-code" in home.run("install", "emacs", "--yes").stderr


@pytest.mark.req("SV-07.d")
@pytest.mark.parametrize(
    ("client", "options"),
    [("claude-desktop", ()), ("codex", ("--read-only", "--tools", "files,store")), ("goose", ("--review",))],
)
def test_what_is_written_starts_a_server_with_the_folders_and_options_chosen(
    home: ClientHome, tmp_path: Path, client: str, options: tuple[str, ...]
) -> None:
    """The client starts it as one with windows does: with a bare PATH, in /, without the variables of a shell."""
    (home.notes / "todo.txt").write_text("milk\n")
    house = House(tmp_path)
    home.ok("install", client, "--folder", str(home.notes), *options, "--yes", HOLDFAST_STATE_DIR=str(house.state))
    entry = entry_of(home.path / PLACES[client], client)
    env = entry.get("env") or entry["envs"]
    assert env == {"HOLDFAST_STATE_DIR": str(house.state)}
    bare = {"HOME": str(home.path), "PATH": "/usr/bin:/bin", **env}
    server = StdioServerParameters(command=entry.get("command") or entry["cmd"], args=entry["args"], env=bare, cwd="/")
    try:
        with ExitStack() as stack:
            portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
            agent = stack.enter_context(portal.wrap_async_context_manager(Client(stdio_client(server))))
            tools = portal.call(agent.list_tools).tools
            read = portal.call(agent.call_tool, "read_text_file", {"path": "todo.txt"})
        names = {tool.name for tool in tools}
        assert ("edit_files" in names) == ("--read-only" not in options)
        assert ("list_plans" in names) == ("--tools" not in options)
        assert "milk" in str(read.content)
        assert house.facts()["kind"] == "background"
    finally:
        house.end()


@pytest.fixture
def script() -> str:
    """Give the program as it is installed."""
    return str(Path(sys.executable).parent / "holdfast")


@pytest.mark.req("SV-07.d")
def test_the_command_is_the_program_itself_also_through_a_link(home: ClientHome, script: str, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "holdfast"
    link.parent.mkdir()
    link.symlink_to(script)
    for program in (script, str(link)):
        ran = subprocess.run(
            [os.path.basename(program), "install", "--print", str(home.notes)],
            executable=program, env={**home.env, "PATH": os.path.dirname(program)}, capture_output=True, check=True,
        )  # fmt: skip
        assert json.loads(ran.stdout)["mcpServers"]["holdfast"]["command"] == program


@pytest.mark.req("SV-07.d")
def test_variables_that_choose_the_state_folder_are_in_the_entry(home: ClientHome) -> None:
    def env(**variables: str) -> Any:
        return home.report("install", "gemini", "--dry-run", cwd=None, **variables)["entry"].get("env")

    assert env() is None
    assert env(HOLDFAST_STATE_DIR="state") == {"HOLDFAST_STATE_DIR": str(home.path / "state")}
    assert env(HOLDFAST_SETTINGS="/etc/h.yml") == {"HOLDFAST_SETTINGS": "/etc/h.yml"}
    if sys.platform == "linux":
        assert env(XDG_DATA_HOME="/data") == {"HOLDFAST_STATE_DIR": "/data/holdfast"}


@pytest.mark.req("SV-07.d")
def test_status_says_when_clients_without_the_variable_have_another_server(home: ClientHome, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert home.run("status", HOLDFAST_STATE_DIR=state).stdout == "No server is running.\n"
    try:
        home.ok("open", "--print")
        pid = home.report("status")["pid"]
        ran = home.run("status", HOLDFAST_STATE_DIR=state)
        assert ran.returncode == 3
        assert f"Another one (pid {pid}) serves the state folder" in ran.stdout
        elsewhere = json.loads(home.run("status", "--json", HOLDFAST_STATE_DIR=state).stdout)["elsewhere"]
        assert elsewhere["pid"] == pid
    finally:
        home.ok("stop")


@pytest.mark.req("SV-07.e")
def test_without_a_client_it_lists_them(home: ClientHome) -> None:
    home.write(".cursor/mcp.json", "{}")
    home.write(".config/zed/settings.json", "{")
    home.ok("install", "codex", "--yes")
    rows = {row["client"]: row for row in home.report("install")["clients"]}
    assert list(rows) == [
        "claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "zed", "gemini", "codex", "goose", "lm-studio",
    ]  # fmt: skip
    assert {name for name, row in rows.items() if row["found"]} == {"cursor", "zed", "codex"}
    assert [name for name, row in rows.items() if row["installed"]] == ["codex"]
    assert rows["zed"]["problem"] == "unreadable"
    assert rows["cursor"]["config"] == str(home.path / ".cursor/mcp.json")
    listed = home.ok("install")
    assert all(name in listed for name in rows)


@pytest.mark.req("SV-07.e")
def test_the_entry_is_printed_for_any_client_and_nothing_is_written(home: ClientHome) -> None:
    before = home.tree()
    notes = str(home.notes)
    for words in (("--print", notes), ("cline", notes, "--print"), ("--print", "--folder", notes)):
        printed = json.loads(home.ok("install", *words))
        assert printed["mcpServers"]["holdfast"]["args"][-2:] == ["stdio", notes]
    assert tomllib.loads(home.ok("install", "codex", "--print"))["mcp_servers"]["holdfast"]["args"][-1] == "stdio"
    named = yaml.safe_load(home.ok("install", "goose", "--print", "--name", "my files"))
    assert named["extensions"]["my files"]["name"] == "my files"
    assert home.tree() == before


@pytest.mark.req("SV-07.e")
def test_the_change_can_be_seen_in_the_editor(home: ClientHome, tmp_path: Path) -> None:
    code = fake_code(tmp_path)
    code.program.write_text(code.program.read_text().replace("time.sleep(60)", ""))
    path = home.write(".config/Code/User/mcp.json", CODE)
    env = {"PATH": f"{code.program.parent}{os.pathsep}{home.env['PATH']}"}
    home.ok("install", "vscode", "--dry-run", "--show-in-editor", cwd=None, **env)
    (start,) = code.starts()
    assert start["arguments"][:3] == ["--wait", "--diff", str(path)]
    assert start["arguments"][3].endswith("after-mcp.json")
    assert not Path(start["arguments"][3]).exists()
    missing = home.run("install", "vscode", "--yes", "--show-in-editor", PATH="/usr/bin:/bin")
    assert missing.returncode == 2
    assert path.read_bytes() == CODE.encode()


@pytest.mark.req("SV-07.e")
def test_another_file_can_be_named(home: ClientHome) -> None:
    path = home.path / "insiders" / "mcp.json"
    home.ok("install", "vscode", "--config", str(path), "--yes")
    assert "holdfast" in json.loads(path.read_text())["servers"]
