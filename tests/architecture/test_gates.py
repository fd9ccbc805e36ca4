"""Every gate can fail: the linter, the formatter, the type checker, warnings, and each exception has its reason."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool of the virtual environment in the checkout."""
    return subprocess.run(
        [BIN / command[0], *command[1:]], cwd=TOP, input=stdin, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("S602", "import subprocess\nsubprocess.run(command, shell=True)"),
        ("T201", "print(1)"),
        ("BLE001", "try:\n    f()\nexcept Exception:\n    pass"),
        ("D103", "def public() -> None:\n    return None"),
        ("ANN001", "def f(x) -> None: ..."),
        ("F401", "import json"),
        ("FIX002", "# todo: later".upper()),
        ("TID252", "from . import x"),
    ],
)
def test_the_linter_refuses(code: str, source: str) -> None:
    ran = run(
        "ruff",
        "check",
        "--no-cache",
        "--output-format=concise",
        "--stdin-filename",
        "src/holdfast/folders/x.py",
        "-",
        stdin=source,
    )

    assert ran.returncode == 1
    assert f" {code} " in ran.stdout


def test_the_formatter_refuses_another_format() -> None:
    assert (
        run("ruff", "format", "--check", "--stdin-filename", "src/x.py", "-", stdin="x = {  'a':1 }\n").returncode == 1
    )


def test_the_type_checker_refuses_an_untyped_function(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f(x):\n    return x\n")
    ran = run("mypy", "--config-file", "pyproject.toml", "--cache-dir", os.devnull, str(file))

    assert ran.returncode == 1
    assert "no-untyped-def" in ran.stdout


def test_a_warning_is_an_error() -> None:
    with pytest.raises(UserWarning):
        warnings.warn("something is off", stacklevel=1)


def test_a_marker_nobody_declared_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "test_x.py"
    file.write_text("import pytest\n@pytest.mark.rqe('FS-01')\ndef test_x(): pass\n")
    ran = run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-c",
        "pyproject.toml",
        "--rootdir",
        str(TOP),
        "-p",
        "no:cacheprovider",
        str(file),
    )

    assert ran.returncode != 0
    assert "rqe" in ran.stdout


def test_every_exception_of_the_linter_gives_its_reason() -> None:
    text = (TOP / "pyproject.toml").read_text()
    section = text[text.index("[tool.ruff.lint]") : text.index("[tool.ruff.lint.flake8")]
    lines = [
        line for line in section.splitlines() if re.match(r'\s+"[A-Z]+\d*",', line) or re.match(r'"[^"]+" = \["', line)
    ]

    assert lines
    assert [line for line in lines if not re.search(r"# \w.+", line)] == []


@pytest.mark.parametrize("folder", ["src", "tests", "scripts"])
def test_every_silenced_line_names_its_rule(folder: str) -> None:
    pattern = re.compile(r"#\s*(?:type:\s*ignore(?!\[)|noqa(?!:\s*[A-Z]))")
    here = Path(__file__)
    problems = [
        f"{path.relative_to(TOP)}:{number}"
        for path in sorted((TOP / folder).rglob("*.py"))
        if path != here and "node_modules" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]

    assert problems == []
