"""Pure: escapes file names and texts for display, so that no character can forge a line, hide, or reverse the text."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc\U0001d159"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_MAX_MARKS = 4
"""Combining marks on one letter that are shown as they are: more than any script needs, too few to cover a line."""
_FIRST_MARK = "\u0300"
_EDGES = re.compile('/["/ ]| /')
_UNITS = ("B", "KB", "MB", "GB", "TB")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def is_visible(char: str) -> bool:
    """Return whether a character is visible: no control or direction character, and none that displays as nothing."""
    return char.isprintable() and char not in _INVISIBLE


def is_plain(name: str) -> bool:
    """Return whether a name or path can be displayed as it is: no part of it begins or ends with a blank."""
    if not name.isprintable() or name[:1] in ('"', " ", "") or name[-1] == " " or "/ " in name or " /" in name:
        return False
    return name.isascii() or (_INVISIBLE.isdisjoint(name) and not any(_excess_marks(name)))


def are_plain(names: Sequence[str]) -> bool:
    """Return whether every name is plain ASCII that can be displayed as it is: one check for a whole directory."""
    text = "/".join(names)
    return text.isascii() and text.isprintable() and not _EDGES.search(f"/{text}/")


def display_name(name: str) -> str:
    r"""Return a name or path for display: as it is, or quoted with misleading characters escaped as in JSON.

    A byte that is not UTF-8 is shown as `\xNN`; such a name cannot be given back as an argument.
    """
    if is_plain(name):
        return name
    return f'"{"".join(_escape_char(char, excess) for char, excess in zip(name, _excess_marks(name), strict=True))}"'


def _escape_char(char: str, is_excess_mark: bool) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if is_visible(char) and not is_excess_mark:
        return char
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese characters and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut_to_width(text: str, width: int) -> str:
    """Return a text, cut to as many columns of a terminal, an ellipsis in the last one, if it is wider."""
    if display_width(text) <= width:
        return text
    while text and display_width(text) >= width:
        text = text[:-1]
    return f"{text}…"


def fit_to_width(text: str, width: int) -> str:
    """Return a text in exactly as many columns: cut if it is wider, with blanks behind it if it is not as wide."""
    cut = cut_to_width(text, width)
    return cut + " " * (width - display_width(cut))


def quantity(count: int, noun: str, plural: str = "", *, separator: str = "") -> str:
    """Return a number with its noun, in the plural unless it is one; `separator` goes between thousands."""
    return f"{count:{separator}} {noun if count == 1 else plural or f'{noun}s'}"


def format_percent(share: float) -> str:
    """Return a share in whole percent, never rounded up: what shows a limit's number has reached the limit."""
    return f"{int(100 * share + 1e-9)}%"


def format_size(size_bytes: int) -> str:
    """Return a size as the reference server writes it: `0 B`, `1.50 KB`."""
    value, unit = float(size_bytes), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{value:.2f} {_UNITS[unit]}"


def escape_invisible(text: str) -> str:
    r"""Return a line with every control, format and invisible character except tabs escaped as `\xNN`.

    So is every combining mark after the first few on a letter: piled up they cover the lines above.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if (is_visible(char) and not is_excess) or char == "\t" else f"\\x{ord(char):02x}"
        for char, is_excess in zip(text, _excess_marks(text), strict=True)
    )


def _excess_marks(text: str) -> Iterator[bool]:
    """Yield for each character whether it is a combining mark beyond those that a letter may carry."""
    marks = 0
    for char in text:
        is_mark = char >= _FIRST_MARK and unicodedata.category(char) in ("Mn", "Me")
        marks = marks + 1 if is_mark else 0
        yield marks > _MAX_MARKS


def escape_lines(body: str) -> list[str]:
    """Return the escaped lines of a text; carriage returns are dropped where every line has one, otherwise escaped."""
    lines = body.removesuffix("\n").split("\n")
    ends_alike = all(line.endswith("\r") for line in lines)
    return [escape_invisible(line.removesuffix("\r") if ends_alike else line) for line in lines]


def escape_diff_lines(diff: str) -> list[str]:
    """Return the escaped lines of a unified diff of one file.

    Carriage returns are dropped where every line of both texts has one: its headers, which have none, do not count.
    """
    lines = diff.removesuffix("\n").split("\n")
    is_header = [index < 2 or line.startswith(("@@", "\\")) for index, line in enumerate(lines)]
    ends_alike = all(header or line.endswith("\r") for line, header in zip(lines, is_header, strict=True))
    return [escape_invisible(line.removesuffix("\r") if ends_alike else line) for line in lines]


def shorten(text: str, max_chars: int = 120) -> str:
    """Return the start of a text, with an ellipsis when it is longer than that."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"
