"""Pure: the words of a text as they are looked up: small letters, stemmed, identifiers by their parts and whole.

`readFile`, `read_file` and `read-file` all give read, file and readfile. Writing without spaces is taken by pairs of
characters. Both databases get these tokens, so that they find and rank the same.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import islice

import Stemmer

TOKENIZER = "holdfast-1"
"""Stored with the words; another name means that they must be made again."""

MAX_TOKEN_CHARS = 64
MAX_QUERY_TERMS = 256

_MARKS = "\u0300-\u036f"
_INDIC = "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3"
_ARABIC = "\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670"
_LETTER = rf"(?:[^\W_]|[{_MARKS}{_ARABIC}{_INDIC}])"
_COMPOUND = re.compile(rf"{_LETTER}+(?:[-_./:@'’]{_LETTER}+)*")
_CONNECTORS = re.compile(r"[-_./:@]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_POSSESSIVE = re.compile("['’](?:s|S)?$")
_QUOTES = re.compile("['’]")

_STOP_WORDS = """
    a about above after again against all am an and any are as at be because been before being below between both but
    by can could did do does doing down during each few for from further had has have having he her here hers herself
    him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only
    or other our ours ourselves out over own same she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up very was we were what when where which while who
    whom why will with would you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_stem = Stemmer.Stemmer("porter", 0).stemWord


def tokenize(text: str) -> tuple[str, ...]:
    """Return the tokens of a text in order."""
    found: list[str] = []
    for word in _COMPOUND.findall(plain(text)):
        found += _tokens(word)
    return tuple(found)


def tokenize_query(query: str) -> list[str]:
    """Return the tokens that a query is looked up by, repeats included; stop words only when there is nothing else.

    Of a query with very many different tokens the first ones count.
    """
    words = _COMPOUND.findall(plain(query))
    telling = [word for word in words if word.lower() not in STOP_WORDS]
    tokens = [token for word in telling or words for token in _tokens(word)]
    used = frozenset(islice(dict.fromkeys(tokens), MAX_QUERY_TERMS))
    return [token for token in tokens if token in used]


def plain(text: str) -> str:
    """Return a text without the accents of its letters, in the one form of what can be written in several."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", re.sub(f"[{_MARKS}]", "", apart))


def unquoted(text: str) -> str:
    """Return a text with its words as they are looked up when a quote stands in them."""
    return _QUOTES.sub("", text)


@lru_cache(maxsize=1 << 17)
def _tokens(word: str) -> tuple[str, ...]:
    """Return the tokens of one word: itself, or the parts of an identifier and then the whole."""
    bare = _POSSESSIVE.sub("", word)
    if not bare.isascii() and _UNSPACED.search(bare):
        return tuple(_pairs(bare))
    pieces = [piece for piece in _CONNECTORS.split(unquoted(bare)) if piece]
    parts = [part for piece in pieces for part in _parts(piece)]
    if len(parts) < 2:
        return tuple(_shaped(part) for part in parts)
    return (*(_shaped(part) for part in parts), _shaped("".join(pieces)))


def _parts(piece: str) -> list[str]:
    """Return the words that an identifier is made of; p53 and B12 are one, Server2 is Server and 2."""
    if not piece.isascii() or piece.isdigit() or piece.islower() or len(piece) < 4:
        return [piece]
    found: list[str] = _PARTS.findall(piece)
    return found if all(len(part) > 1 or part.isdigit() for part in found) else [piece]


def _pairs(word: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(word):
        tokens += [_shaped(word[at : run.start()])] if run.start() > at else []
        written = run.group()
        tokens += [written[place : place + 2] for place in range(max(1, len(written) - 1))]
        at = run.end()
    return [*tokens, _shaped(word[at:])] if at < len(word) else tokens


def _shaped(word: str) -> str:
    small = word.casefold()
    is_plain = len(small) > 2 and small.isascii() and small.isalpha()
    stemmed: str = _stem(small) if is_plain else small
    return stemmed[:MAX_TOKEN_CHARS]
