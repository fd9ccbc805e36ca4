"""A home folder with clients in it, and `holdfast install` run there as a person runs it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.helpers.agent import command


class ClientHome:
    """A home folder of its own: what is installed there touches no client of this machine."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"
        self.project = self.path / "project"
        self.notes = self.path / "my notes"
        for each in (self.project, self.notes):
            each.mkdir(parents=True)

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of a shell in that home."""
        return {"HOME": str(self.path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run one command of Holdfast without a terminal."""
        return subprocess.run(
            command(*words), env={**self.env, **env}, cwd=str(cwd or self.path), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def ok(self, *words: str, cwd: Path | None = None, **env: str) -> str:
        """Run a command that must succeed, and return what it printed."""
        ran = self.run(*words, cwd=cwd, **env)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def report(self, *words: str, cwd: Path | None = None, **env: str) -> dict[str, Any]:
        """Run a command with --json and return its report."""
        report: dict[str, Any] = json.loads(self.ok(*words, "--json", cwd=cwd, **env))
        return report

    def write(self, place: str, content: str | bytes) -> Path:
        """Write a file below the home folder."""
        path = self.path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def tree(self) -> dict[str, bytes]:
        """Return every file below the home folder with its bytes."""
        return {
            path.relative_to(self.path).as_posix(): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
