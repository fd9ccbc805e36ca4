"""Readers of the extraction child for what is no office document: web pages, messages, books, archives, pictures."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from holdfast.folders.children.serve import ChildRefusal
from holdfast.text.decode import decode, detect_encoding

_MAX_MARKUP_BYTES = 4_000_000
_MAX_LISTED = 1_000
_BLOCKS = frozenset("p div br li tr h1 h2 h3 h4 h5 h6 title td th section article header footer blockquote pre".split())
_SILENT = frozenset({"script", "style", "template", "noscript", "svg"})
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")
_PICTURES = ("JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "AVIF", "ICO")
_EXIF = {0x010F: "Camera maker", 0x0110: "Camera", 0x010E: "Description", 0x013B: "Artist", 0x0131: "Software"}
_EXIF_TAKEN = 0x9003
_EXIF_INNER = 0x8769
_EXIF_PLACE = 0x8825
_TEXT_CHUNKS = ("Title", "Description", "Comment", "Author", "Software", "comment")


def html(file: BinaryIO) -> Iterator[str]:
    """Give the words of a web page, without scripts and styles."""
    yield page_text(file.read(_MAX_MARKUP_BYTES))


def mail(file: BinaryIO) -> Iterator[str]:
    """Give a message's sender, receiver, subject and date, its text, and the names of what is attached."""
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
    """Give a book's title and authors, then its chapters in reading order."""
    with zipfile.ZipFile(file) as packed:
        container = _member(packed, "META-INF/container.xml")
        found = re.search(r'full-path="([^"]+)"', container)
        package = _member(packed, found[1]) if found else ""
        for tag in ("title", "creator", "subject", "description"):
            for text in re.findall(rf"<dc:{tag}\b[^<>]*>([^<]*)<", package):
                yield f"{tag.capitalize()}: {text.strip()}"
        for name in _chapters(package, posixpath.dirname(found[1]) if found else "", packed.namelist()):
            yield page_text(_member(packed, name).encode())


def archive(file: BinaryIO) -> Iterator[str]:
    """Give the names in an archive; nothing is unpacked."""
    with zipfile.ZipFile(file) as packed:
        entries = packed.infolist()
        yield f"Archive of {len(entries)} entries, {sum(entry.file_size for entry in entries)} bytes unpacked"
        for entry in entries[:_MAX_LISTED]:
            yield entry.filename


def picture(file: BinaryIO) -> Iterator[str]:
    """Give a picture's size and what its camera or editor wrote into it; no pixel is decoded."""
    from PIL import Image

    Image.init()
    with Image.open(file, formats=[name for name in _PICTURES if name in Image.OPEN]) as image:
        yield f"Picture of {image.width} x {image.height} pixels, {image.format}"
        exif = image.getexif()
        inner = exif.get_ifd(_EXIF_INNER)
        for tag, label in _EXIF.items():
            if exif.get(tag):
                yield f"{label}: {_line(exif[tag])}"
        if inner.get(_EXIF_TAKEN):
            yield f"Taken: {_line(inner[_EXIF_TAKEN])}"
        if exif.get_ifd(_EXIF_PLACE):
            yield "The place is recorded."
        for name in _TEXT_CHUNKS:
            if isinstance(image.info.get(name), (str, bytes)):
                yield f"{name.capitalize()}: {_line(image.info[name])}"


def page_text(data: bytes) -> str:
    """Return the words of markup, a line for each block."""
    from html.parser import HTMLParser

    encoding = detect_encoding(data)
    if encoding is None:
        raise ChildRefusal("its bytes are no text")
    pieces: list[str] = []
    silent: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  the parser names it
            if tag in _SILENT:
                silent.append(tag)
            elif tag in _BLOCKS:
                pieces.append("\n")

        def handle_endtag(self, tag: str) -> None:
            if silent and tag == silent[-1]:
                silent.pop()
            elif tag in _BLOCKS:
                pieces.append("\n")

        def handle_data(self, data: str) -> None:
            if not silent:
                pieces.append(data)

    parser = Parser()
    parser.feed(decode(data, encoding, errors="replace"))
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _chapters(package: str, folder: str, names: list[str]) -> list[str]:
    items = {}
    for item in re.findall(r"<item\b[^<>]*>", package):
        key, place = re.search(r'\bid="([^"]+)"', item), re.search(r'\bhref="([^"]+)"', item)
        if key and place:
            items[key[1]] = posixpath.normpath(posixpath.join(folder, place[1]))
    spine = [items.get(key, "") for key in re.findall(r'<itemref\b[^<>]*\bidref="([^"]+)"', package)]
    known = set(names)
    ordered = [name for name in spine if name in known]
    return ordered or sorted(name for name in names if name.endswith((".xhtml", ".html", ".htm")))


def _member(packed: zipfile.ZipFile, name: str) -> str:
    with packed.open(name) as part:
        return part.read(_MAX_MARKUP_BYTES).decode("utf-8", "replace")


def _line(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return " ".join(text.replace("\0", " ").split())[:500]
