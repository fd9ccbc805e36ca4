"""Small disks that can be filled, and bytes that no compression makes smaller."""

import base64
import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallDisk:
    """A folder with little room. `codes` are the errors that a caller may get when it is full."""

    folder: Path
    codes: frozenset[str]

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Leave no free byte as long as the block runs."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue
        try:
            yield
        finally:
            filler.unlink()


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[SmallDisk]:
    """Mount a file system of that size; where that is not allowed, no process started here may write larger files."""
    folder.mkdir()
    options = f"size={kilobytes}k,mode=700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode == 0:
        try:
            yield SmallDisk(folder, frozenset({"STORAGE_FULL"}))
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, hard))
    try:
        yield SmallDisk(folder, frozenset({"STORAGE_FULL", "STORAGE_DAMAGED", "PAYLOAD_TOO_LARGE"}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noise(size: int, seed: int = 0) -> bytes:
    """Return random bytes, the same for the same seed."""
    return random.Random(seed).randbytes(size)


def noise_text(size: int, seed: int = 0) -> str:
    """Return random text of that many characters, of which compression saves a quarter."""
    return base64.b64encode(noise(size, seed)).decode()[:size]


def disk_use(*folders: Path) -> int:
    """Return the bytes that files below the folders take up."""
    total = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(parent, name)).st_blocks * 512
                except FileNotFoundError:
                    continue
    return total
