"""The categories of a plan: the person's own folders first, then folders that are only proposed.

Files in a folder are examples of what belongs there, and stay. Files that lie loose in the planned folder, or in a
folder with a generic name, are sorted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.changes.names import collision_key
from holdfast.organiser.classify.starter import starter_categories
from holdfast.organiser.classify.taxonomy import (
    MAX_EXAMPLES,
    apply_corrections,
    example_folder,
    merge_categories,
    pick_evenly,
)
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

_GENERIC_NAMES = frozenset(
    (
        "new folder", "untitled folder", "downloads", "download", "desktop", "misc", "miscellaneous", "unsorted",
        "inbox", "to sort", "temp", "tmp", "stuff", "various", "other", "neuer ordner", "sonstiges", "nouveau dossier",
        "divers", "nueva carpeta", "varios",
    )
)  # fmt: skip
_TRAILING_NUMBER = re.compile(r"[\s\d()_.-]+\Z")
NEVER_SORTED = frozenset({Unit.REPOSITORY, Unit.PROJECT})


def is_generic_folder(name: str) -> bool:
    """Return whether the name of a folder says nothing about what belongs there."""
    return _TRAILING_NUMBER.sub("", name.casefold()) in _GENERIC_NAMES


def is_sorted(file: ScannedFile, *, include_subfolders: bool) -> bool:
    """Return whether a plan sorts a file: it is loose or in a generic folder, or subfolders are included.

    Repositories and projects always stay where they are.
    """
    if file.unit in NEVER_SORTED:
        return False
    return include_subfolders or not file.folder or is_generic_folder(file.folder.partition("/")[0])


@dataclass(frozen=True, slots=True)
class CategorySet:
    """The categories of a plan, without their examples.

    `existing` are the folders that are there, `example_files` the files in each of them that are examples. `chosen_folders` are
    folders that are in the list because a file was sent there: only such files say what they are for.
    """

    categories: tuple[Category, ...]
    existing: frozenset[str]
    example_files: Mapping[str, tuple[SurveyedFile, ...]]
    chosen_folders: frozenset[str] = frozenset()

    @property
    def folders(self) -> dict[str, str]:
        """Return the folder of each category by its name; folders are paths from the planned folder."""
        return {category.name: category.folder for category in self.categories}

    def with_examples(self, excerpts: Mapping[str, Excerpt], corrections: Iterable[Example]) -> list[Category]:
        """Return the categories with their examples, as a person has corrected them; `excerpts` are by file hash."""
        categories = []
        for category in self.categories:
            examples = []
            for entry in self.example_files.get(category.folder, ()):
                if (excerpt := excerpts.get(entry.file_hash)) is not None:
                    name, text = entry.file.name, excerpt.text
                    examples.append(Example(entry.file_hash, name, category.name, text, excerpt.content_type))
            categories.append(replace(category, examples=tuple(examples)))
        return apply_corrections(categories, corrections)

    def comparable_by_text(self, taxonomy: Sequence[Category]) -> list[Category]:
        """Return the categories that a text can be compared with: a chosen folder needs an example with text."""
        return [
            category
            for category in taxonomy
            if category.folder not in self.chosen_folders
            or any(len(example.text) >= MIN_CHARS for example in category.examples)
        ]

    def destinations(self, used: Iterable[str]) -> tuple[DestinationFolder, ...]:
        """Return the folders that exist or that files go to, in the order of the categories."""
        used_folders = set(used)
        return tuple(
            DestinationFolder(
                category.name,
                category.folder,
                category.folder not in self.existing,
                len(self.example_files.get(category.folder, ())),
            )
            for category in self.categories
            if category.folder in self.existing or category.name in used_folders
        )

    def add_chosen(self, folder: str) -> "CategorySet":
        """Return the categories with one more, for a chosen folder."""
        if folder in self.folders.values():
            return self
        return replace(
            self, categories=(*self.categories, Category(folder, folder)), chosen_folders=self.chosen_folders | {folder}
        )


def build_categories(
    files: Sequence[SurveyedFile],
    directories: Iterable[str],
    unavailable: Iterable[str],
    max_categories: int,
    include_subfolders: bool,
) -> CategorySet:
    """Return the categories for surveyed files.

    `directories` are the names of the directories in the planned folder, `unavailable` names that no folder can have.
    """
    example_files = {} if include_subfolders else _find_example_files(files)
    category_names = [name for name in directories if not is_generic_folder(name)]
    own_folders = sorted({*example_files, *category_names})
    # Stand-ins for the examples: categories with examples come first, and are never merged with each other.
    existing = [
        Category(folder, folder, tuple(Example("", "", folder) for _ in example_files.get(folder, ())))
        for folder in own_folders
    ]
    blocked = {collision_key(name) for name in unavailable}
    blocked |= {collision_key(name) for name in directories if name not in category_names}
    proposed = [category for category in starter_categories() if collision_key(category.folder) not in blocked]
    merged = merge_categories([*existing, *proposed], max_categories)
    categories = tuple(replace(category, examples=()) for category in merged)
    return CategorySet(categories, frozenset(own_folders), example_files)


def _find_example_files(files: Sequence[SurveyedFile]) -> dict[str, tuple[SurveyedFile, ...]]:
    """Return the files that are examples of each folder; of many, evenly spread ones."""
    folders: dict[str, list[SurveyedFile]] = {}
    for entry in files:
        file = entry.file
        if file.type is FileType.FILE and entry.file_hash and not is_sorted(file, include_subfolders=False):
            folders.setdefault(example_folder(file.folder), []).append(entry)
    return {folder: tuple(pick_evenly(members, MAX_EXAMPLES)) for folder, members in folders.items()}
