"""Pure: the texts of a review as they are stored: the file compressed, and each other text as its difference from it."""

import struct
import zlib

from holdfast.text.diff import ReadAt, common_ends

_LEVEL = 1
_ENDS = struct.Struct(">QQ")


def pack_base(base: bytes | None) -> bytes | None:
    """Return the stored form of the file as it was, None when there was none."""
    return None if base is None else zlib.compress(base, _LEVEL)


def unpack_base(stored: bytes | None) -> bytes | None:
    """Return the file from its stored form."""
    return None if stored is None else zlib.decompress(stored)


def pack_text(base: bytes | None, text: bytes | None) -> bytes | None:
    """Return the stored form of a text: the lengths of the ends that the file has too, and what is between, compressed."""
    if text is None:
        return None
    file = base or b""
    prefix, suffix = common_ends(_reader(text), len(text), _reader(file), len(file))
    return _ENDS.pack(prefix, suffix) + zlib.compress(text[prefix : len(text) - suffix], _LEVEL)


def unpack_text(base: bytes | None, stored: bytes | None) -> bytes | None:
    """Return a text from its stored form and the file."""
    if stored is None:
        return None
    file = base or b""
    prefix, suffix = _ENDS.unpack_from(stored)
    middle = zlib.decompress(stored[_ENDS.size :])
    return file[:prefix] + middle + file[len(file) - suffix :]


def _reader(data: bytes) -> ReadAt:
    return lambda count, offset: data[offset : offset + count]
