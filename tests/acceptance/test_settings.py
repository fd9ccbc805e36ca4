"""Settings, environment and doctor, as a person meets them on the command line and an agent in its tools."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent

STORE_DEFAULTS = {
    "allow_root_wipe": False,
    "max_payload_bytes": 2_000_000,
    "max_file_bytes": 10_000_000,
    "max_project_bytes": 100_000_000,
    "max_tenant_bytes": 10_000_000_000,
    "list_limit_default": 256,
    "list_limit_max": 1024,
    "lock_timeout_ms": 3000,
    "delete_retention_days": 30.0,
    "versions_kept": 20,
    "version_days": 30.0,
    "idempotency_days": 7.0,
    "search.enabled": True,
    "search.limit_default": 5,
    "search.limit_max": 20,
    "search.vector_candidates": 30,
    "search.bm25_candidates": 30,
    "search.embedder.kind": "minilm",
    "search.embedder.endpoint": "",
    "search.embedder.model": "text-embedding-3-small",
    "search.embedder.api_key": "",
    "search.embedder.timeout_ms": 15_000,
    "search.embedder.path": "",
    "search.embedder.tokenizer": "",
    "search.embedder.threads": 1,
    "search.rerank.model": "rerank-v3.5",
    "search.rerank.endpoint": "",
    "search.rerank.timeout_ms": 6000,
    "search.fallback.semantic_weight": 0.5,
    "search.fallback.lexical_weight": 0.5,
    "index.workers": 2,
    "index.batch_size": 20,
    "index.retry_max": 5,
    "index.retry_backoff_ms": 1000,
    "index.slo_p95_seconds": 30.0,
    "security.credential_cache_prefix": "holdfast:credential:",
    "security.credential_cache_ttl_seconds": 300,
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state folder that no server has used."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


def holdfast(state: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one command with its own state folder and an environment of its own."""
    basics = {"PATH": os.defpath, "HOME": str(state.parent), "HOLDFAST_STATE_DIR": str(state)}
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        env={**basics, **environment},
        cwd=state.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def shown(state: Path, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Return what `config show` prints, by name."""
    ran = holdfast(state, "config", "show", "--json", *arguments, **environment)
    assert ran.returncode == 0, ran.stderr
    return {row["name"]: row for row in json.loads(ran.stdout)}


@pytest.mark.req("SV-20.a")
def test_the_settings_file_is_the_named_one_else_the_one_in_the_state_folder(state: Path, tmp_path: Path) -> None:
    (state / "settings.yml").write_text("settings: {server: {port: 1001}}")
    (tmp_path / "variable.yml").write_text("settings: {server: {port: 1002}}")
    (tmp_path / "option.yml").write_text("settings:\n  server:\n    port: 1003")
    variable = {"HOLDFAST_SETTINGS": str(tmp_path / "variable.yml")}

    assert shown(state)["settings.server.port"]["value"] == 1001
    assert shown(state, **variable)["settings.server.port"]["value"] == 1002
    row = shown(state, "--settings", str(tmp_path / "option.yml"), **variable)["settings.server.port"]
    assert row["value"] == 1003
    assert row["source"] == f"{tmp_path / 'option.yml'}:3"


@pytest.mark.req("SV-20.a", "SV-20.b")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "settings:\n  server:\n    prot: 1\n",
            "settings.yml:3: unknown setting settings.server.prot; did you mean settings.server.port?",
        ),
        (
            "settings:\n  server:\n    port: high\n",
            "settings.yml:3: settings.server.port: expected a whole number, got 'high'",
        ),
        (
            "settings: {mcp: {tools: {raed_files: {enabled: false}}}}",
            "unknown setting settings.mcp.tools.raed_files; did you mean settings.mcp.tools.read_files?",
        ),
    ],
)
def test_a_wrong_file_is_refused_before_anything_starts(state: Path, text: str, message: str) -> None:
    (state / "settings.yml").write_text(text)

    ran = holdfast(state, "serve", str(state.parent), "--port", "0")

    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [entry.name for entry in state.iterdir()] == ["settings.yml"]


@pytest.mark.req("SV-20.b")
def test_config_check_says_what_is_wrong_or_that_nothing_is(state: Path) -> None:
    (state / "settings.yml").write_text("settings: {folders: {redonly: true}}")
    wrong = holdfast(state, "config", "check")
    (state / "settings.yml").write_text("settings: {folders: {read_only: true}}")
    right = holdfast(state, "config", "check")

    assert wrong.returncode == 2
    assert "did you mean settings.folders.read_only?" in wrong.stderr
    assert right.returncode == 0
    assert "no problems" in right.stdout


@pytest.mark.req("SV-20.c")
def test_the_fixed_names_have_their_defaults(state: Path) -> None:
    prefix = "settings.mcp.files."

    rows = {name.removeprefix(prefix): row for name, row in shown(state).items() if name.startswith(prefix)}

    assert {name: row["value"] for name, row in rows.items()} == STORE_DEFAULTS
    assert {row["source"] for row in rows.values()} == {"default"}


@pytest.mark.req("SV-20.c", "FS-05.b", "SV-06.a")
def test_a_tool_or_a_group_that_is_switched_off_is_gone(state: Path, root: Path) -> None:
    (state / "settings.yml").write_text("settings: {mcp: {tools: {read_files: {enabled: false}}}}")
    with Agent([root], state, options=["--in-process"]) as agent:
        assert "read_files" not in {tool.name for tool in agent.tools()}
        assert agent.call("read_files", files=[{"path": "x"}]).code == "NOT_FOUND"

    off = ", ".join(f"{group}: {{enabled: false}}" for group in ("files", "review", "organise", "search"))
    (state / "settings.yml").write_text(f"settings: {{mcp: {{groups: {{{off}}}}}}}")
    with Agent([root], state, options=["--in-process"]) as agent:
        assert {tool.name.partition("_")[0] for tool in agent.tools()} == {"file", "project", "mcp"}

    (state / "settings.yml").write_text(f"settings: {{mcp: {{groups: {{{off}, store: {{enabled: false}}}}}}}}")
    with Agent([root], state, options=["--in-process"]) as agent:
        assert agent.tools() == []
        assert agent.call("file_stat", project="p", path="/a").code == "NOT_FOUND"


@pytest.mark.req("FS-01.a")
def test_roots_may_stand_in_the_settings_and_begin_with_a_tilde(state: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    (home / "notes" / "a.txt").write_text("from the settings")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").write_text("from the command line")
    (state / "settings.yml").write_text('settings: {folders: {roots: ["~/notes"]}}')
    environment = {"HOME": str(home)}

    with Agent([], state, options=["--in-process"], env=environment) as agent:
        assert agent.call("read_text_file", path="a.txt").ok().texts[0] == "from the settings"
    with Agent([tmp_path / "elsewhere"], state, options=["--in-process"], env=environment) as agent:
        assert agent.call("read_text_file", path="b.txt").ok().texts[0] == "from the command line"
        assert agent.call("read_text_file", path=str(home / "notes" / "a.txt")).code == "ACCESS_DENIED"


@pytest.mark.req("SV-03.a")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["config", "show"], ["nonsense"]])
def test_the_installed_program_and_the_module_say_the_same(state: Path, arguments: list[str]) -> None:
    environment = {"PATH": os.defpath, "HOME": str(state.parent), "HOLDFAST_STATE_DIR": str(state)}
    program = str(Path(sys.executable).parent / "holdfast")

    by_name = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    by_module = holdfast(state, *arguments)

    assert (by_name.returncode, by_name.stdout, by_name.stderr) == (
        by_module.returncode,
        by_module.stdout,
        by_module.stderr,
    )


@pytest.mark.req("FS-05.a")
def test_read_only_mode_refuses_every_change(state: Path, root: Path) -> None:
    (root / "kept.txt").write_text("as it was")
    (state / "settings.yml").write_text("settings: {folders: {read_only: true}}")
    changes: dict[str, dict[str, Any]] = {
        "write_file": {"path": "kept.txt", "content": "x"},
        "append_text": {"path": "kept.txt", "content": "x"},
        "edit_file": {"path": "kept.txt", "edits": [{"oldText": "as", "newText": "x"}]},
        "edit_files": {"files": [{"path": "kept.txt", "edits": [{"old_string": "as", "new_string": "x"}]}]},
        "create_directory": {"path": "new"},
        "move_file": {"source": "kept.txt", "destination": "moved.txt"},
        "delete_file": {"path": "kept.txt"},
        "undo_change": {"change_id": "any"},
        "commit_review": {"session_path": "any", "original_path": "kept.txt"},
        "propose_and_review": {"path": "kept.txt", "old_string": "as", "new_string": "x"},
        "create_organization_plan": {"folder_path": "."},
        "revise_plan": {"plan_id": "any", "cancel": True},
        "execute_plan": {"plan_id": "any"},
        "undo_plan": {"plan_id": "any"},
    }
    not_in_a_pipe = {"propose_and_review", "execute_plan"}

    with Agent([root], state, options=["--in-process"]) as agent:
        mutating = {tool.name for tool in agent.tools() if tool.annotations and not tool.annotations.read_only_hint}
        codes = {name: agent.call_with(name, arguments).code for name, arguments in changes.items()}
        steps = [
            {"id": name, "tool": name, "arguments": arguments}
            for name, arguments in changes.items()
            if name not in not_in_a_pipe
        ]
        piped = agent.call("mcp_pipe", steps=steps, continue_on_error=True).ok().data["steps"]
        assert agent.call("read_text_file", path="kept.txt").ok().text.startswith("as it was")

    in_the_store = {"file_write", "file_delete", "file_rename", "file_restore"}
    assert mutating <= {*changes, "mcp_pipe", *in_the_store}
    assert set(codes.values()) == {"PERMISSION_DENIED"} == {step["error"]["code"] for step in piped}
    assert [entry.name for entry in root.iterdir()] == ["kept.txt"]


@pytest.mark.req("SV-21.a")
def test_no_variable_sets_what_belongs_in_the_file(state: Path) -> None:
    tried = {
        "MAX_FILE_BYTES": "1",
        "HOLDFAST_MCP_FILES_MAX_FILE_BYTES": "1",
        "SETTINGS__MCP__FILES__MAX_FILE_BYTES": "1",
        "HOLDFAST_PORT": "1",
        "PORT": "1",
    }

    settings = {name: row for name, row in shown(state, **tried).items() if name.startswith("settings.")}

    assert {row["source"] for row in settings.values()} == {"default"}
    warned = holdfast(state, "config", "check", **tried)
    assert "HOLDFAST_MCP_FILES_MAX_FILE_BYTES is not one that Holdfast reads" in warned.stderr


@pytest.mark.req("SV-21.a")
def test_variables_place_the_deployment(state: Path, tmp_path: Path) -> None:
    rows = shown(state, ROOT_DIR=str(tmp_path), LANGFUSE_HOST="http://127.0.0.1:3000")

    assert rows["HOLDFAST_STATE_DIR"]["value"] == str(state)
    assert rows["ROOT_DIR"] == {"name": "ROOT_DIR", "value": str(tmp_path), "source": "environment"}
    assert rows["LANGFUSE_HOST"]["source"] == "environment"


@pytest.mark.req("SV-21.b")
def test_secrets_are_masked_whatever_they_are_in(state: Path) -> None:
    (state / "settings.yml").write_text(
        "settings: {mcp: {files: {security: {encryption_keks: {k1: canary-in-the-file}}}}}"
    )
    variables = {
        "OPENAI_API_KEY": "canary-in-a-key",
        "DATABASE_URL": "postgresql://u:canary-in-an-address@127.0.0.1/db",
        "LANGFUSE_SECRET_KEY": "canary-in-a-secret",
        "REDIS_URL": "redis://:canary-in-redis@127.0.0.1",
    }

    for arguments in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "check"],
        ["doctor"],
        ["doctor", "--json"],
    ):
        ran = holdfast(state, *arguments, **variables)
        assert "canary" not in ran.stdout + ran.stderr
    rows = shown(state, **variables)
    assert rows["settings.mcp.files.security.encryption_keks.k1"]["value"] == "****"
    assert rows["OPENAI_API_KEY"] == {"name": "OPENAI_API_KEY", "value": "****", "source": "environment"}


@pytest.mark.req("SV-21.c")
def test_doctor_finds_a_sound_machine_sound(state: Path) -> None:
    ran = holdfast(state, "doctor", "--json")
    findings = {finding["subject"]: finding for finding in json.loads(ran.stdout)}

    assert ran.returncode == 0, ran.stdout
    subjects = {
        "Python",
        "settings",
        "state folder",
        "database",
        "disk",
        "stored files",
        "jail",
        "confinement",
        "ripgrep",
        "libraries",
        "port",
        "search model",
    }
    assert set(findings) == subjects
    assert "ripgrep 1" in findings["ripgrep"]["text"]


@pytest.mark.req("SV-21.c")
def test_doctor_says_what_to_do_about_each_fault(state: Path) -> None:
    state.chmod(0o755)
    (state / "state.db").write_bytes(b"this is no database at all" * 100)
    (state / "agent.token").write_text("x")
    (state / "agent.token").chmod(0o644)
    (state / "settings.yml").write_text("settings: {sever: {}}")

    ran = holdfast(state, "doctor", "--json", HOLDFAST_SETTNGS="x")
    findings = [
        finding for finding in json.loads(ran.stdout) if finding["level"] != "ok" and finding["subject"] != "port"
    ]

    assert ran.returncode == 1
    assert {(finding["level"], finding["subject"]) for finding in findings} == {
        ("broken", "state folder"),
        ("broken", "database"),
        ("broken", "settings"),
        ("warning", "environment"),
    }
    assert all(finding["advice"] for finding in findings)
    assert f"chmod 700 {state}" in holdfast(state, "doctor").stdout


@pytest.mark.req("SV-21.c")
def test_doctor_notices_a_port_that_another_program_has(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (state / "settings.yml").write_text(f"settings: {{server: {{port: {port}}}}}")
        findings = {finding["subject"]: finding for finding in json.loads(holdfast(state, "doctor", "--json").stdout)}

    assert findings["port"]["level"] == "warning"
    assert f"127.0.0.1:{port} is in use" in findings["port"]["text"]
