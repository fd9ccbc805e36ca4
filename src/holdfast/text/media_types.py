"""Pure: what type a file is: by signatures in its first bytes, with the suffix of its name as the second witness.

A suffix never makes an image, a document or an archive of bytes that are none.
"""

from typing import Literal

from holdfast.text.decode import Encoding, detect_encoding

BINARY = "application/octet-stream"
PDF = "application/pdf"
ZIP = "application/zip"
EPUB = "application/epub+zip"
HTML = "text/html"
EMAIL = "message/rfc822"
OFFICE = "application/vnd.openxmlformats-officedocument."
_DOCX = f"{OFFICE}wordprocessingml.document"
_XLSX = f"{OFFICE}spreadsheetml.sheet"
_PPTX = f"{OFFICE}presentationml.presentation"

Signature = tuple[tuple[int, bytes], ...]
"""Bytes at offsets; all of them must be there."""

_SIGNATURES: tuple[tuple[Signature, str], ...] = (
    (((0, b"\x89PNG\r\n\x1a\n"),), "image/png"),
    (((0, b"\xff\xd8\xff"),), "image/jpeg"),
    (((0, b"GIF87a"),), "image/gif"),
    (((0, b"GIF89a"),), "image/gif"),
    (((0, b"RIFF"), (8, b"WEBP")), "image/webp"),
    (((0, b"BM"), (6, b"\0\0\0\0")), "image/bmp"),
    (((0, b"II*\0"),), "image/tiff"),
    (((0, b"MM\0*"),), "image/tiff"),
    (((4, b"ftypavif"),), "image/avif"),
    (((0, b"\0\0\1\0"),), "image/x-icon"),
    (((0, b"RIFF"), (8, b"WAVE")), "audio/wav"),
    (((0, b"ID3"),), "audio/mpeg"),
    (((0, b"fLaC"),), "audio/flac"),
    (((0, b"OggS"),), "audio/ogg"),
    (((4, b"ftypM4A"),), "audio/mp4"),
    (((0, b"\xff\xfb"),), "audio/mpeg"),
    (((0, b"\xff\xf3"),), "audio/mpeg"),
    (((0, b"\xff\xf1"),), "audio/aac"),
    (((0, b"%PDF-"),), PDF),
    (((0, b"PK\x03\x04"),), ZIP),
    (((0, b"\x1f\x8b"),), "application/gzip"),
    (((4, b"ftyp"),), "video/mp4"),
)
_MORE_SIGNATURES = (
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/x-mach-binary"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\x1a\x45\xdf\xa3", "video/x-matroska"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"\0\1\0\0\0", "font/ttf"),
    (0, b"OTTO", "font/otf"),
    (0, b"%!PS", "application/postscript"),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"!<arch>\ndebian", "application/vnd.debian.binary-package"),
    (0, b"\xed\xab\xee\xdb", "application/x-rpm"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypqt", "video/quicktime"),
    (8, b"AVI LIST", "video/x-msvideo"),
)
"""Types that are sorted and never shown: a server that inlined them as images could not decode them."""

_FIRST_BYTES = frozenset(
    {mark[0] for signature, _ in _SIGNATURES for at, mark in signature if at == 0}
    | {mark[0] for at, mark, _ in _MORE_SIGNATURES if at == 0}
)
_OFFICE_PARTS = ((b"word/", _DOCX), (b"xl/", _XLSX), (b"ppt/", _PPTX))
_OFFICE_CONTENTS = b"[Content_Types].xml"
_OFFICE_SUFFIXES = {
    ".docx": _DOCX, ".docm": _DOCX, ".xlsx": _XLSX, ".xlsm": _XLSX, ".pptx": _PPTX, ".pptm": _PPTX,
}  # fmt: skip
_SUFFIXES = {
    ".svg": "image/svg+xml", ".docx": _DOCX, ".xlsx": _XLSX, ".pptx": _PPTX, ".json": "application/json",
    ".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".html": HTML,
}  # fmt: skip
_TEXT_SUFFIXES = {
    ".html": HTML, ".htm": HTML, ".xhtml": HTML, ".eml": EMAIL, ".md": "text/markdown", ".csv": "text/csv",
    ".json": "application/json", ".xml": "application/xml", ".svg": "image/svg+xml", ".ics": "text/calendar",
    ".vcf": "text/vcard", ".tex": "application/x-tex", ".py": "text/x-python", ".js": "text/javascript",
}  # fmt: skip
_PDF_MARK = b"%PDF-"
_PDF_MARK_WITHIN = 1024
_WEB_PAGE_SUFFIXES = (".html", ".htm", ".xhtml")
_WEB_PAGE_STARTS = (b"<!doctype html", b"<html")
_HTML_STARTS = ("<!doctype html", "<html", "<head", "<body")
_MAIL_HEADERS = frozenset(
    {"received", "return-path", "delivered-to", "message-id", "from", "to", "subject", "date", "mime-version", "x-mailer"}
)  # fmt: skip


def media_type(first: bytes, suffix: str) -> str:
    """Return the media type under which a file is handed to a client; `suffix` has its dot."""
    by_suffix = _SUFFIXES.get(suffix.lower())
    for signature, kind in _SIGNATURES:
        if all(first[at : at + len(mark)] == mark for at, mark in signature):
            return by_suffix if by_suffix and kind == ZIP else kind
    return by_suffix or BINARY


def text_media_type(suffix: str) -> str:
    """Return the media type of a file that is known to be text; `suffix` has its dot."""
    return _SUFFIXES.get(suffix.lower(), "text/plain")


def document_format(first: bytes, name: str) -> Literal["pdf", "office"] | None:
    """Return which document reader takes a file, None when none does; a suffix alone decides nothing."""
    if first.startswith(_PDF_MARK) or (_PDF_MARK in first[:_PDF_MARK_WITHIN] and name.lower().endswith(".pdf")):
        return "pdf"
    if first.startswith(b"PK\x03\x04"):
        has_suffix = name.lower().endswith(tuple(_OFFICE_SUFFIXES))
        has_parts = _OFFICE_CONTENTS in first or any(part in first for part, _ in _OFFICE_PARTS)
        return "office" if has_suffix or has_parts else None
    return None


def is_web_page(first: bytes, name: str) -> bool:
    """Return whether a file's text must be taken out of HTML markup."""
    return name.lower().endswith(_WEB_PAGE_SUFFIXES) or first.lstrip()[:16].lower().startswith(_WEB_PAGE_STARTS)


def content_type(head: bytes, suffix: str) -> tuple[str, Encoding | None]:
    """Return a file's media type for sorting and, when its bytes are text, their encoding; `suffix` has its dot."""
    if not head:
        return "inode/x-empty", None
    if head.startswith(b"PK\x03\x04"):
        return _zip_content_type(head, suffix), None
    by_signature = _type_by_signature(head)
    if by_signature != BINARY:
        return by_signature, None
    if suffix == ".pdf" and _PDF_MARK in head[:_PDF_MARK_WITHIN]:
        return PDF, None
    encoding = detect_encoding(head, complete=False)
    return (BINARY, None) if encoding is None else (_text_content_type(head, suffix, encoding), encoding)


def binary_type(head: bytes, name: str) -> str:
    """Return the media type of a file whose bytes are no text, by its beginning and its name; empty for text."""
    stem, dot, suffix = name.rpartition(".")
    kind, encoding = content_type(head, f"{dot}{suffix}".lower() if stem else "")
    return kind if head and encoding is None else ""


def _type_by_signature(head: bytes) -> str:
    # Most files are text, which the first byte shows: the tables are not searched for them.
    if head[0] not in _FIRST_BYTES and head[4:8] != b"ftyp" and head[257:262] != b"ustar":
        return BINARY
    for at, mark, kind in _MORE_SIGNATURES:
        if head[at : at + len(mark)] == mark:
            return kind
    return media_type(head, "")


def _zip_content_type(head: bytes, suffix: str) -> str:
    if head[30:38] == b"mimetype":  # OpenDocument and EPUB begin with an uncompressed entry that names their type
        length = int.from_bytes(head[18:22], "little")
        declared = head[38 : 38 + min(length, 100)]
        if declared.startswith(b"application/") and declared.isascii():
            return declared.decode().strip()
    for part, kind in _OFFICE_PARTS:
        if _OFFICE_CONTENTS in head and part in head:
            return kind
    return _OFFICE_SUFFIXES.get(suffix, EPUB if suffix == ".epub" else ZIP)


def _text_content_type(head: bytes, suffix: str, encoding: Encoding) -> str:
    start = str(head[len(encoding.bom) : 1024], encoding.codec, "replace").lstrip().lower()
    if start.startswith(_HTML_STARTS):
        return HTML
    if suffix == ".eml" or _is_mail(start):
        return EMAIL
    return _TEXT_SUFFIXES.get(suffix, "text/plain")


def _is_mail(start: str) -> bool:
    """Return whether a text begins with three header lines that only a message begins with."""
    lines = [line for line in start.splitlines()[:12] if line and line[0] not in " \t"]
    names = [name for name, colon, _ in (line.partition(":") for line in lines[:6]) if colon]
    return len(_MAIL_HEADERS.intersection(names)) >= 3
