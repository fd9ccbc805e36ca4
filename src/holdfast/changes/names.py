"""Pure: free file names: which names collide, the next numbered name, a name with a label."""

import unicodedata

_MAX_NAME_BYTES = 255
_DOUBLE_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def collision_key(name: str) -> str:
    """Return a key that is equal for two names that some file system treats as the same."""
    return unicodedata.normalize("NFC", name).casefold()


def free_name(name: str, used_keys: set[str]) -> str:
    """Return the name, or the first numbered one whose key is not in `used_keys`, and add its key there."""
    number = 1
    candidate = name
    while collision_key(candidate) in used_keys:
        number += 1
        candidate = add_label(name, str(number))
    used_keys.add(collision_key(candidate))
    return candidate


def add_label(name: str, label: str) -> str:
    """Return a name with a label in brackets before its suffix, cut where it would be too long."""
    stem, suffix = _split(name)
    bracketed = f" ({label})"
    room = _MAX_NAME_BYTES - len((bracketed + suffix).encode("utf-8", "surrogateescape"))
    while len(stem.encode("utf-8", "surrogateescape")) > room:
        stem = stem[:-1]
    return f"{stem}{bracketed}{suffix}"


def _split(name: str) -> tuple[str, str]:
    for suffix in _DOUBLE_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], name[-len(suffix) :]
    stem, dot, suffix = name.rpartition(".")
    return (stem, dot + suffix) if stem.strip(".") else (name, "")


def parent_of(path: str) -> str:
    """Return the directory of a path."""
    return path.rpartition("/")[0] or "/"
