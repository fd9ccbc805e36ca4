"""A process that changes files without end, to be killed at any moment. Every content carries its own checksum."""

import hashlib
import os
import random
import sys
from itertools import count
from pathlib import Path

from tests.unit.changes.world import World, opened_world


def sealed(number: int, size: int) -> str:
    """Return a text whose first line is the checksum of the rest."""
    body = f"number {number}\n" + "x" * size
    return hashlib.sha256(body.encode()).hexdigest() + "\n" + body


def is_sealed(data: bytes) -> bool:
    """Return whether a file holds one whole content."""
    head, _, body = data.partition(b"\n")
    return hashlib.sha256(body).hexdigest().encode() == head


def step(world: World, number: int) -> None:
    """Make one round of every verb; the files `a`, `b`, `d/x` and `d/y` come and go."""
    size = random.choice((10, 5_000, 200_000))
    world.write("a", sealed(number, size))
    change = world.write("d/x", sealed(number, 10))
    if random.random() < 0.3:
        world.undo(change)
    if random.random() < 0.3:
        deleted = world.delete("d", recursive=True)
        world.undo(deleted)
    world.write("d/x", sealed(number, 20))
    if (world.root / "b").exists():
        world.delete("b")
    world.write("c", sealed(number, size))
    world.move("c", "b")
    made = world.mkdir(f"made/{number % 3}/deep")
    if made:
        world.undo(made)


def main() -> None:
    root, state = Path(sys.argv[1]), Path(sys.argv[2])
    with opened_world([root], state) as world:
        print("ready", flush=True)
        for number in count():
            if not (root / "d").exists():
                world.mkdir("d")
            if (root / "c").exists():
                world.delete("c")
            step(world, number)


if __name__ == "__main__":
    os.umask(0o022)
    main()
