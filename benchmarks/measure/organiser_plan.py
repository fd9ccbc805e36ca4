"""A messy folder planned, carried out and taken back by the commands, beside organize-tool with rules for the same job.

organize-tool is installed from the package index into an environment of its own, in the folder of the run. It moves files
by rules alone: it keeps no journal, asks nobody and cannot take anything back, so it is the floor for the moving.
"""

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

from benchmarks.measure.servers import TOP
from benchmarks.measure.table import Row

KINDS = {"Video": "mp4", "Music": "mp3", "Archives": "zip", "Fonts": "ttf"}
WORDS = {
    "Invoices": "amount due vat bank transfer payable days acme customer number date billing reference",
    "Recipes": "flour sugar butter eggs oven bake dough minutes salt mix cake cream pan",
    "Letters": "dear tenant rent flat landlord garden street raised percent january sincerely keys",
}


def measure(folder: Path, files: int) -> list[Row]:
    """Return the rows: making plans, carrying one out and taking it back."""
    return [*_texts(folder, files), *_rules(folder, files)]


def _texts(folder: Path, files: int) -> list[Row]:
    root, state = folder / "texts", folder / "texts-state"
    state.mkdir(mode=0o700)
    names = list(WORDS)
    for name in names:
        (root / name).mkdir(parents=True)
        for number in range(20):
            (root / name / f"known {number}.txt").write_text(_text(name, number))
    for number in range(files):
        (root / f"file {number}.txt").write_text(_text(names[number % 3], 100 + number))
    first, again = (_timed(state, "scan", str(root)) for _ in range(2))
    return [
        Row(f"first plan for {files:,} texts, start of the program included", f"{files / first:,.0f} files/s", ""),
        Row(f"plan again, nothing changed ({again:.1f} s)", f"{files / again:,.0f} files/s", ""),
    ]


def _text(name: str, number: int) -> str:
    words = WORDS[name].split()
    return " ".join(words[(number * step + step) % len(words)] for step in range(1, 60)) + f" {number}\n"


def _rules(folder: Path, files: int) -> list[Row]:
    state = folder / "rules-state"
    state.mkdir(mode=0o700)
    ours, theirs = folder / "ours", folder / "theirs"
    for root in (ours, theirs):
        root.mkdir()
        for number in range(files):
            suffix = list(KINDS.values())[number % len(KINDS)]
            (root / f"file {number}.{suffix}").write_bytes(b"x" * 200)
    _timed(state, "scan", str(ours))
    _timed(state, "approve", "--yes")
    carried, undone = _timed(state, "execute"), _timed(state, "undo")
    peer = _organize_tool(folder, theirs)
    return [
        Row(
            f"{files:,} moves carried out, start of the program included",
            f"{files / carried:,.0f} moves/s",
            f"{files / peer:,.0f} moves/s, organize-tool by rules (no journal, no undo)",
            carried / peer,
        ),
        Row(f"{files:,} moves taken back", f"{files / undone:,.0f} moves/s", ""),
    ]


def _organize_tool(folder: Path, root: Path) -> float:
    """Return the seconds that organize-tool needs for the same moves."""
    home = folder / "peer"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "organize-tool"], check=True, capture_output=True)
    rules = folder / "rules.yaml"
    suffixes = list(KINDS.values())
    lines = ["rules:", f"  - locations: {root}", "    filters:", f"      - extension: {suffixes}"]
    lines += ["    actions:", f"      - move: '{root}/{{extension}}/'"]
    rules.write_text("\n".join(lines) + "\n")
    started_at = time.monotonic()
    subprocess.run([home / "bin" / "organize", "run", str(rules)], check=True, capture_output=True)
    seconds = time.monotonic() - started_at
    moved = sum(len(list((root / suffix).iterdir())) for suffix in suffixes)
    assert moved == sum(1 for path in root.rglob("*") if path.is_file()), "organize-tool did not move every file"
    return seconds


def _timed(state: Path, *words: str) -> float:
    environment = {**os.environ, "HOLDFAST_STATE_DIR": str(state)}
    started_at = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "holdfast", "organise", *words],
        cwd=TOP,
        env=environment,
        check=True,
        capture_output=True,
    )
    return time.monotonic() - started_at
