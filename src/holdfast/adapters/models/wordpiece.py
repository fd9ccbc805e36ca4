"""Pure: turns text into the token ids of a BERT model by WordPiece, the same ids as the library `tokenizers` gives.

That library brings a client of a model hub along, 30 MB for one algorithm of a page. A test compares the two on every
code point, on random text and on real text.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

_CACHED_WORDS = 16_384
_CACHED_CHARACTERS = 65_536
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
_SYMBOLS = frozenset("$+<=>^`|~")
"""ASCII characters that BERT takes for punctuation and Unicode does not."""
_IDEOGRAPHS = "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f"
_LETTERS = (
    "5c8-5c9 61d 7fd 890-8e2 9fd-9fe a76 afa-aff b53-b55 c04-c3c c77 c84 d00 d3b-d3c d81 eba ece 180f-1886 1abf-1af0 "
    "1b4e-1b4f 1b7d-1b7f 1df6-1dfb 2e43-2e63 a82c a8c5 a8ff a9bd 10d24-10f89 11070-11074 110c2-110cd 111cf 1123e-11241 "
    "1133b 113bb-1145e 11660-1166c 116b9 1182f-11fff 12ff1-1612f 16d6d-16f4f 16fe2-16fe4 1cf00-1d128 1d25b-1d25c "
    "1e000-1e6f5 1e944-1e95f"
)
"""Where marks, format characters and punctuation are younger than Unicode 8, whose tables `tokenizers` uses: letters to it."""
_CHANGED = {0x166D: "Po", 0x1734: "Mn", 0x111C9: "Po", 0x1171E: "Mn"}
"""Categories of Unicode 8 that a later version changed."""


class UnsupportedTokenizer(ValueError):
    """A tokenizer file that is not WordPiece as BERT uses it; the message says what differs."""


class EncodedText(NamedTuple):
    """A text as a model takes it; the field names are those of `tokenizers`."""

    ids: list[int]
    attention_mask: list[int]
    type_ids: list[int]


@dataclass(frozen=True, slots=True)
class WordPieceRules:
    """What a tokenizer file says."""

    vocabulary: Mapping[str, int]
    first: str = "[CLS]"
    last: str = "[SEP]"
    unknown: str = "[UNK]"
    special: Mapping[str, int] | None = None
    """Tokens that are themselves when a text holds them; None: the five of BERT."""
    prefix: str = "##"
    max_word_chars: int = 100
    clean: bool = True
    separate_ideographs: bool = True
    strip_accents: bool = True
    lowercase: bool = True


class WordPiece:
    """Encodes texts by the rules of one file. Any number of threads may use it at once."""

    def __init__(self, rules: WordPieceRules, max_tokens: int) -> None:
        known = rules.vocabulary
        if missing := [token for token in (rules.first, rules.last, rules.unknown) if token not in known]:
            raise UnsupportedTokenizer(f"its vocabulary has no {', '.join(missing)}")
        self._rules = rules
        self._max_tokens = max_tokens
        self._special = {t: known[t] for t in _SPECIAL if t in known} if rules.special is None else dict(rules.special)
        longest_first = sorted(self._special, key=len, reverse=True)
        self._special_pattern = (
            re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None
        )
        self._longest = max(map(len, known))
        self._clean = _CharacterTable(self._clean_character)
        self._split = _CharacterTable(self._split_character)
        self._ids_of = lru_cache(maxsize=_CACHED_WORDS)(self._cut_word)

    def encode(self, text: str) -> EncodedText:
        """Return the ids of the first and last token and, between them, of as much of the text as there is room for."""
        room = max(0, self._max_tokens - 2)
        ids = [self._rules.vocabulary[self._rules.first], *self._body(text, room)[:room]]
        ids.append(self._rules.vocabulary[self._rules.last])
        return EncodedText(ids, [1] * len(ids), [0] * len(ids))

    def _body(self, text: str, room: int) -> list[int]:
        ids: list[int] = []
        parts = [text] if self._special_pattern is None else self._special_pattern.split(text)
        for position, part in enumerate(parts):
            if position % 2:
                ids.append(self._special[part])
                continue
            for word in self._words(part):
                ids += self._ids_of(word)
                if len(ids) >= room:
                    return ids
        return ids

    def _words(self, text: str) -> list[str]:
        """Return the words and punctuation marks of a text, normalised."""
        text = text.translate(self._clean)
        if self._rules.strip_accents:
            text = unicodedata.normalize("NFD", text)
        text = text.translate(self._split)
        if self._rules.lowercase:
            # Each letter by itself: Python alone would write a sigma at a word's end differently.
            text = text.replace("Σ", "σ").lower()
        return [word for word in text.split(" ") if word]

    def _clean_character(self, character: str) -> str | None:
        if self._rules.clean:
            if character in "\t\n\r":
                return " "
            if character in "\0\ufffd" or _category(character) in {"Cc", "Cf", "Co", "Cs"}:
                return None
            if character in _SPACES:
                return " "
        is_apart = self._rules.separate_ideographs and _is_in(_IDEOGRAPH_RANGES, character)
        return f" {character} " if is_apart else character

    def _split_character(self, character: str) -> str | None:
        if character in _SPACES:
            return " "
        category = _category(character)
        if self._rules.strip_accents and category == "Mn":
            return None
        return f" {character} " if category.startswith("P") or character in _SYMBOLS else character

    def _cut_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of the longest known pieces from left to right, the unknown token when one is not known."""
        known, prefix = self._rules.vocabulary, self._rules.prefix
        unknown = (known[self._rules.unknown],)
        if len(word) > self._rules.max_word_chars:
            return unknown
        ids: list[int] = []
        start = 0
        while start < len(word):
            lead = prefix if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                token_id = known.get(lead + word[start:end])
                if token_id is not None:
                    ids.append(token_id)
                    start = end
                    break
            else:
                return unknown
        return tuple(ids)


class _CharacterTable(dict[int, str | None]):
    """What `str.translate` makes of each character: worked out when it first comes, remembered up to a bound."""

    def __init__(self, rule: Callable[[str], str | None]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str | None:
        value = self._rule(chr(code))
        if len(self) < _CACHED_CHARACTERS:
            self[code] = value
        return value


def read_tokenizer(data: bytes, max_tokens: int) -> WordPiece:
    """Return the tokenizer of a `tokenizer.json` or a `vocab.txt`. UnsupportedTokenizer when it is of another kind."""
    try:
        text = data.decode()
        rules = _json_rules(json.loads(text)) if text.lstrip().startswith("{") else _vocabulary_rules(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise UnsupportedTokenizer("it is neither JSON nor a list of tokens in UTF-8") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UnsupportedTokenizer):
            raise
        raise UnsupportedTokenizer(f"its JSON has another shape ({type(error).__name__})") from None
    return WordPiece(rules, max_tokens)


def _vocabulary_rules(text: str) -> WordPieceRules:
    """Return the rules of a list of tokens, one a line: for text in lower case unless a token has a capital letter."""
    lines = text.removesuffix("\n").split("\n")
    vocabulary = {line.removesuffix("\r"): number for number, line in enumerate(lines)}
    is_uncased = all(token == token.lower() for token in vocabulary if token not in _SPECIAL)
    return WordPieceRules(vocabulary, lowercase=is_uncased, strip_accents=is_uncased)


def _json_rules(content: Any) -> WordPieceRules:
    model, normalizer = content["model"], content["normalizer"] or {}
    kinds = {
        "model": (model.get("type", "WordPiece" if "max_input_chars_per_word" in model else None), "WordPiece"),
        "normalizer": (normalizer.get("type"), "BertNormalizer"),
        "pre-tokenizer": ((content["pre_tokenizer"] or {}).get("type"), "BertPreTokenizer"),
    }
    for part, (kind, expected) in kinds.items():
        if kind != expected:
            raise UnsupportedTokenizer(f"its {part} is {kind}, not {expected}")
    first, last = _frame(content["post_processor"] or {})
    lowercase, strip_accents = normalizer["lowercase"], normalizer.get("strip_accents")
    return WordPieceRules(
        model["vocab"],
        first,
        last,
        model["unk_token"],
        {token["content"]: _plain_token(token) for token in content["added_tokens"]},
        model["continuing_subword_prefix"],
        model["max_input_chars_per_word"],
        normalizer["clean_text"],
        normalizer["handle_chinese_chars"],
        lowercase if strip_accents is None else strip_accents,
        lowercase,
    )


def _plain_token(token: Mapping[str, Any]) -> int:
    if any(token[flag] for flag in ("single_word", "lstrip", "rstrip", "normalized")):
        raise UnsupportedTokenizer(f"its token {token['content']!r} is matched by rules of its own")
    return int(token["id"])


def _frame(processor: Mapping[str, Any]) -> tuple[str, str]:
    """Return the token before and the token after a text."""
    if processor.get("type") == "BertProcessing":
        return processor["cls"][0], processor["sep"][0]
    if processor.get("type") != "TemplateProcessing":
        raise UnsupportedTokenizer(f"its post-processor is {processor.get('type')}, not TemplateProcessing")
    match processor["single"]:
        case [
            {"SpecialToken": {"id": str(first), "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": str(last), "type_id": 0}},
        ]:
            return first, last
        case _:
            raise UnsupportedTokenizer("its template is not one token, the text, one token")


def _category(character: str) -> str:
    """Return the category of a character in Unicode 8, as far as it matters here."""
    if changed := _CHANGED.get(ord(character)):
        return changed
    return "Lo" if _is_in(_LETTER_RANGES, character) else unicodedata.category(character)


def _is_in(ranges: tuple[tuple[int, int], ...], character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in ranges)


def _parse_ranges(text: str) -> tuple[tuple[int, int], ...]:
    ends = [[int(end, 16) for end in part.split("-")] for part in text.split()]
    return tuple((end[0], end[-1]) for end in ends)


_LETTER_RANGES, _IDEOGRAPH_RANGES = _parse_ranges(_LETTERS), _parse_ranges(_IDEOGRAPHS)
