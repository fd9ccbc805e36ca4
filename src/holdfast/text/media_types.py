"""Pure: what kind of file the first bytes tell of, with the suffix as the second witness."""

Marks = tuple[tuple[int, bytes], ...]

_MAGIC: tuple[tuple[Marks, str], ...] = (
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
    (((0, b"%PDF-"),), "application/pdf"),
    (((0, b"PK\x03\x04"),), "application/zip"),
    (((0, b"\x1f\x8b"),), "application/gzip"),
    (((4, b"ftyp"),), "video/mp4"),
)
_SUFFIXES = {
    ".svg": "image/svg+xml",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".json": "application/json",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".html": "text/html",
}
_NAMED_MORE_EXACTLY = {"application/zip"}
FIRST_BYTES = frozenset(mark[0] for marks, _ in _MAGIC for at, mark in marks if at == 0)
"""A file that begins with another byte, and is no MP4 or AVIF, is known by its suffix alone."""


def mime_type(first: bytes, suffix: str) -> str:
    """Return the media type of a file. A suffix never makes an image or a sound of bytes that are none."""
    by_suffix = _SUFFIXES.get(suffix.lower())
    for marks, mime in _MAGIC:
        if all(first[at : at + len(mark)] == mark for at, mark in marks):
            return by_suffix if by_suffix and mime in _NAMED_MORE_EXACTLY else mime
    return by_suffix or "application/octet-stream"


def text_type(suffix: str) -> str:
    """Return the media type of a file that is known to be text."""
    return _SUFFIXES.get(suffix.lower(), "text/plain")
