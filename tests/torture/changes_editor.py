"""Another program that saves the same file at the same moment: a race of a real process against our commits.

Run as a program, `python -m tests.torture.changes_editor FILE`, it is the editor: each line of its standard input is a
way to save, a delay in seconds, and the tokens to save one after the other; it answers each line when it has saved.
"""

import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import Conflict
from tests.unit.changes.world import World, opened_world

IN_PLACE, BY_RENAME = "in-place", "by-rename"
_MEMORY = Path("/dev/shm")


@dataclass
class Races:
    """How many saves met a commit, how the commits ended, and the saves that were lost."""

    rounds: int = 0
    applied: int = 0
    refused: int = 0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"editor    {self.rounds} races: {self.applied} applied, {self.refused} refused, {len(self.lost)} lost"


def race(rounds: int, seed: int, say: Callable[[str], None] = lambda _line: None) -> Races:
    """Let an editor save while edits are committed, so many times; every last save is in the file or kept."""
    races, chance = Races(), random.Random(seed)
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        root, state = Path(folder) / "root", Path(folder) / "state"
        root.mkdir()
        path = root / "a.txt"
        path.write_text("start")
        editor = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.changes_editor", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            with opened_world([root], state) as world:
                for number in range(rounds):
                    _race_once(editor, world, path, number, chance, races)
                    if number % 1_000 == 999:
                        say(f"{number + 1} of {rounds}: {races}")
        finally:
            assert editor.stdin is not None
            assert editor.stdout is not None
            editor.stdin.close()
            editor.wait(timeout=20)
            editor.stdout.close()
        if world.leftovers():
            races.lost.append(f"helper files were left: {world.leftovers()}")
    return races


def _race_once(
    editor: "subprocess.Popen[str]", world: World, path: Path, number: int, chance: random.Random, races: Races
) -> None:
    tokens = [f"save-{number}-{part};" for part in range(chance.choice((1, 1, 2)))]
    style = chance.choice((IN_PLACE, BY_RENAME))
    delay = chance.random() * chance.choice((0.0005, 0.002, 0.006))
    assert editor.stdin is not None
    assert editor.stdout is not None
    editor.stdin.write(f"{style} {delay} {' '.join(tokens)}\n")
    editor.stdin.flush()
    try:
        world.append("a.txt", "+")
        races.applied += 1
    except Conflict:
        races.refused += 1
    assert editor.stdout.readline() == "saved\n"
    races.rounds += 1
    is_kept = world.changes._images.has(hashlib.sha256(tokens[-1].encode()).hexdigest())
    if not path.read_text().startswith(tokens[-1]) and not is_kept:
        races.lost.append(f"round {number}: {style} after {delay:.4f} s: {tokens[-1]}")


def _save(path: str, style: str, text: str) -> None:
    if style == IN_PLACE:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, text.encode())
        os.close(fd)
        return
    fresh = f"{path}.editor"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, text.encode())
    os.close(fd)
    os.rename(fresh, path)


def main(path: str) -> None:
    """Save whenever it is told to, until standard input closes."""
    for line in sys.stdin:
        style, delay, *tokens = line.split()
        until = time.monotonic() + float(delay)
        while time.monotonic() < until:
            os.sched_yield()
        for token in tokens:
            _save(path, style, token)
        print("saved", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
