"""Readers of the extraction child for web pages, mail, e-books, archives and images."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from holdfast.folders.children.serve import ChildRefusal
from holdfast.text.decode import decode, detect_encoding

_MAX_MARKUP_BYTES = 4_000_000
_MAX_ENTRIES = 1_000
_BLOCK_TAGS = frozenset(
    "p div br li tr h1 h2 h3 h4 h5 h6 title td th section article header footer blockquote pre".split()
)
_IGNORED_TAGS = frozenset({"script", "style", "template", "noscript", "svg"})
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")
_PICTURES = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "AVIF", "ICO")
_EXIF = {0x010F: "Camera maker", 0x0110: "Camera", 0x010E: "Description", 0x013B: "Artist", 0x0131: "Software"}
_EXIF_DATE = 0x9003
_EXIF_DETAILS = 0x8769
_EXIF_GPS = 0x8825
_TEXT_CHUNKS = ("Title", "Description", "Comment", "Author", "Software", "comment")


def html(file: BinaryIO) -> Iterator[str]:
    """Yield the text of a web page, without scripts and styles."""
    yield page_text(file.read(_MAX_MARKUP_BYTES))


def mail(file: BinaryIO) -> Iterator[str]:
    """Yield a message's sender, recipient, subject and date, its text, and the names of its attachments."""
    import email
    import email.policy
    from email.message import EmailMessage

    message = email.message_from_bytes(file.read(_MAX_MARKUP_BYTES), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    for name in ("From", "To", "Subject", "Date"):
        if message[name]:
            yield f"{name}: {message[name]}"
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = body.get_content()
        yield "\n" + (page_text(text.encode()) if body.get_content_subtype() == "html" else text)
    for part in message.iter_attachments():
        yield f"Attached: {part.get_filename() or part.get_content_type()}"


def book(file: BinaryIO) -> Iterator[str]:
    """Yield an e-book's title and authors, then its chapters in reading order."""
    with zipfile.ZipFile(file) as packed:
        container = _read_member(packed, "META-INF/container.xml")
        package_path = re.search(r'full-path="([^"]+)"', container)
        package = _read_member(packed, package_path[1]) if package_path else ""
        for tag in ("title", "creator", "subject", "description"):
            for text in re.findall(rf"<dc:{tag}\b[^<>]*>([^<]*)<", package):
                yield f"{tag.capitalize()}: {text.strip()}"
        for name in _chapters(package, posixpath.dirname(package_path[1]) if package_path else "", packed.namelist()):
            yield page_text(_read_member(packed, name).encode())


def archive(file: BinaryIO) -> Iterator[str]:
    """Yield the names in an archive; nothing is unpacked."""
    with zipfile.ZipFile(file) as packed:
        entries = packed.infolist()
        yield f"Archive of {len(entries)} entries, {sum(entry.file_size for entry in entries)} bytes unpacked"
        for entry in entries[:_MAX_ENTRIES]:
            yield entry.filename


def picture(file: BinaryIO) -> Iterator[str]:
    """Yield an image's size and the metadata of its camera or editor; no pixel is decoded."""
    from PIL import Image

    Image.init()
    with Image.open(file, formats=[name for name in _PICTURES if name in Image.OPEN]) as image:
        yield f"Picture of {image.width} x {image.height} pixels, {image.format}"
        exif = image.getexif()
        details = exif.get_ifd(_EXIF_DETAILS)
        for tag, label in _EXIF.items():
            if exif.get(tag):
                yield f"{label}: {_to_line(exif[tag])}"
        if details.get(_EXIF_DATE):
            yield f"Taken: {_to_line(details[_EXIF_DATE])}"
        if exif.get_ifd(_EXIF_GPS):
            yield "The place is recorded."
        for name in _TEXT_CHUNKS:
            if isinstance(image.info.get(name), (str, bytes)):
                yield f"{name.capitalize()}: {_to_line(image.info[name])}"


def page_text(data: bytes) -> str:
    """Return the text of HTML markup, a line for each block."""
    from html.parser import HTMLParser

    encoding = detect_encoding(data)
    if encoding is None:
        raise ChildRefusal("its bytes are no text")
    pieces: list[str] = []
    ignored: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  the parser names it
            if tag in _IGNORED_TAGS:
                ignored.append(tag)
            elif tag in _BLOCK_TAGS:
                pieces.append("\n")

        def handle_endtag(self, tag: str) -> None:
            if ignored and tag == ignored[-1]:
                ignored.pop()
            elif tag in _BLOCK_TAGS:
                pieces.append("\n")

        def handle_data(self, data: str) -> None:
            if not ignored:
                pieces.append(data)

    parser = Parser()
    parser.feed(decode(data, encoding, errors="replace"))
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _chapters(package: str, folder: str, names: list[str]) -> list[str]:
    items = {}
    for item in re.findall(r"<item\b[^<>]*>", package):
        key, href = re.search(r'\bid="([^"]+)"', item), re.search(r'\bhref="([^"]+)"', item)
        if key and href:
            items[key[1]] = posixpath.normpath(posixpath.join(folder, href[1]))
    spine = [items.get(key, "") for key in re.findall(r'<itemref\b[^<>]*\bidref="([^"]+)"', package)]
    existing = set(names)
    ordered = [name for name in spine if name in existing]
    return ordered or sorted(name for name in names if name.endswith((".xhtml", ".html", ".htm")))


def _read_member(packed: zipfile.ZipFile, name: str) -> str:
    with packed.open(name) as part:
        return part.read(_MAX_MARKUP_BYTES).decode("utf-8", "replace")


def _to_line(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return " ".join(text.replace("\0", " ").split())[:500]
