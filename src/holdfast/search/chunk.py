"""Pure: splits a file into chunks that cover it exactly, preferably at headings, definitions and paragraphs.

Between the smallest and the largest size of a chunk, the split is at the strongest boundary; of equal ones, at the one
whose next line has the smallest checksum. So a split depends on the text around it and not on what comes long before:
after an edit most chunks stay as they were.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from holdfast.search.model import Chunk, IndexedChunk
from holdfast.text.decode import is_continuation_byte

TARGET_BYTES = 1500
MIN_BYTES = 750
MAX_BYTES = 2000
_MIN_LAST_BYTES = 200
_CHECKSUM_BYTES = 64

_HEADING = re.compile(rb"#{1,6}[ \t]|={3,}\s*$|[-*_]{3,}\s*$", re.MULTILINE)
_CODE = re.compile(
    rb"(?:\t| {0,4})(?:@\w|(?:async |export |default |public |private |protected |internal |static |abstract |final |pub )*"
    rb"(?:def|class|function|func|fn|impl|interface|struct|enum|trait|module|namespace|type|CREATE)\b)"
)
_BLANK = re.compile(rb"[ \t\r]*\n")
_SENTENCE = re.compile(rb"(?:[.!?;][\"')\]]*\s+|\xe3\x80\x82|\xef\xbc\x81|\xef\xbc\x9f)")
_LINE = re.compile(rb"\n")
_SPACE = re.compile(rb"\s+")


def split_into_chunks(data: bytes) -> list[Chunk]:
    """Return the chunks of a text in order, without their tokens; none for an empty text."""
    return [make_chunk(data, start, end) for start, end in chunk_ranges(data)]


def chunk_ranges(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of the chunks: no gap, no overlap, no character split."""
    start = 0
    while start < len(data):
        end = _find_end(data, start)
        yield start, end
        start = end


def make_chunk(data: bytes, start: int, end: int) -> Chunk:
    """Return the chunk of a text at a byte range, without its tokens."""
    part = data[start:end]
    return Chunk(start, end, part.decode(), hashlib.sha256(part).hexdigest())


class ChunkDiff(NamedTuple):
    """What turns the chunks in the index into those of a file: (id, position, chunk) to keep, new chunks, ids to remove."""

    unchanged: list[tuple[int, int, Chunk]]
    added: list[tuple[int, Chunk]]
    removed_ids: list[int]


def diff_chunks(indexed: Sequence[IndexedChunk], chunks: Sequence[Chunk]) -> ChunkDiff:
    """Match chunks by their text, wherever it is in the file; of equal chunks the first is matched with the first."""
    ids_by_hash: dict[str, list[int]] = {}
    for old in reversed(indexed):
        ids_by_hash.setdefault(old.content_hash, []).append(old.id)
    unchanged, added = [], []
    for position, chunk in enumerate(chunks):
        ids = ids_by_hash.get(chunk.content_hash)
        if ids:
            unchanged.append((ids.pop(), position, chunk))
        else:
            added.append((position, chunk))
    return ChunkDiff(unchanged, added, sorted(chunk_id for ids in ids_by_hash.values() for chunk_id in ids))


def _find_end(data: bytes, start: int) -> int:
    if len(data) - start <= MAX_BYTES:
        return len(data)
    low, high = start + MIN_BYTES, min(start + MAX_BYTES, len(data) - _MIN_LAST_BYTES)
    for separator in (_LINE, _SENTENCE, _SPACE):
        ends = (match.end() for match in separator.finditer(data, low, high))
        boundaries = [end for end in ends if end < high and not is_continuation_byte(data[end])]
        if boundaries:
            return min(boundaries, key=lambda at: (-_strength(data, at), _checksum(data, at), at))
    end = start + TARGET_BYTES
    while is_continuation_byte(data[end]):
        end -= 1
    return end


def _strength(data: bytes, at: int) -> int:
    """Return how good a boundary is: 4 before a heading, down to 0 before a blank line or inside a line."""
    if data[at - 1] != 0x0A or _BLANK.match(data, at):
        return 0
    if _HEADING.match(data, at):
        return 4
    after_blank = data[at - 2 : at - 1] in (b"\n", b"\r") and data[at - 3 : at].count(b"\n") == 2
    if _CODE.match(data, at):
        return 3 if after_blank or data[at] not in b" \t" else 2
    return 2 if after_blank else 1


def _checksum(data: bytes, at: int) -> int:
    """Return the checksum of the beginning of the line at a position."""
    line_end = data.find(b"\n", at, at + _CHECKSUM_BYTES)
    return crc32(data[at : line_end if line_end >= 0 else at + _CHECKSUM_BYTES])
