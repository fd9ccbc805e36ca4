"""The workflows and hooks are valid, safe to run, and do what `make` does."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pre_commit.clientlib import InvalidConfigError, load_config

TOP = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
GITHUB = TOP / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def check_schema(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audit(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "zizmor"), "--offline", "--no-progress", "--pedantic", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_workflows_have_the_form_that_github_reads() -> None:
    ran = check_schema("vendor.github-workflows", *WORKFLOWS)

    assert ran.returncode == 0, ran.stdout


def test_the_update_config_has_its_form() -> None:
    ran = check_schema("vendor.dependabot", GITHUB / "dependabot.yml")

    assert ran.returncode == 0, ran.stdout


def test_issue_forms_have_their_form() -> None:
    folder = GITHUB / "ISSUE_TEMPLATE"
    forms = [path for path in sorted(folder.glob("*.yml")) if path.name != "config.yml"]

    assert [
        check_schema("vendor.github-issue-forms", *forms).stdout,
        check_schema("vendor.github-issue-config", folder / "config.yml").stdout,
    ] == ["ok -- validation done\n"] * 2


def test_no_workflow_has_a_known_weakness() -> None:
    ran = audit(GITHUB)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_workflow_with_a_weakness_or_a_wrong_key_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    file = folder / "bad.yml"
    file.write_text(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    step: []\n    steps:\n      - uses: actions/checkout@v6\n"
    )

    assert check_schema("vendor.github-workflows", file).returncode != 0
    assert audit(tmp_path).returncode != 0


def test_every_python_that_is_promised_is_tested_on_both_systems() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text())["jobs"]

    assert {name: job["strategy"]["matrix"]["python"] for name, job in jobs.items()} == {
        "linux": PYTHONS,
        "macos": PYTHONS,
    }


def test_workflows_and_hooks_call_what_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(path.read_text() for path in [*WORKFLOWS, TOP / ".pre-commit-config.yaml"])

    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    assert [name for name in re.findall(r"(?:scripts|tests)/\S+\.py", text) if not (TOP / name).is_file()] == []


def test_the_hooks_are_those_that_pre_commit_reads_and_have_the_gates_of_lint(tmp_path: Path) -> None:
    hooks = load_config(str(TOP / ".pre-commit-config.yaml"))["repos"][0]["hooks"]
    programs = {Path(hook["entry"].split()[0]).name for hook in hooks}
    lint = (TOP / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]

    assert set(re.findall(r"\$\(BIN\)/(\S+)", lint)) <= programs
    assert all(shutil.which(BIN / name) for name in programs)
    broken = tmp_path / "hooks.yaml"
    broken.write_text("repos: [{repo: local}]")
    with pytest.raises(InvalidConfigError):
        load_config(str(broken))
