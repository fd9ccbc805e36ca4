"""Pure: detects the encoding of a file, decodes and encodes its text, checks round trips, and replaces lone surrogates."""

import codecs
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidArgument
from holdfast.text.decode_legacy import guess_legacy_encoding

SAMPLE_BYTES = 1 << 16

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_MAX_CONTROL_SHARE = 0.01


def is_continuation_byte(byte: int) -> bool:
    """Return whether a byte of UTF-8 continues a character."""
    return byte & 0xC0 == 0x80


@dataclass(frozen=True, slots=True)
class Encoding:
    """A file's encoding: the Python codec, the byte order mark if there is one, the bytes of a code unit."""

    codec: str
    bom: bytes = b""
    unit_bytes: int = 1

    @property
    def name(self) -> str:
        """Return the name for callers."""
        name = _DISPLAY_NAMES.get(self.codec, self.codec)
        return f"{name} with BOM" if self.bom else name

    @property
    def is_plain_utf8(self) -> bool:
        """Return whether this is UTF-8 without a byte order mark."""
        return self.codec == "utf-8" and not self.bom

    @property
    def newline(self) -> bytes:
        """Return the bytes of a line feed."""
        return "\n".encode(self.codec)


UTF8 = Encoding("utf-8")

_DISPLAY_NAMES = {"cp1252": "windows-1252", "cp1251": "windows-1251", "cp1250": "windows-1250"}
_WITH_BOM = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE, 4),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE, 4),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE, 2),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE, 2),
)


def binary_file_error() -> InvalidArgument:
    """Return the error for a binary file."""
    return InvalidArgument("Binary file. Use read_media_file.")


def detect_encoding(data: bytes, *, complete: bool = True) -> Encoding | None:
    """Return the encoding of a file from its bytes, None when they are not text.

    `complete` means that the data is the whole file; otherwise it may end inside a character.
    UTF-8 is checked over all the data, a legacy encoding over a sample that begins where ASCII ends.
    """
    for encoding in _WITH_BOM:
        if data.startswith(encoding.bom):
            return encoding if _decodes(data, encoding, complete) else None
    if b"\0" in data:
        return None
    if _decodes(data, UTF8, complete):
        return UTF8
    return _detect_legacy(data)


def decode(data: bytes, encoding: Encoding, *, errors: str = "strict") -> str:
    """Return the text without its byte order mark. UnicodeDecodeError when the bytes are not in that encoding."""
    return str(data.removeprefix(encoding.bom) if encoding.bom else data, encoding.codec, errors)


def encode(text: str, encoding: Encoding) -> bytes:
    """Return the bytes of a text with its byte order mark. UnicodeEncodeError when the encoding lacks a character."""
    return encoding.bom + text.encode(encoding.codec)


def round_trips(data: bytes, encoding: Encoding) -> bool:
    """Return whether decoding and encoding gives the same bytes, so that an edit changes no other byte."""
    try:
        return encode(decode(data, encoding), encoding) == data
    except UnicodeError:
        return False


def _decodes(data: bytes, encoding: Encoding, complete: bool) -> bool:
    try:
        codecs.getincrementaldecoder(encoding.codec)().decode(data, complete)
    except UnicodeDecodeError:
        return False
    return True


def _detect_legacy(data: bytes) -> Encoding | None:
    sample = _sample_from_first_high_byte(data)
    if len(sample) - len(sample.translate(None, _CONTROLS)) > _MAX_CONTROL_SHARE * len(sample):
        return None
    codec = guess_legacy_encoding(sample)
    return Encoding(codec) if codec else None


def _sample_from_first_high_byte(data: bytes) -> bytes:
    """Return at most SAMPLE_BYTES from the line in which ASCII ends to the end of a line."""
    ascii_bytes = len(data) - len(data.lstrip(bytes(range(128))))
    start = data.rfind(b"\n", 0, ascii_bytes) + 1
    end = min(len(data), start + SAMPLE_BYTES)
    line_end = data.rfind(b"\n", start, end) + 1
    return data[start : line_end if line_end > ascii_bytes else end]


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text cannot be encoded as UTF-8. Python holds a surrogate pair as one character, so any counts."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def replace_lone_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, such as one that stands for a byte of a name that is not UTF-8.

    Two surrogates that make a pair become the character that they encode.
    """
    if not has_lone_surrogate(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_in_data(value: Any) -> Any:
    """Return a JSON value with the lone surrogates of every text in it replaced, keys included."""
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, dict):
        return {replace_in_data(key): replace_in_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_in_data(item) for item in value]
    return value
