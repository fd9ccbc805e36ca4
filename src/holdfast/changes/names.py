"""Pure: file names that are free: which names collide, the next numbered name, and a name with a mark."""

import unicodedata

_MAX_NAME_BYTES = 255
_DOUBLE = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def collision_key(name: str) -> str:
    """Return what two names share when some file system takes them for the same."""
    return unicodedata.normalize("NFC", name).casefold()


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, or the first numbered one whose key nobody has; the key is then taken."""
    number = 1
    found = name
    while collision_key(found) in taken:
        number += 1
        found = _numbered(name, number)
    taken.add(collision_key(found))
    return found


def _numbered(name: str, number: int) -> str:
    return add_label(name, str(number))


def add_label(name: str, word: str) -> str:
    """Return a name with a word in brackets before its suffix, cut where it would be too long."""
    stem, suffix = _split(name)
    mark = f" ({word})"
    room = _MAX_NAME_BYTES - len((mark + suffix).encode("utf-8", "surrogateescape"))
    while len(stem.encode("utf-8", "surrogateescape")) > room:
        stem = stem[:-1]
    return f"{stem}{mark}{suffix}"


def _split(name: str) -> tuple[str, str]:
    for suffix in _DOUBLE:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], name[-len(suffix) :]
    stem, dot, suffix = name.rpartition(".")
    return (stem, dot + suffix) if stem.strip(".") else (name, "")


def parent_of(path: str) -> str:
    """Return the directory that a path lies in."""
    return path.rpartition("/")[0] or "/"
