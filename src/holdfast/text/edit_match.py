"""Pure: finds a text in a file: literally, with typographic variants of quotes and dashes, or by similarity."""

import re
from bisect import bisect_left
from collections import Counter
from operator import add
from typing import TypedDict

_VARIANTS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}
_MAX_SUGGESTIONS = 3
_MIN_SIMILARITY = 0.5
_COMPARED_CHARS = 4_000
_ANCHOR_LINES = 4
_HITS_PER_ANCHOR = 12
_SMALL_FILE_CHARS = 200_000
_SWEPT_WINDOWS = 24
_WORD = re.compile(r"\w+")


class Suggestion(TypedDict):
    """Lines that resemble the text to match; counted from 1, both ends included."""

    start_line: int
    end_line: int
    similarity: float


def to_lf(text: str) -> str:
    """Return the text with every CRLF as a line feed."""
    return text.replace("\r\n", "\n") if "\r" in text else text


class LfView:
    """A text with LF line ends, and the mapping of its offsets to those of the raw text."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.text = to_lf(raw)
        self._crlf: list[int] = []
        if len(self.text) != len(raw):
            self._crlf = [match.start() - n for n, match in enumerate(re.finditer("\r\n", raw))]

    def to_raw(self, offset: int) -> int:
        """Return the raw offset of a character; for a line end that of its CR."""
        return offset + bisect_left(self._crlf, offset)


def find_matches(text: str, old_text: str, count: int) -> tuple[int, list[int]]:
    """Return how often a text occurs, and the offsets when that is `count` times.

    A match that overlaps another one is ambiguous: then the offsets are empty.
    """
    occurrences = text.count(old_text)
    if occurrences != count:
        return occurrences, []
    offsets: list[int] = []
    at = text.find(old_text)
    while at >= 0:
        offsets.append(at)
        at = text.find(old_text, at + (1 if count == 1 else len(old_text)))
    return occurrences, offsets if len(offsets) == count else []


def find_typographic_match(text: str, old_text: str) -> int | None:
    """Return the offset of the only match when typographic quotes, dashes and spaces count as plain ones.

    None when there is no match, or more than one.
    """
    if text.isascii() and old_text.isascii():
        return None
    plain, plain_old_text = _to_plain(text), _to_plain(old_text)
    at = plain.find(plain_old_text)
    if at < 0 or plain.find(plain_old_text, at + 1) >= 0:
        return None
    return at


def _to_plain(text: str) -> str:
    if text.isascii():
        return text
    for plain, variants in _VARIANTS.items():
        for variant in variants:
            text = text.replace(variant, plain)
    return text


def find_similar(text: str, old_text: str) -> list[Suggestion]:
    """Return up to three windows of lines that resemble the wanted text, best first.

    The work is bounded whatever the size of the text: candidates come from lines of the wanted text that occur
    literally, and in a small text also from windows that share its words.
    """
    old_lines = old_text.strip("\n").split("\n")
    starts = _starts_by_anchor(text, old_lines)
    lines: list[str] | None = None
    if len(text) <= _SMALL_FILE_CHARS:
        lines = text.split("\n")
        starts |= _starts_by_words(lines, old_lines)
    grams = _grams(old_lines)
    scored = [_score_window(text, lines, start, len(old_lines), grams) for start in sorted(starts)]
    best = sorted((window for window in scored if window["similarity"] >= _MIN_SIMILARITY), key=_rank)
    suggestions: list[Suggestion] = []
    for window in best:
        if all(window["end_line"] < c["start_line"] or window["start_line"] > c["end_line"] for c in suggestions):
            suggestions.append(window)
    return suggestions[:_MAX_SUGGESTIONS]


def _rank(window: Suggestion) -> tuple[float, int]:
    return (-window["similarity"], window["start_line"])


def _starts_by_anchor(text: str, old_lines: list[str]) -> set[int]:
    """Return start lines (from 0) of windows in which a long line of the wanted text is at its position."""
    anchors = sorted(((line.strip(), n) for n, line in enumerate(old_lines)), key=lambda pair: -len(pair[0]))
    starts: set[int] = set()
    for anchor, offset in anchors[:_ANCHOR_LINES]:
        if len(anchor) < 4:
            continue
        line, counted_to, at = 0, 0, text.find(anchor)
        for _ in range(_HITS_PER_ANCHOR):
            if at < 0:
                break
            line += text.count("\n", counted_to, at)
            counted_to = at
            starts.add(max(0, line - offset))
            at = text.find(anchor, at + len(anchor))
    return starts


def _starts_by_words(lines: list[str], old_lines: list[str]) -> set[int]:
    """Return the start lines of the windows that share most words with the wanted text."""
    words = set(_WORD.findall("\n".join(old_lines)[:_COMPARED_CHARS]))
    if not words:
        return set()
    shared = [len(words.intersection(_WORD.findall(line[:_COMPARED_CHARS]))) for line in lines]
    width = min(len(old_lines), len(lines))
    score = sum(shared[:width])
    windows = [(score, 0)]
    for start in range(1, len(lines) - width + 1):
        score += shared[start + width - 1] - shared[start - 1]
        windows.append((score, start))
    windows.sort(key=lambda pair: (-pair[0], pair[1]))
    return {start for score, start in windows[:_SWEPT_WINDOWS] if score}


def _score_window(text: str, lines: list[str] | None, start: int, width: int, old_words: Counter[str]) -> Suggestion:
    """Score one window by the pairs of characters that it shares with the wanted text."""
    window = lines[start : start + width] if lines is not None else _slice_lines(text, start, width)
    ours = _grams(window)
    ratio = 2 * (ours & old_words).total() / max(1, ours.total() + old_words.total())
    return {"start_line": start + 1, "end_line": start + max(1, len(window)), "similarity": round(ratio, 2)}


def _grams(lines: list[str]) -> Counter[str]:
    text = "\n".join(lines)[:_COMPARED_CHARS]
    return Counter(map(add, text, text[1:]))


def _slice_lines(text: str, start: int, width: int) -> list[str]:
    at = 0
    for _ in range(start):
        at = text.find("\n", at) + 1
    end = at
    for _ in range(width):
        following = text.find("\n", end)
        if following < 0:
            return text[at:].split("\n")
        end = following + 1
    return text[at : end - 1].split("\n")
