"""Pure: edits a file's bytes as text in their own encoding, without changing a byte outside the edits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.errors import EditRejected
from holdfast.text.decode import UTF8, Encoding, decode, detect_encoding, encode, round_trips
from holdfast.text.edit import Edit, EditLimits, apply_edits


@dataclass(frozen=True, slots=True)
class EditResult:
    """The text before and after, and the bytes to store."""

    before: str
    after: str
    data: bytes


def edit_bytes(
    data: bytes | None,
    edits: Sequence[Edit],
    limits: EditLimits,
    check: Callable[[], None] = lambda: None,
    encoding: Encoding | None = None,
) -> EditResult:
    """Apply edits to a file's bytes; None stands for a missing file, which becomes UTF-8. `check` may raise to stop.

    `encoding` is that of the file where it is known; otherwise it is detected.
    Raises EditRejected when the edits do not fit, when the file is binary, when its encoding cannot be given back
    byte for byte, or when the encoding lacks a character of the new text.
    """
    if data is None:
        after = apply_edits(None, edits, limits, check)
        return EditResult("", after, encode_text(after, UTF8))
    encoding = encoding or _detect_editable_encoding(data)
    before = decode(data, encoding)
    after = apply_edits(before, edits, limits, check)
    return EditResult(before, after, encode_text(after, encoding))


def encode_text(text: str, encoding: Encoding) -> bytes:
    """Return the bytes of a text. EditRejected when the encoding cannot represent it exactly."""
    try:
        data = encode(text, encoding)
    except UnicodeEncodeError as error:
        raise EditRejected(
            "validation_error",
            f"The file is in {encoding.name}, which has no U+{ord(text[error.start]):04X}.",
            "Use characters of the file's encoding, or rewrite the whole file as UTF-8 with write_file.",
        ) from None
    if not encoding.codec.startswith("utf-") and decode(data, encoding) != text:
        raise _not_exact_error(encoding)
    return data


def _detect_editable_encoding(data: bytes) -> Encoding:
    encoding = detect_encoding(data)
    if encoding is None:
        raise EditRejected(
            "validation_error",
            "The file is binary: it holds no text that could be edited.",
            "Edit text files only; a binary file can be replaced by a program that knows its format.",
        )
    if not encoding.codec.startswith("utf-") and not round_trips(data, encoding):
        raise _not_exact_error(encoding)
    return encoding


def _not_exact_error(encoding: Encoding) -> EditRejected:
    return EditRejected(
        "validation_error",
        f"The file looks like {encoding.name}, but that encoding would not give back its exact bytes.",
        "Convert the file to UTF-8 first; an edit would change bytes outside of it.",
    )
