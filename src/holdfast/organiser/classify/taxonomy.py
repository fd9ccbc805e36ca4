"""Pure: the list of categories: made from folders, merged, capped, and never extended by the content of a file."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from holdfast.errors import InvalidArgument
from holdfast.organiser.classify.starter import find_starter
from holdfast.organiser.model import KEEP, Category, Example

MAX_NAME_BYTES = 100
MAX_CATEGORIES = 50
MAX_EXAMPLES = 60
"""Examples of one folder; more add little and cost time."""

_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", "clock$", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)))
)
_UNSAFE = re.compile(r'[\\/:*?"<>|]+')
_SPACES = re.compile(r"\s+")
_WORDS = re.compile(r"[^\W_]+")
_DATE_OR_NUMBER = re.compile(r"[\d\W_]+|[^\W\d_]|q[1-4]|h[12]", re.IGNORECASE)
_Item = TypeVar("_Item")
_ENDINGS = ("ies", "es", "en", "er", "s", "e", "n", "i", "a", "o")


def clean_name(name: str) -> str:
    """Return the name of a category as a folder name that is valid on every system, or raise InvalidArgument.

    Separators and characters that a system forbids become spaces; invisible and bidirectional control characters are
    removed. A name of dots, a reserved one and one that is empty or too long is refused.
    """
    text = unicodedata.normalize("NFC", name)
    if ".." in re.split(r"[\\/]", text):
        raise InvalidArgument(f"a folder must lie in the planned one, so its name has no '..': {_quote(name)}")
    visible = "".join(" " if char.isspace() else char for char in text if char.isspace() or _is_visible(char))
    plain = _SPACES.sub(" ", _UNSAFE.sub(" ", visible)).strip(" .")
    if not plain or not _WORDS.search(plain):
        raise InvalidArgument(f"the name of a folder needs a letter or a digit: {_quote(name)}")
    if plain.casefold().partition(".")[0].strip() in _RESERVED:
        raise InvalidArgument(f"the name of a folder must not be one that Windows reserves: {_quote(name)}")
    if len(plain.encode()) > MAX_NAME_BYTES:
        raise InvalidArgument(f"the name of a folder must be at most {MAX_NAME_BYTES} bytes long: {_quote(name)}")
    return plain


@cache
def are_synonyms(first: str, second: str) -> bool:
    """Return whether two names mean the same: by their stems, by one typing error, or by a known synonym."""
    left, right = _stems(first), _stems(second)
    if left == right:
        return True
    if have_different_numbers(first, second):
        return False
    starter = find_starter(first)
    if starter is not None and starter is find_starter(second):
        return True
    short, long = sorted(("".join(sorted(left)), "".join(sorted(right))), key=len)
    return (
        len(short) >= 6 and short[0] == long[0] and _differ_by_one_typo(" ".join(sorted(left)), " ".join(sorted(right)))
    )


def merge_categories(categories: Iterable[Category], max_categories: int = MAX_CATEGORIES) -> list[Category]:
    """Return the categories with synonyms merged, those with examples first, up to the maximum.

    Two folders with examples are never merged, whatever their names: a person made both.
    """
    ordered = sorted(categories, key=lambda category: -len(category.examples))
    merged: list[Category] = []
    for category in ordered:
        mergeable = [at for at, other in enumerate(merged) if not (other.examples and category.examples)]
        synonym = next((at for at in mergeable if are_synonyms(merged[at].name, category.name)), None)
        if synonym is None:
            merged.append(category)
        else:
            examples = merged[synonym].examples + category.examples
            merged[synonym] = replace(merged[synonym], examples=examples)
    return merged[:max_categories]


def categories_from_examples(examples: Iterable[Example], max_examples: int = MAX_EXAMPLES) -> list[Category]:
    """Return a category for each folder of the examples, whose `category` is their folder; of many, evenly spread ones."""
    folders: dict[str, list[Example]] = {}
    for example in examples:
        folders.setdefault(example.category, []).append(example)
    return [
        Category(folder, folder, tuple(pick_evenly(files, max_examples))) for folder, files in sorted(folders.items())
    ]


def pick_evenly(items: Sequence[_Item], max_items: int) -> list[_Item]:
    """Return at most `max_items` of the items, evenly spread over the sequence."""
    count = min(max_items, len(items))
    return [items[at * len(items) // count] for at in range(count)]


def example_folder(relative: str) -> str:
    """Return the folder that a file is an example of: the folder it lies in, without dates, numbers or letters at the end."""
    parts = relative.split("/")
    while len(parts) > 1 and _DATE_OR_NUMBER.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts)


def apply_corrections(categories: Sequence[Category], corrections: Iterable[Example]) -> list[Category]:
    """Return the categories with each corrected file as an example of the category that the person chose, and no other.

    A correction to a category that is not in the list is left out: only a person's own choice of folders adds one.
    """
    newest = {correction.file_hash: correction for correction in corrections}
    corrected = []
    for category in categories:
        unchanged = tuple(example for example in category.examples if example.file_hash not in newest)
        added = tuple(correction for correction in newest.values() if correction.category == category.name)
        corrected.append(replace(category, examples=unchanged + added))
    return corrected


def match_category(answer: str, categories: Sequence[Category]) -> str | None:
    """Return the category that an answer names, exactly or by a synonym; None if it is not in the list."""
    answer = answer.strip()
    if answer.casefold() == KEEP.casefold():
        return KEEP
    names = [category.name for category in categories]
    exact = next((name for name in names if name.casefold() == answer.casefold()), None)
    return exact or next((name for name in names if are_synonyms(name, answer)), None)


def decider_key(decider: str, categories: Sequence[Category]) -> str:
    """Return the key that verdicts are cached under: the decider and the names of the categories, without the examples."""
    names = "\n".join(sorted(f"{category.name}\t{category.folder}" for category in categories))
    return f"{decider}/{hashlib.sha256(names.encode(errors='surrogateescape')).hexdigest()[:16]}"


def have_different_numbers(first: str, second: str) -> bool:
    """Return whether two names differ by a number or a letter: Taxes 2022 and Taxes 2023, Project A and Project B."""
    return _numbers_and_letters(first) != _numbers_and_letters(second)


def _numbers_and_letters(name: str) -> set[str]:
    return {word for word in _WORDS.findall(name.casefold()) if len(word) == 1 or any(char.isdigit() for char in word)}


def _stems(name: str) -> frozenset[str]:
    return frozenset(
        _stem(word) for word in _WORDS.findall(name.casefold()) if word not in ("and", "files", "file", "my")
    )


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("y") if len(word) > 4 else word


def _differ_by_one_typo(first: str, second: str) -> bool:
    """Return whether one insertion, removal, change or swap makes the texts equal."""
    if abs(len(first) - len(second)) > 1:
        return False
    at = next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if at is None:
        return True
    is_swap = first[at : at + 2] == second[at : at + 2][::-1] and first[at + 2 :] == second[at + 2 :]
    is_change = first[at + 1 :] == second[at + 1 :]
    return is_swap or is_change or first[at + 1 :] == second[at:] or first[at:] == second[at + 1 :]


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _quote(name: str) -> str:
    return ascii(name[:60])
