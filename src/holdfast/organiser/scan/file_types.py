"""Pure: what a file is, by its first bytes, with the suffix as the second witness."""

from holdfast.text.decode import Encoding, sniff
from holdfast.text.media_types import FIRST_BYTES, mime_type

BINARY = "application/octet-stream"
PDF = "application/pdf"
ZIP = "application/zip"
EPUB = "application/epub+zip"
HTML = "text/html"
EMAIL = "message/rfc822"

_OFFICE = "application/vnd.openxmlformats-officedocument."
_IN_ZIP = (
    (b"word/", f"{_OFFICE}wordprocessingml.document"),
    (b"xl/", f"{_OFFICE}spreadsheetml.sheet"),
    (b"ppt/", f"{_OFFICE}presentationml.presentation"),
)
_OFFICE_SUFFIXES = {
    "docx": _IN_ZIP[0][1], "docm": _IN_ZIP[0][1], "xlsx": _IN_ZIP[1][1], "xlsm": _IN_ZIP[1][1],
    "pptx": _IN_ZIP[2][1], "pptm": _IN_ZIP[2][1],
}  # fmt: skip
_MARKS = (
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
_FIRST_BYTES = FIRST_BYTES | {mark[0] for at, mark, _ in _MARKS if at == 0}
_PAGE_STARTS = ("<!doctype html", "<html", "<head", "<body")
_MAIL_HEADERS = frozenset(
    {"received", "return-path", "delivered-to", "message-id", "from", "to", "subject", "date", "mime-version", "x-mailer"}
)  # fmt: skip
_TEXT_BY_SUFFIX = {
    "html": HTML, "htm": HTML, "xhtml": HTML, "eml": EMAIL, "md": "text/markdown", "csv": "text/csv",
    "json": "application/json", "xml": "application/xml", "svg": "image/svg+xml", "ics": "text/calendar",
    "vcf": "text/vcard", "tex": "application/x-tex", "py": "text/x-python", "js": "text/javascript",
}  # fmt: skip


def content_type(head: bytes, suffix: str) -> tuple[str, Encoding | None]:
    """Return a file's media type and, when its bytes are text, how they are encoded; `suffix` is without its dot.

    A suffix never makes a document, a picture or an archive of bytes that are none.
    """
    if not head:
        return "inode/x-empty", None
    if head.startswith(b"PK\x03\x04"):
        return _in_zip(head, suffix), None
    marked = _marked(head)
    if marked != BINARY:
        return marked, None
    if suffix == "pdf" and b"%PDF-" in head[:1024]:
        return PDF, None
    encoding = sniff(head, complete=False)
    return (BINARY, None) if encoding is None else (_text_type(head, suffix, encoding), encoding)


def _marked(head: bytes) -> str:
    """Return the type that is told by marks at known places; most files are text, which the first byte shows."""
    if head[0] not in _FIRST_BYTES and head[4:8] != b"ftyp" and head[257:262] != b"ustar":
        return BINARY
    for at, mark, kind in _MARKS:
        if head[at : at + len(mark)] == mark:
            return kind
    return mime_type(head, "")


def _in_zip(head: bytes, suffix: str) -> str:
    if head[30:38] == b"mimetype":
        length = int.from_bytes(head[18:22], "little")
        named = head[38 : 38 + min(length, 100)]
        if named.startswith(b"application/") and named.isascii():
            return named.decode().strip()
    for mark, kind in _IN_ZIP:
        if b"[Content_Types].xml" in head and mark in head:
            return kind
    return _OFFICE_SUFFIXES.get(suffix, EPUB if suffix == "epub" else ZIP)


def _text_type(head: bytes, suffix: str, encoding: Encoding) -> str:
    start = str(head[len(encoding.bom) : 1024], encoding.codec, "replace").lstrip().lower()
    if start.startswith(_PAGE_STARTS):
        return HTML
    if suffix == "eml" or _is_mail(start):
        return EMAIL
    return _TEXT_BY_SUFFIX.get(suffix, "text/plain")


def _is_mail(start: str) -> bool:
    """Return whether a text begins with three lines that only a message begins with."""
    lines = [line for line in start.splitlines()[:12] if line and line[0] not in " \t"]
    names = [name for name, colon, _ in (line.partition(":") for line in lines[:6]) if colon]
    return len(_MAIL_HEADERS.intersection(names)) >= 3
