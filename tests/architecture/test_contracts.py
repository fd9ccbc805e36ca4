"""The import contracts hold on the source, and each of them is broken by the import it forbids."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

FORBIDDEN = [
    ("flow", "folders/bad.py", "import holdfast.tools.dispatch"),
    ("flow", "errors.py", "import holdfast.clock"),
    ("flow", "config/bad.py", "import holdfast.call"),
    ("flow", "changes/bad.py", "import holdfast.app"),
    ("flow", "newcomer.py", ""),
    ("inside", "changes/model.py", "import holdfast.changes.ports"),
    ("wiring", "wiring/probes.py", "import holdfast.wiring.build"),
    ("folders", "folders/access/bad.py", "import holdfast.folders.children.confine"),
    ("folders", "folders/newcomer.py", ""),
    ("changes", "changes/disk/bad.py", "import holdfast.changes.plans.execute"),
    ("history", "changes/history/namespace.py", "import holdfast.changes.history.effects"),
    ("observe", "observe/redact.py", "import holdfast.observe.call_log"),
    ("organiser", "organiser/classify/bad.py", "import holdfast.organiser.scan.read"),
    ("search", "search/retrieve.py", "import holdfast.search.folders.model"),
    ("search_folders", "search/folders/model.py", "import holdfast.search.folders.ports"),
    ("transport", "transport/client/bad.py", "import holdfast.transport.doors.streams.stream"),
    ("http_door", "transport/doors/hosts.py", "import holdfast.transport.doors.guard"),
    ("http_door", "transport/doors/newcomer.py", ""),
    ("console", "console/sessions.py", "import holdfast.console.gate"),
    ("console", "console/newcomer.py", ""),
    ("flow", "console/bad.py", "import holdfast.transport.mcp.wire"),
    ("streams", "transport/doors/streams/stream.py", "import holdfast.transport.doors.streams.socket"),
    ("mcp", "transport/mcp/run.py", "import holdfast.transport.mcp.protocol"),
    ("relay", "transport/client/bad.py", "import pydantic"),
    ("relay", "transport/client/bad.py", "def late() -> None:\n    import a_package_that_nobody_has_heard_of"),
    ("relay", "config/environment.py", "import yaml"),
    ("relay", "transport/state_folder.py", "import holdfast.config.settings"),
    ("tools", "tools/dispatch.py", "import holdfast.tools.store.entries"),
    ("commands", "cli/output.py", "import holdfast.cli.commands.files"),
    ("change_commands", "cli/commands/changes/review_text.py", "import holdfast.cli.commands.changes.review"),
    ("organise_commands", "cli/commands/organise/plan_text.py", "import holdfast.cli.commands.organise.organise"),
    ("config_files", "config_files/entry.py", "import holdfast.config_files.target"),
    ("databases", "adapters/postgres/store/bad.py", "import holdfast.adapters.postgres.search.rows"),
    ("acyclic", "folders/access/roots.py", "import holdfast.folders.access.jail"),
    ("pure", "tools/answer.py", "import time"),
    ("pure", "tools/answer.py", "import holdfast.folders.access.jail"),
    ("text", "text/glob.py", "import holdfast.config.settings"),
    ("drivers", "changes/bad.py", "import sqlite3"),
    ("frameworks", "folders/bad.py", "import mcp"),
    ("frameworks", "tools/bad.py", "import starlette"),
    ("adapters", "cli/bad.py", "import holdfast.adapters.sqlite"),
    ("rawkey", "tools/bad.py", "import holdfast.auth.authenticate"),
    ("doors", "transport/bad.py", "import holdfast.app"),
]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Give a copy of the source that a test may spoil."""
    shutil.copytree(TOP / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "scripts").mkdir()
    shutil.copy(TOP / "scripts" / "contracts.py", tmp_path / "scripts")
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    return tmp_path


def broken_contracts(house: Path) -> set[str]:
    """Return the names of the contracts that the copy breaks."""
    program = Path(sys.executable).parent / "lint-imports"
    ran = subprocess.run(
        [program, "--no-cache", "--config", "pyproject.toml"],
        cwd=house,
        env={"PYTHONPATH": str(house / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    broken = set(re.findall(r"^(.*\S) BROKEN\b", ran.stdout, re.MULTILINE))
    assert (ran.returncode == 0) == (not broken), ran.stdout + ran.stderr
    return broken


def names() -> dict[str, str]:
    """Return each contract's name by its id."""
    return dict(re.findall(r'^id = "(\w+)"\nname = "(.*)"$', (TOP / "pyproject.toml").read_text(), re.MULTILINE))


def test_the_source_keeps_every_contract(house: Path) -> None:
    assert broken_contracts(house) == set()


@pytest.mark.parametrize(("contract", "module", "line"), FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract(house: Path, contract: str, module: str, line: str) -> None:
    file = house / "src" / "holdfast" / module
    before = file.read_text() if file.exists() else '"""A newcomer."""\n'
    file.write_text(before + f"\n{line}\n")

    assert names()[contract] in broken_contracts(house)


def test_every_contract_is_shown_to_break() -> None:
    assert set(names()) == {contract for contract, _, _ in FORBIDDEN}
