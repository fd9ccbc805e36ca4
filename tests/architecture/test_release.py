"""A release is refused while something stands in its way; the version says which commit runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.cli.version import version_text
from scripts import release

TOP = Path(__file__).parents[2]


@pytest.mark.req("SV-52")
def test_the_version_is_semantic_and_printed_with_the_commit() -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    ran = subprocess.run([sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True)

    assert release.read_version((TOP / "src" / "holdfast" / "__init__.py").read_text()) == __version__
    assert ran.stdout.strip() == f"holdfast, version {version_text()}"
    assert f"{__version__} ({commit[:12]}" in ran.stdout


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        ("# Changelog\n\n## Unreleased\n\n## 1.2.0 (2026-12-01)\n\n- It works.\n", []),
        ("## 1.2.0 (2026-12-01)\n\n- It works.\n", []),
        ("## Unreleased\n\n- More.\n\n## 1.2.0 (2026-12-01)\n", ["CHANGELOG.md has lines under Unreleased"]),
        ("## Unreleased\n", ["CHANGELOG.md has no heading `## 1.2.0 (YEAR-MONTH-DAY)`"]),
    ],
)
def test_a_changelog_that_is_not_ready_is_seen(changelog: str, expected: list[str]) -> None:
    assert list(release.changelog_problems(changelog, "1.2.0")) == expected


def test_a_tag_of_another_version_is_seen() -> None:
    assert f"the tag is v9.9.9 and the version {__version__}" in list(release.git_problems(__version__, "v9.9.9"))


def test_a_version_that_is_not_semantic_is_refused() -> None:
    with pytest.raises(SystemExit):
        release.read_version('__version__ = "1.2"\n')


def test_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"wheel")
    (tmp_path / "SHA256SUMS").write_text(release.checksums([file]))

    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, check=False)
    assert checked.returncode == 0
