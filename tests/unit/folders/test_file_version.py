"""Versions of files: the stored text forms stay as they are, and each notices what it is there for."""

import os
from pathlib import Path

from holdfast.folders.access.file_version import END_BYTES, FileVersion, hash_ends, identity_text
from holdfast.folders.access.syscalls import composite_hash

VERSION = FileVersion(device=2049, inode=255, size=4096, mtime_ns=16, ctime_ns=17)


def test_the_stored_forms_are_those_that_databases_and_cursors_hold() -> None:
    assert VERSION.scan_text == "801.ff.1000.10.11"
    assert VERSION.index_text == "ff.1000.10.11"
    assert VERSION.content_text == "ff.1000.10"


def test_a_status_gives_its_version_and_its_identity(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    status = (tmp_path / "a").stat()
    version = FileVersion.from_stat(status)
    assert version == (status.st_dev, status.st_ino, 1, status.st_mtime_ns, status.st_ctime_ns)
    assert identity_text(status) == f"{status.st_dev}:{status.st_ino}"


def test_the_composite_hash_covers_both_ends_and_not_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "a"
    body = bytearray(3 * END_BYTES)
    hashes = []
    for at in (None, END_BYTES + 1, 0, 3 * END_BYTES - 1):
        changed = bytearray(body)
        if at is not None:
            changed[at] = 1
        path.write_bytes(changed)
        os.utime(path, ns=(5, 5))
        with path.open("rb") as file:
            hashes.append(composite_hash(file.fileno(), os.fstat(file.fileno())))
    whole, middle, first, last = hashes
    assert whole == middle == hash_ends(path.stat(), bytes(END_BYTES), bytes(END_BYTES))
    assert len({whole, first, last}) == 3
