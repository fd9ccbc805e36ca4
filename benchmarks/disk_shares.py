"""Measure what each of four floods costs the disk, and whether the first of many changes comes back.

    python benchmarks/disk_shares.py [--quick] [--folder DIR]

It prints Markdown: the most that the state folder took up during each flood and what it takes up after it, with the caps at
work, on SQLite. Reviews are opened by calls of a server; the other floods go through the services that tools call.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.service import Changes
from holdfast.config.settings import FolderSettings, JournalSettings
from holdfast.errors import HoldfastError, QuotaExceeded
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.service import Folders
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.agent import Agent
from tests.helpers.disks import disk_use, noise, noise_text
from tests.helpers.doors import House
from tests.helpers.reviewer import Reviewer

MB = 1_000_000


def main() -> None:
    """Run every flood and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small files and few changes: a smoke test, not a figure")
    parser.add_argument("--folder", help="where to make the files (the system's temporary folder)")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    floods: list[Callable[[Path, int], list[str]]] = [open_reviews, stored_versions, wash_out, first_of_many]
    print("| flood | calls that succeeded | refused | most on disk, MB | after, MB | the first state | seconds |")
    print("|---|---|---|---|---|---|---|")
    for flood in floods:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print("| " + " | ".join(flood(Path(folder), scale)) + " |", flush=True)


class Flooded:
    """One root under a flood, with the most that the state folder took up."""

    def __init__(self, changes: Changes, folders: Folders, root: Path, state: Path) -> None:
        self.changes = changes
        self.folders = folders
        self.root = root
        self.state = state
        self.done_count = self.refused = self.most_bytes = 0

    def call(self) -> Call:
        """Return a call of the local user."""
        return Call(Caller(LOCAL_USER, roots=(str(self.root),)), 600.0)

    def change(self, act: Callable[[Folders, Call], object]) -> None:
        """Make a change, whether or not it is refused."""
        try:
            act(self.folders, self.call())
            self.done_count += 1
        except HoldfastError:
            self.refused += 1
        self.most_bytes = max(self.most_bytes, disk_use(self.state))

    def settle(self) -> None:
        """Do what the background upkeep does, until it has nothing left."""
        for _ in range(30):
            self.changes._upkeep.run()


@contextmanager
def flooded(folder: Path) -> Iterator[Flooded]:
    """Open the journal of a new state folder on a new root."""
    root, state = folder / "root", folder / "state"
    root.mkdir()
    state.mkdir(mode=0o700)
    changes = Changes(open_journal(str(state)), str(state), JournalSettings())
    roots = open_roots([str(root)], "/", str(state))
    try:
        yield Flooded(changes, Folders(Jail(roots, [identity_of(os.stat(state))]), FolderSettings()), root, state)
    finally:
        changes.close()
        close_roots(roots)


def open_reviews(folder: Path, scale: int) -> list[str]:
    """Propose a small edit of each of 40 files of 20 MB, then reject what was taken."""
    started_at, size, house = time.monotonic(), 20 * MB // scale, House(folder)
    house.settings(f"settings: {{review: {{max_open_bytes: {200 * MB // scale}, wait_seconds: 0}}}}")
    most = done_count = 0
    with Agent([house.root], house.state) as agent:
        person = Reviewer(agent, house.root, house.state)
        for number in range(40):
            (house.root / f"{number}.txt").write_text(noise_text(size, number))
            head = noise_text(size, number)[:200]
            reply = agent.call("propose_and_review", path=f"{number}.txt", old_string=head, new_string="an edit")
            done_count += not reply.is_error
            most = max(most, disk_use(house.state))
        for review in person.person("pending_reviews")["reviews"]:
            person.decide(review, "reject")
        time.sleep(5)
        after = disk_use(house.state)
    house.end()
    name = f"40 reviews of {size / MB:.1f} MB files, {10 * size / MB:.0f} MB allowed, all rejected after it"
    return _figures(name, done_count, 40 - done_count, (most, after), "", started_at)


def stored_versions(folder: Path, scale: int) -> list[str]:
    """As one tenant append a byte to a file of 8 MB 20 times, then fill ten more projects with 18 MB each."""
    started_at, size, done_count, most = time.monotonic(), 8 * MB // scale, 0, 0
    limits = StoreLimits(max_payload_bytes=20 * MB, max_file_bytes=20 * MB, max_tenant_bytes=100 * MB // scale)
    database = SqliteStore(str(folder))
    store = Store(database, limits)
    store.write(LOCAL_USER, "p", "/large.txt", "x" * size)
    writes = [("p", "/large.txt", "y")] * 20 + [(f"p{n}", "/a.txt", "x" * (18 * MB // scale)) for n in range(10)]
    for project, path, content in writes:
        try:
            store.write(LOCAL_USER, project, path, content)
            done_count += 1
        except QuotaExceeded:
            pass
        most = max(most, disk_use(folder))
    counted_bytes = store.usage(LOCAL_USER).total_bytes
    is_whole = store.read(LOCAL_USER, "p", "/large.txt").text == "x" * size + "y" * 20
    database.close()
    name = f"20 appends to an {size / MB:.1f} MB file and 10 projects, {limits.max_tenant_bytes / MB:.0f} MB allowed"
    state = f"{counted_bytes / MB:.1f} MB counted; live files {'whole' if is_whole else 'LOST'}"
    return _figures(name, done_count, len(writes) - done_count, (most, disk_use(folder)), state, started_at)


def wash_out(folder: Path, scale: int) -> list[str]:
    """Overwrite a small file, then change a file of 48 MB 16 times: 12 times by one byte at its end, 4 times whole."""
    started_at = time.monotonic()
    size = 48 * MB // scale
    with flooded(folder) as world:
        (world.root / "thesis.txt").write_text("years of work")
        (world.root / "large.txt").write_text(noise_text(size))
        first = world.changes.write(world.folders, world.call(), str(world.root / "thesis.txt"), "").change_id or ""
        path = str(world.root / "large.txt")
        for _ in range(12):
            world.change(partial(world.changes.append, path=path, content="x"))
        for number in range(4):
            world.change(partial(world.changes.write, path=path, content=noise_text(size, number + 1)))
        world.settle()
        world.changes.restore_before(world.call(), first)
        back = (world.root / "thesis.txt").read_text() == "years of work"
        return _row("16 changes of a 48 MB file", world, back, started_at)


def first_of_many(folder: Path, scale: int) -> list[str]:
    """Change one file 10,000 times, then bring the first state back."""
    started_at = time.monotonic()
    with flooded(folder) as world:
        path = world.root / "a.txt"
        path.write_bytes(b"the first state\n" + noise(20_000).hex().encode())
        before = path.read_bytes()
        first = world.changes.write(world.folders, world.call(), str(path), "x").change_id or ""
        for number in range(10_000 // scale):
            content = f"{number}\n" + noise_text(20_000, number)
            world.changes.write(world.folders, world.call(), str(path), content)
            world.done_count += 1
        world.most_bytes = disk_use(world.state)
        world.settle()
        world.changes.restore_before(world.call(), first)
        return _row(f"{10_000 // scale} changes of one file", world, path.read_bytes() == before, started_at)


def _row(name: str, world: Flooded, is_back: bool, started_at: float) -> list[str]:
    state = "came back" if is_back else "LOST"
    return _figures(name, world.done_count, world.refused, (world.most_bytes, disk_use(world.state)), state, started_at)


def _figures(
    name: str, done_count: int, refused: int, disk_bytes: tuple[int, int], state: str, started_at: float
) -> list[str]:
    most, after = (f"{count / MB:.1f}" for count in disk_bytes)
    return [name, str(done_count), str(refused), most, after, state, f"{time.monotonic() - started_at:.1f}"]


if __name__ == "__main__":
    main()
