"""Reads the contents of files, those that are kept and those on the disk, and compares two of them."""

import os
import stat
from dataclasses import dataclass

from holdfast.changes.disk.files import hash_bytes, hash_file, open_file, read_all
from holdfast.changes.disk.images import Images
from holdfast.changes.model import NodeType
from holdfast.changes.ports import Journal
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.text.decode import decode, detect_encoding
from holdfast.text.diff import unified_diff
from holdfast.text.display import display_name

_MAX_COMPARED_BYTES = 1 << 20
_MAX_DIFF_CHARS = 2_000_000
_NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True)
class KnownContent:
    """The content of a file at one moment; `data` is None when it is too large to compare."""

    size_bytes: int
    hash: str
    data: bytes | None


@dataclass
class ContentSource:
    """Reads contents for one answer, whose diffs have a limit in all."""

    journal: Journal
    images: Images
    jail: Jail
    chars_left: int = _MAX_DIFF_CHARS

    def find_image(self, hash_: str | None) -> KnownContent | None:
        """Return the content with a hash, None when it is no longer kept."""
        image = None if hash_ is None else self.journal.images.find(hash_)
        if image is None:
            return None
        data = b"".join(self.images.read(image.hash)) if image.size_bytes <= _MAX_COMPARED_BYTES else None
        return KnownContent(image.size_bytes, image.hash, data)

    def read_present(self, path: str) -> KnownContent | None:
        """Return the content of a file on the disk, or the target of a link; None when there is none that can be read."""
        try:
            with self.jail.place(path, follow=False) as place:
                if place.status is not None and stat.S_ISLNK(place.status.st_mode):
                    target = os.fsencode(os.readlink(place.name, dir_fd=place.parent_fd))
                    return KnownContent(len(target), hash_bytes(target), target)
                if place.status is None or not stat.S_ISREG(place.status.st_mode):
                    return None
                with open_file(place.parent_fd, place.name, place.path) as fd:
                    if place.status.st_size > _MAX_COMPARED_BYTES:
                        return KnownContent(place.status.st_size, hash_file(fd), None)
                    data = read_all(fd)
                    return KnownContent(len(data), hash_bytes(data), data)
        except (HoldfastError, OSError):
            return None

    def node_at(self, path: str) -> NodeType | None:
        """Return the type of what is at a path now, None for nothing."""
        try:
            with self.jail.place(path, follow=False) as place:
                status = place.status
        except (HoldfastError, OSError):
            return None
        if status is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            return NodeType.DIRECTORY
        return NodeType.LINK if stat.S_ISLNK(status.st_mode) else NodeType.FILE

    def compare(
        self, before: KnownContent | None, after: KnownContent | None, former_path: str, path: str
    ) -> tuple[str, str]:
        """Return the diff of two contents and a note on what it cannot show; None stands for no file."""
        old, new = (content.data if content else b"" for content in (before, after))
        if old is None or new is None:
            return "", "too large to compare"
        (old_text, old_encoding), (new_text, new_encoding) = _decode(old), _decode(new)
        if old_text is None or new_text is None:
            return "", "binary"
        diff = unified_diff(old_text, new_text, path)
        if len(diff) > self.chars_left:
            return "", "the diff is left out: too much has changed to show it all"
        self.chars_left -= len(diff)
        names = former_path if before else _NOTHING, path if after else _NOTHING
        note = f"encoding {old_encoding}, then {new_encoding}" if old and new and old_encoding != new_encoding else ""
        return _with_names(diff, *names), note


def _decode(data: bytes) -> tuple[str | None, str]:
    encoding = detect_encoding(data)
    return (None, "") if encoding is None else (decode(data, encoding), encoding.name)


def _with_names(diff: str, before: str, after: str) -> str:
    """Return a diff whose first two lines name the file before and after."""
    if not diff:
        return ""
    body = diff.split("\n", 2)[2]
    old = before if before == _NOTHING else display_name(f"a/{before.lstrip('/')}")
    new = after if after == _NOTHING else display_name(f"b/{after.lstrip('/')}")
    return f"--- {old}\n+++ {new}\n{body}"
