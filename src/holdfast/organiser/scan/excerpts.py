"""Pure: the two tiers of reading: what a file's ends say, and when its text must be read.

Tier 1 is the first 2 KB and the last 1 KB, or all of a file under 3 KB.
"""

import re

from holdfast.organiser.model import Excerpt, Verdict
from holdfast.text.decode import Encoding, detect_encoding
from holdfast.text.media_types import EMAIL, EPUB, HTML, OFFICE, PDF, ZIP, content_type

HEAD_BYTES = 2_048
TAIL_BYTES = 1_024
DEEP_BELOW = 0.8

_DEEP_SUFFIXES = frozenset({"pdf", "docx"})
_DEEP_WORDS = re.compile(
    r"\b(?:sub-?)?totals?\b|\binvoices?\b|\bbalance\s+due\b|\bagreements?\b|\bwitnesseth\b", re.IGNORECASE
)
_RTF = "application/rtf"
_CONTROLS = re.compile(r"\\[a-z]+-?\d* ?|\\'[0-9a-f]{2}|[{}]|\\\*", re.IGNORECASE)
_GAP = "\n…\n"
_READERS = {
    PDF: "PDF", ZIP: "ARCHIVE", EPUB: "ARCHIVE", HTML: "HTML", EMAIL: "EML", "image/svg+xml": "HTML",
    "image/jpeg": "IMAGE", "image/png": "IMAGE", "image/tiff": "IMAGE", "image/webp": "IMAGE", "image/gif": "IMAGE",
    "image/bmp": "IMAGE", "image/avif": "IMAGE", "application/json": "TEXT", "application/xml": "TEXT",
    "application/x-tex": "TEXT", _RTF: "TEXT", "application/postscript": "TEXT",
}  # fmt: skip
_TAGS = re.compile(
    r"<(?:script|style)\b.*?(?:</(?:script|style)>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.IGNORECASE | re.DOTALL
)


def first_look(size: int, head: bytes, tail: bytes, suffix: str) -> Excerpt:
    """Return tier 1 out of a file's ends, which may be longer than it needs; `suffix` is without its dot."""
    kind, encoding = content_type(head, f".{suffix}")
    read = min(size, HEAD_BYTES + TAIL_BYTES)
    if encoding is None:
        return Excerpt("", 1, read, kind)
    if size <= HEAD_BYTES + TAIL_BYTES:
        text = _decoded(head[:size], encoding)
    else:
        text = f"{_decoded(head[:HEAD_BYTES], encoding)}{_GAP}{_decoded(_aligned(tail, encoding), encoding)}"
    return Excerpt(_plain(text, kind), 1, read, kind)


def why_deep(excerpt: Excerpt, suffix: str, verdict: Verdict | None = None, below: float = DEEP_BELOW) -> str | None:
    """Return why a file's text must be read as well, None when its ends are enough or it has been read."""
    if excerpt.tier >= 2:
        return None
    if suffix in _DEEP_SUFFIXES or excerpt.content_type == PDF or excerpt.content_type.startswith(OFFICE):
        return "its text is inside a document"
    if found := _DEEP_WORDS.search(excerpt.text):
        return f"its ends hold {found[0].lower()!r}"
    if verdict is None:
        return None
    if verdict.requires_deep_scan:
        return "the classifier asks for more"
    return f"the confidence is under {below:g}" if verdict.confidence < below else None


def reader_of(kind: str) -> str | None:
    """Return which reader takes the text out of a type: one of the extraction's, "TEXT" for bytes, None for none."""
    if kind in _READERS:
        return _READERS[kind]
    if kind.startswith(OFFICE):
        return "ARCHIVE"
    return "TEXT" if kind.startswith("text/") else None


def decoded(head: bytes, tail: bytes, kind: str) -> str | None:
    """Return the text of a file's beginning and, where something is left out, of its end; None when it is no text."""
    encoding = detect_encoding(head, complete=not tail)
    if encoding is None:
        return None
    text = _decoded(head, encoding)
    return _plain(f"{text}{_GAP}{_decoded(_aligned(tail, encoding), encoding)}" if tail else text, kind)


def _decoded(data: bytes, encoding: Encoding) -> str:
    return str(data.removeprefix(encoding.bom) if encoding.bom else data, encoding.codec, "ignore")


def _aligned(tail: bytes, encoding: Encoding) -> bytes:
    """Return the last bytes of a file, beginning with a whole code unit; a file has a whole number of them."""
    length = TAIL_BYTES - TAIL_BYTES % encoding.unit_bytes
    return tail[-length:]


def _plain(text: str, kind: str) -> str:
    if kind == HTML:
        text = _TAGS.sub(" ", text)
    elif kind == _RTF:
        text = _CONTROLS.sub(" ", text)
    lines = (" ".join(line.split()) for line in text.replace("\0", "").splitlines())
    return "\n".join(line for line in lines if line)
