"""Pure: the list of places that files may go: learned from folders, merged, capped, and never widened by what a file says."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from holdfast.errors import InvalidArgument
from holdfast.organiser.classify.starter import known_as
from holdfast.organiser.model import KEEP, Category, Example

MAX_NAME_BYTES = 100
MAX_CATEGORIES = 50
MAX_EXAMPLES = 60
"""Files that speak for one folder; more add little and cost time."""

_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", "clock$", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)))
)
_UNSAFE = re.compile(r'[\\/:*?"<>|]+')
_SPACES = re.compile(r"\s+")
_WORDS = re.compile(r"[^\W_]+")
_DATED = re.compile(r"[\d\W_]+|[^\W\d_]|q[1-4]|h[12]", re.IGNORECASE)
_ENDINGS = ("ies", "es", "en", "er", "s", "e", "n", "i", "a", "o")


def clean_name(name: str) -> str:
    """Return a category's name as a folder can bear it on any system, or raise InvalidArgument.

    Separators and characters that some system forbids become spaces; invisible and direction-turning characters go.
    A name of dots, a reserved one and one that is empty or too long is refused.
    """
    text = unicodedata.normalize("NFC", name)
    if ".." in re.split(r"[\\/]", text):
        raise InvalidArgument(f"a category must not lead out of the folder: {_shown(name)}")
    kept = "".join(" " if char.isspace() else char for char in text if char.isspace() or _is_visible(char))
    plain = _SPACES.sub(" ", _UNSAFE.sub(" ", kept)).strip(" .")
    if not plain or not _WORDS.search(plain):
        raise InvalidArgument(f"a category needs a name with a letter or a digit: {_shown(name)}")
    if plain.casefold().partition(".")[0].strip() in _RESERVED:
        raise InvalidArgument(f"a category must not have a reserved name: {_shown(name)}")
    if len(plain.encode()) > MAX_NAME_BYTES:
        raise InvalidArgument(f"a category's name must be at most {MAX_NAME_BYTES} bytes long: {_shown(name)}")
    return plain


@cache
def are_synonyms(one: str, other: str) -> bool:
    """Return whether two names say the same: by their stems, by a slip of one letter, or by a known synonym."""
    left, right = _stems(one), _stems(other)
    if left == right:
        return True
    if are_numbered(one, other):
        return False
    known = known_as(one)
    if known is not None and known is known_as(other):
        return True
    short, long = sorted(("".join(sorted(left)), "".join(sorted(right))), key=len)
    return len(short) >= 6 and short[0] == long[0] and _is_slip(" ".join(sorted(left)), " ".join(sorted(right)))


def merged(categories: Iterable[Category], most: int = MAX_CATEGORIES) -> list[Category]:
    """Return the categories with synonyms joined, at most so many; those with examples first.

    Two folders that exist are never joined, whatever their names: a person made both.
    """
    ordered = sorted(categories, key=lambda category: -len(category.examples))
    kept: list[Category] = []
    for category in ordered:
        free = [at for at, known in enumerate(kept) if not (known.examples and category.examples)]
        twin = next((at for at in free if are_synonyms(kept[at].name, category.name)), None)
        if twin is None:
            kept.append(category)
        else:
            kept[twin] = replace(kept[twin], examples=kept[twin].examples + category.examples)
    return kept[:most]


def of_folders(examples: Iterable[Example], most: int = MAX_EXAMPLES) -> list[Category]:
    """Return a category for each folder that known files lie in; `category` of an example is its folder.

    Of a folder with many files, evenly spread ones speak for it.
    """
    folders: dict[str, list[Example]] = {}
    for example in examples:
        folders.setdefault(example.category, []).append(example)
    return [
        Category(folder, folder, tuple(files[at * len(files) // kept] for at in range(kept)))
        for folder, files in sorted(folders.items())
        for kept in (min(len(files), most),)
    ]


def folder_of(relative: str) -> str:
    """Return the folder that a file of a folder speaks for: parts at the end that are dates, numbers or letters do not count."""
    parts = relative.split("/")
    while len(parts) > 1 and _DATED.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts)


def taught(categories: Sequence[Category], lessons: Iterable[Example]) -> list[Category]:
    """Return the categories as a person corrected them: a lesson counts where it was put, and nowhere else.

    A lesson about a category that is not in the list is left out: only a person's own choice of folders adds one.
    """
    newest = {lesson.file_hash: lesson for lesson in lessons}
    corrected = []
    for category in categories:
        kept = tuple(example for example in category.examples if example.file_hash not in newest)
        added = tuple(lesson for lesson in newest.values() if lesson.category == category.name)
        corrected.append(replace(category, examples=kept + added))
    return corrected


def allowed(answer: str, categories: Sequence[Category]) -> str | None:
    """Return the category of the list that an answer means, None when it means none of them."""
    said = answer.strip()
    if said.casefold() == KEEP.casefold():
        return KEEP
    names = [category.name for category in categories]
    exact = next((name for name in names if name.casefold() == said.casefold()), None)
    return exact or next((name for name in names if are_synonyms(name, said)), None)


def decider_key(decider: str, categories: Sequence[Category]) -> str:
    """Return what verdicts are kept under: who decides, and between which names; examples do not count."""
    names = "\n".join(sorted(f"{category.name}\t{category.folder}" for category in categories))
    return f"{decider}/{hashlib.sha256(names.encode(errors='surrogateescape')).hexdigest()[:16]}"


def are_numbered(one: str, other: str) -> bool:
    """Return whether two names are told apart by a number or a letter: Taxes 2022 and Taxes 2023, Project A and Project B."""
    return _marks(one) != _marks(other)


def _marks(name: str) -> set[str]:
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


def _is_slip(one: str, other: str) -> bool:
    """Return whether one insertion, removal, change or swap makes the texts equal."""
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return True
    swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return swapped or one[at + 1 :] == other[at + 1 :] or one[at + 1 :] == other[at:] or one[at:] == other[at + 1 :]


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _shown(name: str) -> str:
    return ascii(name[:60])
