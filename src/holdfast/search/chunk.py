"""Pure: where a file is cut into pieces that tile it exactly, at headings, code and paragraphs before anywhere else.

Between the least and the most bytes of a piece the cut falls on the strongest boundary; of equal ones on the one whose
next line has the least checksum. So a cut depends on the text around it and not on what comes long before: after an
edit the cuts fall where they fell, and most pieces stay as they were.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from holdfast.search.model import Chunk, KnownChunk

TARGET_BYTES = 1500
LEAST_BYTES = 750
MOST_BYTES = 2000
_LEAST_LAST_BYTES = 200
_LOOK_BYTES = 64

_HEADING = re.compile(rb"#{1,6}[ \t]|={3,}\s*$|[-*_]{3,}\s*$", re.MULTILINE)
_CODE = re.compile(
    rb"(?:\t| {0,4})(?:@\w|(?:async |export |default |public |private |protected |internal |static |abstract |final |pub )*"
    rb"(?:def|class|function|func|fn|impl|interface|struct|enum|trait|module|namespace|type|CREATE)\b)"
)
_BLANK = re.compile(rb"[ \t\r]*\n")
_SENTENCE = re.compile(rb"(?:[.!?;][\"')\]]*\s+|\xe3\x80\x82|\xef\xbc\x81|\xef\xbc\x9f)")
_LINE = re.compile(rb"\n")
_SPACE = re.compile(rb"\s+")


def chunks_of(data: bytes) -> list[Chunk]:
    """Return the pieces of a text in order; none for an empty one. Their words are not filled in."""
    return [chunk_at(data, start, end) for start, end in ranges(data)]


def ranges(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of the pieces: no gap, no overlap, no character in two."""
    start = 0
    while start < len(data):
        end = _end(data, start)
        yield start, end
        start = end


def chunk_at(data: bytes, start: int, end: int) -> Chunk:
    """Return the piece of a text at a range; its words are not filled in."""
    piece = data[start:end]
    return Chunk(start, end, piece.decode(), content_hash(piece))


def content_hash(data: bytes) -> str:
    """Return what two pieces share when their text is the same."""
    return hashlib.sha256(data).hexdigest()


class Plan(NamedTuple):
    """What makes the pieces that an index holds those that a file has: (id, place, piece) kept, added, and ids gone."""

    kept: list[tuple[int, int, Chunk]]
    added: list[tuple[int, Chunk]]
    gone: list[int]


def plan(known: Sequence[KnownChunk], chunks: Sequence[Chunk]) -> Plan:
    """Match pieces by their text, wherever it stands now; of equal pieces the first takes the first."""
    waiting: dict[str, list[int]] = {}
    for old in reversed(known):
        waiting.setdefault(old.content_hash, []).append(old.id)
    kept, added = [], []
    for place, chunk in enumerate(chunks):
        same = waiting.get(chunk.content_hash)
        if same:
            kept.append((same.pop(), place, chunk))
        else:
            added.append((place, chunk))
    return Plan(kept, added, sorted(number for left in waiting.values() for number in left))


def _end(data: bytes, start: int) -> int:
    if len(data) - start <= MOST_BYTES:
        return len(data)
    low, high = start + LEAST_BYTES, min(start + MOST_BYTES, len(data) - _LEAST_LAST_BYTES)
    for boundary in (_LINE, _SENTENCE, _SPACE):
        places = _after(boundary, data, low, high)
        if places:
            return min(places, key=lambda at: (-_strength(data, at), _sum(data, at), at))
    return _character_at(data, start + TARGET_BYTES)


def _after(pattern: re.Pattern[bytes], data: bytes, low: int, high: int) -> list[int]:
    ends = (found.end() for found in pattern.finditer(data, low, high))
    return [at for at in ends if at < high and not _is_inside(data[at])]


def _strength(data: bytes, at: int) -> int:
    if data[at - 1] != 0x0A or _BLANK.match(data, at):
        return 0
    if _HEADING.match(data, at):
        return 4
    after_blank = data[at - 2 : at - 1] in (b"\n", b"\r") and data[at - 3 : at].count(b"\n") == 2
    if _CODE.match(data, at):
        return 3 if after_blank or data[at] not in b" \t" else 2
    return 2 if after_blank else 1


def _sum(data: bytes, at: int) -> int:
    line = data.find(b"\n", at, at + _LOOK_BYTES)
    return crc32(data[at : line if line >= 0 else at + _LOOK_BYTES])


def _character_at(data: bytes, at: int) -> int:
    while _is_inside(data[at]):
        at -= 1
    return at


def _is_inside(byte: int) -> bool:
    return byte & 0xC0 == 0x80
