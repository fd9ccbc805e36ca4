"""Makes a release ready, everything but the upload: checks, tests, packages, their proof, the bill of materials, checksums.

    python scripts/release.py                           all of it, the slow tests too
    python scripts/release.py --tests-have-passed       where another job has run them

Nothing is made before every check has passed; what is left to do is printed at the end.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
DIST = TOP / "dist"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


def main() -> None:
    """Check, test, build, prove, write; exits at the first thing that stands in the way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="", help="the tag that the release is made for: it must be v and the version")
    parser.add_argument("--tests-have-passed", action="store_true", help="do not run `make test-all` here")
    options = parser.parse_args()
    version = read_version((TOP / "src" / "holdfast" / "__init__.py").read_text())
    faults = [*changelog_problems((TOP / "CHANGELOG.md").read_text(), version), *git_problems(version, options.tag)]
    if faults:
        sys.exit("\n".join([f"{version} is not ready:", *(f"  {fault}" for fault in faults)]))
    if not options.tests_have_passed:
        step("every test, the slow ones too", ["make", "test-all"])
    step("the documentation site", [sys.executable, "scripts/build_site.py"])
    DIST.mkdir(exist_ok=True)
    for old in DIST.iterdir():
        old.unlink()
    step(
        "the packages, and what they do on a clean machine",
        [sys.executable, "scripts/prove_release.py", "--keep", str(DIST)],
    )
    step("the bill of materials", [sys.executable, "scripts/write_sbom.py", str(DIST / f"holdfast-{version}.cdx.json")])
    (DIST / "SHA256SUMS").write_text(checksums(sorted(DIST.iterdir())))
    print(
        f"\nReady in {DIST}:\n{(DIST / 'SHA256SUMS').read_text()}\nLeft to do: push the tag v{version}; its workflow uploads."
    )


def read_version(source: str) -> str:
    """Return the version that the package says; exits when it is not a semantic one."""
    match = _VERSION.search(source)
    if match is None or not _SEMANTIC.fullmatch(match[1]):
        sys.exit("src/holdfast/__init__.py has no semantic version")
    return match[1]


def changelog_problems(text: str, version: str) -> Iterator[str]:
    """Return what is wrong with the changelog of a release: no dated section of its own, or something left unreleased."""
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", text, re.MULTILINE):
        yield f"CHANGELOG.md has no heading `## {version} (YEAR-MONTH-DAY)`"
    unreleased = re.search(r"^## Unreleased$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if unreleased and unreleased[1].strip():
        yield "CHANGELOG.md has lines under Unreleased"


def git_problems(version: str, tag: str) -> Iterator[str]:
    """Return what is wrong with the checkout: changes that are not committed, a tag of another version or of another commit."""
    if _git("status", "--porcelain"):
        yield "there are changes that are not committed"
    if tag and tag != f"v{version}":
        yield f"the tag is {tag} and the version {version}"
    tagged = _git("rev-list", "-n", "1", f"refs/tags/v{version}")
    if tagged and tagged != _git("rev-parse", "HEAD"):
        yield f"v{version} is a tag of another commit: raise the version"


def checksums(files: list[Path]) -> str:
    """Return a line for each file, as `sha256sum --check` reads it."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files if file.name != "SHA256SUMS"
    )


def step(what: str, command: list[str]) -> None:
    """Run one step, with its output; exits when it fails."""
    print(f"\n== {what}", flush=True)
    if subprocess.run(command, cwd=TOP, check=False).returncode:
        sys.exit(f"not released: {what}")


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    main()
