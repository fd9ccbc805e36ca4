"""Pure: the edit engine: literal replacements in a file's bytes or text, in order, all or nothing.

It never guesses. A text that is not found, or found more often than expected, is an error with the number of matches;
similar lines are suggested and never changed.
Bytes are edited as text in their own encoding, and no byte outside the edits changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.errors import EditRejected
from holdfast.text.budget import estimate_tokens
from holdfast.text.decode import UTF8, Encoding, decode, detect_encoding, encode, round_trips
from holdfast.text.diff import common_prefix
from holdfast.text.display import shorten
from holdfast.text.edit_match import LfView, Suggestion, find_matches, find_similar, find_typographic_match, to_lf

OVERWRITE = "OVERWRITE_FILE"
APPEND = "APPEND_TO_FILE"
MAX_SHOWN_LINES = 5_000
_REPEAT_HINT_CHARS = 12


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new`, `count` times; `old` may be OVERWRITE_FILE or APPEND_TO_FILE."""

    old: str
    new: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class EditLimits:
    """The longest text to match, and how many tokens of the file an error may show."""

    max_match_chars: int = 200_000
    max_answer_tokens: int = 25_000


def apply_edits(
    text: str | None, edits: Sequence[Edit], limits: EditLimits, check: Callable[[], None] = lambda: None
) -> str:
    """Return the text after all edits, each applied to the result of the one before; None stands for a missing file.

    `check` is called before each edit and may raise: many edits of a large file take long.

    Raises EditRejected with the index of the edit that failed; then none of them is applied. Line ends of the text are
    kept as they are: a line feed in a match also matches CRLF, and inserted lines end as the file's lines do.
    """
    if not edits:
        raise EditRejected("validation_error", "There is no edit.", "Give at least one edit.")
    running = text
    for index, edit in enumerate(edits):
        check()
        try:
            running = _apply(running, edit, limits)
        except EditRejected as error:
            raise _locate_error(error, index, edits, running, limits) from None
    if running == text or running is None:
        raise EditRejected(
            "validation_error",
            "The edits leave the file as it is.",
            "Check whether one edit undoes another.",
        )
    return running


def _apply(text: str | None, edit: Edit, limits: EditLimits) -> str:
    _check(edit, limits)
    if text is None:
        return _create(edit)
    if edit.old == OVERWRITE:
        return _with_newlines_of(text, edit.new)
    if edit.old == APPEND:
        return text + _with_newlines_of(text, edit.new)
    if not edit.old.strip():
        return _fill_empty(text, edit)
    return _replace(text, edit)


def _check(edit: Edit, limits: EditLimits) -> None:
    if edit.old == edit.new:
        raise EditRejected(
            "validation_error",
            "The text to match and its replacement are the same: nothing would change.",
            "Give a replacement that differs.",
        )
    if len(edit.old) > limits.max_match_chars:
        raise EditRejected(
            "validation_error",
            f"The text to match has {len(edit.old)} characters; the limit is {limits.max_match_chars}.",
            f"Match a shorter, unique part, or replace the whole file with {OVERWRITE} as the match.",
        )
    if edit.count < 1:
        raise EditRejected(
            "validation_error",
            f"expected_replacements must be at least 1: {edit.count}",
            "Give the number of occurrences to replace.",
        )


def _create(edit: Edit) -> str:
    if edit.old.strip():
        raise EditRejected(
            "file_not_found",
            "The file does not exist.",
            "To create it, give an empty text to match; otherwise check the path.",
        )
    return edit.new


def _fill_empty(text: str, edit: Edit) -> str:
    if not text and not edit.old:
        return edit.new
    error_type = "validation_error" if edit.old else "file_exists"
    raise EditRejected(
        error_type,
        "The text to match is blank, and the file has content." if text else "The text to match is blank.",
        f"Match a unique piece of the file; to replace the whole file give {OVERWRITE} as the match, "
        f"to add at its end {APPEND}.",
    )


def _replace(text: str, edit: Edit) -> str:
    view = LfView(text)
    old, new = to_lf(edit.old), to_lf(edit.new)
    if old == new:
        raise EditRejected(
            "validation_error",
            "The text to match and its replacement differ only in line ends, which an edit keeps as the file has them.",
            f"To change line ends, replace the whole file with {OVERWRITE} as the match, or use write_file.",
        )
    count, offsets = find_matches(view.text, old, edit.count)
    if count == 0 and edit.count == 1:
        offset = find_typographic_match(view.text, old)
        count, offsets = (0, []) if offset is None else (1, [offset])
    if count == 0:
        raise _no_match_error(view, old, new)
    if count != edit.count or not offsets:
        raise _wrong_count_error(count, edit.count)
    return _splice(view, offsets, old, new)


def _splice(view: LfView, offsets: Sequence[int], old: str, new: str) -> str:
    """Replace only where old and new differ, so that what they share keeps the file's own characters."""
    head = common_prefix(old, new)
    tail = common_prefix(old[head:][::-1], new[head:][::-1])
    inserted = _with_newlines_of(view.raw, new[head : len(new) - tail])
    pieces: list[str] = []
    at = 0
    for offset in offsets:
        pieces.append(view.raw[at : view.to_raw(offset + head)])
        pieces.append(inserted)
        at = view.to_raw(offset + len(old) - tail)
    pieces.append(view.raw[at:])
    return "".join(pieces)


def _with_newlines_of(text: str, inserted: str) -> str:
    """Return the inserted text with the line ends that most lines of the text have."""
    feeds = text.count("\n")
    if not feeds:
        return inserted
    plain = to_lf(inserted)
    return plain.replace("\n", "\r\n") if 2 * text.count("\r\n") > feeds else plain


def _no_match_error(view: LfView, old: str, new: str) -> EditRejected:
    similar: list[Suggestion] = find_similar(view.text, old)
    if len(new.strip()) >= _REPEAT_HINT_CHARS and new in view.text:
        hint = "The replacement is already in the file: this edit may have been applied before."
    elif similar:
        best = similar[0]
        first, last = best["start_line"], best["end_line"]
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        alike = f"{best['similarity']:.0%} alike"
        hint = f"The nearest text is in {where} ({alike}). Read it and match it exactly, white space included."
    else:
        hint = "Read the file again and match its text exactly, white space included."
    return EditRejected(
        "validation_error", "The text to match was found 0 times in the file.", hint, found=0, suggestions=similar
    )


def _wrong_count_error(count: int, expected: int) -> EditRejected:
    if count == expected:
        message = "The text to match overlaps itself in the file, so there is more than one way to replace it."
    else:
        times = "time" if count == 1 else "times"
        message = f"The text to match was found {count} {times} in the file; {expected} expected."
    return EditRejected(
        "validation_error",
        message,
        "Add surrounding lines until the match is unique, or give the number of occurrences where the tool takes it.",
        found=count,
    )


def _locate_error(
    error: EditRejected, index: int, edits: Sequence[Edit], text: str | None, limits: EditLimits
) -> EditRejected:
    """Add the failed edit's index, the start of its text to match, and the content of the file where it fits the limits."""
    details = {key: value for key, value in error.details.items() if key not in ("error", "error_type", "hint")}
    if edits[index].old.strip():
        details["text_to_match"] = shorten(edits[index].old)
    if text and text.count("\n") < MAX_SHOWN_LINES and estimate_tokens(text) <= limits.max_answer_tokens:
        details["file_content"] = text
    message = f"edits[{index}]: {error.message}"
    if len(edits) > 1:
        message += " No edit of this file was applied."
    return EditRejected(error.details["error_type"], message, error.details["hint"], edit_index=index, **details)


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
