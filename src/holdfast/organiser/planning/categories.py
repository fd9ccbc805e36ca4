"""The order that files are sorted into: a person's own folders first, then folders that are only proposed.

Files that lie in a folder speak for it and stay; loose ones, and those in a folder whose name says nothing, are sorted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.changes.names import collision_key
from holdfast.organiser.classify.starter import starter_categories
from holdfast.organiser.classify.taxonomy import MAX_EXAMPLES, folder_of, merged, taught
from holdfast.organiser.model import (
    MIN_CHARS,
    Category,
    DestinationFolder,
    Example,
    Excerpt,
    FileType,
    ScannedFile,
    Unit,
)
from holdfast.organiser.scan.survey import SurveyedFile

_LOOSE = frozenset(
    (
        "new folder", "untitled folder", "downloads", "download", "desktop", "misc", "miscellaneous", "unsorted",
        "inbox", "to sort", "temp", "tmp", "stuff", "various", "other", "neuer ordner", "sonstiges", "nouveau dossier",
        "divers", "nueva carpeta", "varios",
    )
)  # fmt: skip
_NUMBER = re.compile(r"[\s\d()_.-]+\Z")
_STAYING = frozenset({Unit.REPOSITORY, Unit.PROJECT})


def is_loose_folder(name: str) -> bool:
    """Return whether a folder's name says nothing of what belongs there."""
    return _NUMBER.sub("", name.casefold()) in _LOOSE


def is_loose(found: ScannedFile, *, deep: bool) -> bool:
    """Return whether a file is to be sorted: it lies loose, or all are; repositories and projects stay where they are."""
    if found.unit in _STAYING:
        return False
    return deep or not found.folder or is_loose_folder(found.folder.partition("/")[0])


@dataclass(frozen=True, slots=True)
class CategorySet:
    """The categories without their examples, the folders that exist, and the files that speak for each folder.

    `chosen` are folders that are here because somebody sent a file there: nothing but such files says what they are for.
    """

    categories: tuple[Category, ...]
    existing: frozenset[str]
    speaking: Mapping[str, tuple[SurveyedFile, ...]]
    chosen: frozenset[str] = frozenset()

    @property
    def places(self) -> dict[str, str]:
        """Return the folder of each category, by its path from the planned folder."""
        return {category.name: category.folder for category in self.categories}

    def with_examples(self, texts: Mapping[str, Excerpt], lessons: Iterable[Example]) -> list[Category]:
        """Return the categories with the files that speak for them, as a person has corrected them."""
        known = []
        for category in self.categories:
            files = self.speaking.get(category.folder, ())
            examples = tuple(_example(one, category.name, texts) for one in files if one.file_hash in texts)
            known.append(replace(category, examples=examples))
        return taught(known, lessons)

    def for_texts(self, taxonomy: Sequence[Category]) -> list[Category]:
        """Return the categories that a text can be compared with: a chosen folder needs a file with words."""
        return [
            one
            for one in taxonomy
            if one.folder not in self.chosen or any(len(example.text) >= MIN_CHARS for example in one.examples)
        ]

    def shelves(self, used: Iterable[str]) -> tuple[DestinationFolder, ...]:
        """Return the folders that files go to or came from, those of the person first."""
        wanted = set(used)
        return tuple(
            DestinationFolder(
                one.name, one.folder, one.folder not in self.existing, len(self.speaking.get(one.folder, ()))
            )
            for one in self.categories
            if one.folder in self.existing or one.name in wanted
        )


def order_of(
    files: Sequence[SurveyedFile], directories: Iterable[str], taken: Iterable[str], most: int, deep: bool
) -> CategorySet:
    """Return the order for surveyed files; `directories` are those in the folder, `taken` the names no folder can have."""
    speaking = {} if deep else _speaking(files)
    named = [name for name in directories if not is_loose_folder(name)]
    own = sorted({*speaking, *named})
    existing = [
        Category(folder, folder, tuple(Example("", "", folder) for _ in speaking.get(folder, ()))) for folder in own
    ]
    blocked = {collision_key(name) for name in taken} | {
        collision_key(name) for name in directories if name not in named
    }
    proposed = [one for one in starter_categories() if collision_key(one.folder) not in blocked]
    kept = merged([*existing, *proposed], most)
    return CategorySet(tuple(replace(one, examples=()) for one in kept), frozenset(own), speaking)


def with_shelf(order: CategorySet, folder: str) -> CategorySet:
    """Return an order with one more folder, that a person chose."""
    if folder in order.places.values():
        return order
    return replace(order, categories=(*order.categories, Category(folder, folder)), chosen=order.chosen | {folder})


def _speaking(files: Sequence[SurveyedFile]) -> dict[str, tuple[SurveyedFile, ...]]:
    """Return the files that speak for each folder: evenly spread ones where there are many."""
    folders: dict[str, list[SurveyedFile]] = {}
    for one in files:
        if one.found.kind is FileType.FILE and one.file_hash and not is_loose(one.found, deep=False):
            folders.setdefault(folder_of(one.found.folder), []).append(one)
    return {folder: _spread(members) for folder, members in folders.items()}


def _spread(files: list[SurveyedFile]) -> tuple[SurveyedFile, ...]:
    kept = min(MAX_EXAMPLES, len(files))
    return tuple(files[at * len(files) // kept] for at in range(kept))


def _example(one: SurveyedFile, category: str, texts: Mapping[str, Excerpt]) -> Example:
    excerpt = texts[one.file_hash]
    return Example(one.file_hash, one.found.name, category, excerpt.text, excerpt.content_type)
