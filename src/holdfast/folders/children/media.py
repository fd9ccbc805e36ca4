"""Reads a file as media: images scaled to a size for models, audio unchanged, anything else as bytes."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.errors import InvalidArgument, PayloadTooLarge
from holdfast.folders.access.jail import Jail, OpenFile
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.children.request import ChildRequest, ask_child
from holdfast.text.media_types import media_type

MAX_INLINE_BYTES = 10_000_000
MAX_IMAGE_PIXELS = 100_000_000
_MAX_UNCHANGED_BYTES = 4_000_000
_MEMORY_BYTES = 2 << 30
_SECONDS = 30.0
_FIRST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class MediaFile:
    """The bytes to send, their media type, and a note when an image was scaled."""

    kind: Literal["image", "audio", "blob"]
    data: bytes
    mime_type: str
    uri: str
    note: str = ""


def read_media(call: Call, jail: Jail, path: str, settings: FolderSettings) -> MediaFile:
    """Return a file as media. PayloadTooLarge over the limit, InvalidArgument for an image that cannot be decoded."""
    with jail.open_file(path) as file:
        _check_size(file, settings.max_document_bytes)
        uri = "file://" + quote(jail.absolute(path))
        mime = media_type(read_fully(file.fd, 0, _FIRST_BYTES), PurePosixPath(path).suffix)
        if mime.startswith("image/") and mime != "image/svg+xml":
            return _read_image(call, file, mime, uri, settings.image_max_pixels)
        _check_size(file, MAX_INLINE_BYTES)
        data = read_fully(file.fd, 0, file.status.st_size)
        return MediaFile("audio" if mime.startswith("audio/") else "blob", data, mime, uri)


def _check_size(file: OpenFile, limit: int) -> None:
    if file.status.st_size > limit:
        raise PayloadTooLarge(f"{file.display_path} has {file.status.st_size} bytes; the limit is {limit}.")


def _read_image(call: Call, file: OpenFile, mime: str, uri: str, max_side: int) -> MediaFile:
    request = {
        "max_side": max_side,
        "max_pixels": MAX_IMAGE_PIXELS,
        "max_unchanged_bytes": _MAX_UNCHANGED_BYTES,
        "size": file.status.st_size,
    }
    child_request = ChildRequest(
        "holdfast.folders.children.media_child",
        request,
        f"The image {file.display_path}",
        _SECONDS,
        _MEMORY_BYTES,
        MAX_INLINE_BYTES,
    )
    reply = ask_child(call, child_request, file.fd)
    if "error" in reply.header:
        raise InvalidArgument(f"{file.display_path} cannot be read as an image: {reply.header['error']}.")
    note = reply.header.get("note", "")
    if reply.header.get("unchanged"):
        return MediaFile("image", read_fully(file.fd, 0, file.status.st_size), reply.header["mime_type"], uri, note)
    return MediaFile("image", reply.payload, reply.header["mime_type"], uri, note)
