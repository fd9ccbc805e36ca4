"""Images scaled and upright, sound, bytes; hostile pictures stay in their child."""

import io
import os
import time
from pathlib import Path

import pytest
from PIL import Image

from holdfast.errors import InvalidArgument, IsDirectory, PayloadTooLarge
from holdfast.folders.children.media import MAX_INLINE_BYTES, MediaFile, read_media
from holdfast.text.media_types import media_type
from tests.helpers import documents
from tests.helpers.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    return Reader(tmp_path / "root", tmp_path / "state")


def media(reader: Reader, name: str, content: bytes) -> MediaFile:
    reader.write(name, content)
    return read_media(reader.call, reader.jail, name, reader.settings)


def opened(found: MediaFile) -> Image.Image:
    return Image.open(io.BytesIO(found.data))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_small_picture_is_sent_as_it_is(reader: Reader, form: str) -> None:
    content = documents.picture(40, 20, form)
    found = media(reader, "a", content)
    assert (found.kind, found.data, found.mime_type) == ("image", content, f"image/{form.lower()}")


@pytest.mark.parametrize(
    ("form", "sent_as"),
    [("PNG", "PNG"), ("JPEG", "JPEG"), ("WEBP", "WEBP"), ("GIF", "PNG"), ("BMP", "PNG"), ("TIFF", "PNG")],
)
def test_a_big_picture_is_scaled_to_the_limit(reader: Reader, form: str, sent_as: str) -> None:
    found = media(reader, "a", documents.picture(4000, 1000, form))
    image = opened(found)
    assert image.format == sent_as
    assert image.size == (1568, 392)
    assert found.mime_type == f"image/{sent_as.lower()}"
    assert "4000 x 1000" in found.note


def test_a_picture_taken_sideways_is_turned_upright(reader: Reader) -> None:
    found = media(reader, "a.jpg", documents.picture(64, 32, "JPEG", orientation=6))
    image = opened(found).convert("RGB")
    red, _, blue = image.getpixel((16, 2))  # type: ignore[misc]
    assert image.size == (32, 64)
    assert red > 200 > blue


def test_a_bomb_of_pixels_is_refused_quickly(reader: Reader) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidArgument, match="pixels"):
        media(reader, "a.png", documents.pixel_bomb())
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "content", [documents.picture(300, 300)[:200], b"\x89PNG\r\n\x1a\n" + b"\x00" * 100, b"\xff\xd8\xff\x00"]
)
def test_a_broken_picture_is_a_clear_error(reader: Reader, content: bytes) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read as an image"):
        media(reader, "a.png", content)


def test_a_picture_of_noise_is_sent_in_few_bytes(reader: Reader) -> None:
    noise = Image.frombytes("RGB", (1600, 1600), os.urandom(1600 * 1600 * 3))
    out = io.BytesIO()
    noise.save(out, "PNG")
    found = media(reader, "a.png", out.getvalue())
    assert found.mime_type == "image/webp"
    assert len(found.data) < 4_000_000


def test_sound_is_sent_as_sound(reader: Reader) -> None:
    content = b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 30
    found = media(reader, "a.wav", content)
    assert (found.kind, found.data, found.mime_type) == ("audio", content, "audio/wav")


def test_anything_else_is_bytes_with_an_address(reader: Reader) -> None:
    found = media(reader, "a b.bin", b"\0\1\2")
    assert (found.kind, found.data, found.mime_type) == ("blob", b"\0\1\2", "application/octet-stream")
    assert found.uri == f"file://{reader.root}/a%20b.bin"


def test_a_suffix_does_not_make_a_picture(reader: Reader) -> None:
    assert media(reader, "a.png", b"just words").kind == "blob"


def test_a_document_keeps_its_own_type() -> None:
    assert media_type(documents.word(), ".docx").endswith("wordprocessingml.document")
    assert media_type(b"PK\x03\x04", ".zip") == "application/zip"


def test_bytes_over_the_limit_are_refused_unread(reader: Reader) -> None:
    os.truncate(reader.write("big", b""), MAX_INLINE_BYTES + 1)
    os.truncate(reader.write("huge", b""), 30 << 30)
    for name in ("big", "huge"):
        with pytest.raises(PayloadTooLarge):
            read_media(reader.call, reader.jail, name, reader.settings)


def test_a_directory_is_no_media(reader: Reader) -> None:
    with pytest.raises(IsDirectory):
        read_media(reader.call, reader.jail, ".", reader.settings)
