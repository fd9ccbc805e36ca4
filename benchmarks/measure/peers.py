"""Other servers that search inside files, installed from npm and PyPI into a temporary folder for the run."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure.files import Corpus
from benchmarks.measure.servers import Server, node


@dataclass(frozen=True)
class Peer:
    """A server with a content search: the tool, and the arguments that ask it for a word in the tree."""

    server: Server
    tool: str
    arguments: Callable[[str], dict[str, Any]]


def install(folder: Path, corpus: Corpus) -> tuple[list[Peer], list[str]]:
    """Install the peers; return those that can run here, and a note about each that cannot."""
    peers, notes = [], []
    for name, maker in {
        "fast-filesystem-mcp 3.5.2 (ripgrep)": _fast,
        "mcp-workspace 0.1.13 (Python)": _workspace,
    }.items():
        try:
            peers.append(maker(name, folder, corpus))
        except (OSError, subprocess.CalledProcessError) as error:
            notes.append(f"{name} could not be installed ({type(error).__name__})")
    return peers, notes


def _fast(name: str, folder: Path, corpus: Corpus) -> Peer:
    place = folder / "fast"
    place.mkdir(parents=True)
    npm = Path(node()).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    command = [node(), str(npm), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run([*command, "fast-filesystem-mcp@3.5.2"], cwd=place, check=True, capture_output=True)
    script = place / "node_modules/fast-filesystem-mcp/dist/index.js"
    server = Server(name, [node(), str(script), "--allow", str(corpus.tree)], corpus.tree)

    def arguments(word: str) -> dict[str, Any]:
        return {"path": str(corpus.tree), "pattern": word, "max_results": 200, "case_sensitive": True}

    return Peer(server, "fast_search_code", arguments)


def _workspace(name: str, folder: Path, corpus: Corpus) -> Peer:
    place = folder / "workspace"
    uv = [str(Path(sys.executable).parent / "uv")]
    environment = {**os.environ, "VIRTUAL_ENV": str(place)}
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True, capture_output=True)
    install_command = [*uv, "pip", "install", "--quiet", "mcp-workspace==0.1.13"]
    subprocess.run(install_command, env=environment, check=True, capture_output=True)
    command = [str(place / "bin/mcp-workspace"), "--project-dir", str(corpus.tree), "--console-only"]
    server = Server(name, command, corpus.tree)

    def arguments(word: str) -> dict[str, Any]:
        return {"pattern": word, "context_lines": 2, "max_results": 200, "max_result_lines": 1000}

    return Peer(server, "search_files", arguments)
