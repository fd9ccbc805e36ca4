"""Pure: splits text into tokens: lower case, stemmed, identifiers both by their parts and whole.

`readFile`, `read_file` and `read-file` all give read, file and readfile. Scripts without spaces are split into pairs of
characters. Both databases get these tokens, so that they find and rank the same.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import islice

import Stemmer

TOKENIZER = "holdfast-1"
"""Stored with the words; under another name they must be made again."""

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
    tokens: list[str] = []
    for word in _COMPOUND.findall(strip_accents(text)):
        tokens += _word_tokens(word)
    return tuple(tokens)


def tokenize_query(query: str) -> list[str]:
    """Return the tokens of a query, repeats included; stop words only when it has no other words.

    Of a query with more than MAX_QUERY_TERMS different tokens the first ones count.
    """
    words = _COMPOUND.findall(strip_accents(query))
    content_words = [word for word in words if word.lower() not in STOP_WORDS]
    tokens = [token for word in content_words or words for token in _word_tokens(word)]
    terms = frozenset(islice(dict.fromkeys(tokens), MAX_QUERY_TERMS))
    return [token for token in tokens if token in terms]


def strip_accents(text: str) -> str:
    """Return a text without accents, with compatibility characters replaced (NFKD)."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", re.sub(f"[{_MARKS}]", "", decomposed))


def remove_quotes(text: str) -> str:
    """Return a text without single quotes and apostrophes, which tokens do not have either."""
    return _QUOTES.sub("", text)


@lru_cache(maxsize=1 << 17)
def _word_tokens(word: str) -> tuple[str, ...]:
    """Return the tokens of one word: itself, or the parts of an identifier and then the whole."""
    word = _POSSESSIVE.sub("", word)
    if not word.isascii() and _UNSPACED.search(word):
        return tuple(_character_pairs(word))
    connected = [part for part in _CONNECTORS.split(remove_quotes(word)) if part]
    parts = [part for identifier in connected for part in _split_identifier(identifier)]
    if len(parts) < 2:
        return tuple(_stem_token(part) for part in parts)
    return (*(_stem_token(part) for part in parts), _stem_token("".join(connected)))


def _split_identifier(identifier: str) -> list[str]:
    """Return the words of an identifier in camel case; p53 and B12 are one word, Server2 is Server and 2."""
    if not identifier.isascii() or identifier.isdigit() or identifier.islower() or len(identifier) < 4:
        return [identifier]
    parts: list[str] = _PARTS.findall(identifier)
    return parts if all(len(part) > 1 or part.isdigit() for part in parts) else [identifier]


def _character_pairs(word: str) -> list[str]:
    """Return a token for each pair of neighbours in a script without spaces, and one for each other part of the word."""
    tokens: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        tokens += [_stem_token(word[end : run.start()])] if run.start() > end else []
        characters = run.group()
        tokens += [characters[start : start + 2] for start in range(max(1, len(characters) - 1))]
        end = run.end()
    return [*tokens, _stem_token(word[end:])] if end < len(word) else tokens


def _stem_token(word: str) -> str:
    folded = word.casefold()
    is_plain = len(folded) > 2 and folded.isascii() and folded.isalpha()
    stemmed: str = _stem(folded) if is_plain else folded
    return stemmed[:MAX_TOKEN_CHARS]
