"""Pure: makes excerpts from the bytes of files, and decides which files are read in full.

Tier 1 is the first 2 KB and the last 1 KB, or all of a file under 3 KB. Tier 2 is the text of the file.
"""

import re

from holdfast.organiser.model import Excerpt, Verdict
from holdfast.text.decode import Encoding, detect_encoding
from holdfast.text.media_types import EMAIL, EPUB, HTML, OFFICE, PDF, ZIP, content_type

HEAD_BYTES = 2_048
TAIL_BYTES = 1_024
READ_TEXT_BELOW = 0.8

_DOCUMENT_SUFFIXES = frozenset({"pdf", "docx"})
_WORDS_TO_READ_ON = re.compile(
    r"\b(?:sub-?)?totals?\b|\binvoices?\b|\bbalance\s+due\b|\bagreements?\b|\bwitnesseth\b", re.IGNORECASE
)
_RTF = "application/rtf"
_RTF_CONTROLS = re.compile(r"\\[a-z]+-?\d* ?|\\'[0-9a-f]{2}|[{}]|\\\*", re.IGNORECASE)
_GAP = "\n…\n"
_READERS = {
    PDF: "PDF", ZIP: "ARCHIVE", EPUB: "ARCHIVE", HTML: "HTML", EMAIL: "EML", "image/svg+xml": "HTML",
    "image/jpeg": "IMAGE", "image/png": "IMAGE", "image/tiff": "IMAGE", "image/webp": "IMAGE", "image/gif": "IMAGE",
    "image/bmp": "IMAGE", "image/avif": "IMAGE", "application/json": "TEXT", "application/xml": "TEXT",
    "application/x-tex": "TEXT", _RTF: "TEXT", "application/postscript": "TEXT",
}  # fmt: skip
_PART_HEADERS = re.compile(
    r"^(?:--- (?:Page|Slide) \d+ ---|--- Sheet: (.*) ---|Archive of \d+ entries, \d+ bytes unpacked)$", re.MULTILINE
)
_HTML_TAGS = re.compile(
    r"<(?:script|style)\b.*?(?:</(?:script|style)>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.IGNORECASE | re.DOTALL
)


def excerpt_from_ends(size: int, head: bytes, tail: bytes, suffix: str) -> Excerpt:
    """Return the tier 1 excerpt; head and tail may be longer than tier 1 needs. `suffix` is without its dot."""
    media_type, encoding = content_type(head, f".{suffix}")
    bytes_read = min(size, HEAD_BYTES + TAIL_BYTES)
    if encoding is None:
        return Excerpt("", 1, bytes_read, media_type)
    if size <= HEAD_BYTES + TAIL_BYTES:
        text = _decode(head[:size], encoding)
    else:
        text = f"{_decode(head[:HEAD_BYTES], encoding)}{_GAP}{_decode(_align(tail, encoding), encoding)}"
    return Excerpt(_strip_markup(text, media_type), 1, bytes_read, media_type)


def reason_to_read_text(
    excerpt: Excerpt, suffix: str, verdict: Verdict | None = None, below: float = READ_TEXT_BELOW
) -> str | None:
    """Return why the text of a file must be read, None if tier 1 is enough or the text has been read."""
    if excerpt.tier >= 2:
        return None
    if suffix in _DOCUMENT_SUFFIXES or excerpt.content_type == PDF or excerpt.content_type.startswith(OFFICE):
        return "its text is inside a document"
    if match := _WORDS_TO_READ_ON.search(excerpt.text):
        return f"its beginning or end mentions {match[0].lower()!r}"
    if verdict is None:
        return None
    if verdict.requires_deep_scan:
        return "the classifier asks for more"
    return f"the confidence is under {below:g}" if verdict.confidence < below else None


def drop_part_headers(text: str) -> str:
    """Return the text of a document without the lines that its reader wrote between the parts; titles of sheets stay."""
    return _PART_HEADERS.sub(lambda match: match[1] or "", text).strip()


def reader_for(media_type: str) -> str | None:
    """Return the reader for a media type: the name of an extraction reader, "TEXT" for plain bytes, None if there is none."""
    if media_type in _READERS:
        return _READERS[media_type]
    if media_type.startswith(OFFICE):
        return "ARCHIVE"
    return "TEXT" if media_type.startswith("text/") else None


def decode_text(head: bytes, tail: bytes, media_type: str) -> str | None:
    """Return the text of the beginning and the end of a file, None if it is not text; `tail` is empty if nothing is left out."""
    encoding = detect_encoding(head, complete=not tail)
    if encoding is None:
        return None
    text = _decode(head, encoding)
    if tail:
        text = f"{text}{_GAP}{_decode(_align(tail, encoding), encoding)}"
    return _strip_markup(text, media_type)


def _decode(data: bytes, encoding: Encoding) -> str:
    return str(data.removeprefix(encoding.bom) if encoding.bom else data, encoding.codec, "ignore")


def _align(tail: bytes, encoding: Encoding) -> bytes:
    """Return the last bytes of a file, starting at a whole code unit; a file has a whole number of them."""
    length = TAIL_BYTES - TAIL_BYTES % encoding.unit_bytes
    return tail[-length:]


def _strip_markup(text: str, media_type: str) -> str:
    if media_type == HTML:
        text = _HTML_TAGS.sub(" ", text)
    elif media_type == _RTF:
        text = _RTF_CONTROLS.sub(" ", text)
    lines = (" ".join(line.split()) for line in text.replace("\0", "").splitlines())
    return "\n".join(line for line in lines if line)
