"""Pure: classifies a file without text: by the folders of files of its type, the words of its name, and the starter list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.organiser.classify.starter import BY_NAME, StarterMatch, find_starter, match_starters, split_words
from holdfast.organiser.model import Category, Evidence, Excerpt, ScannedFile, Verdict

_MAX_CONFIDENCE = 0.95
_PRIOR = 1.0
_PRIOR_OF_GENERIC_TYPE = 15.0
"""For each known folder, two at least: a generic type counts only where very many files of it lie in one of few folders."""

_GENERIC_TYPES = frozenset(
    (
        ".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex", ".rtf", ".log", ".nfo", ".me",
        ".pdf", ".ps", ".xps", ".djvu", ".doc", ".docx", ".docm", ".dot", ".dotx", ".odt", ".ott", ".pages", ".wpd",
        ".xls", ".xlsx", ".xlsm", ".ods", ".numbers", ".csv", ".tsv", ".ppt", ".pptx", ".pps", ".odp", ".key",
        ".htm", ".html", ".xhtml", ".mht", ".mhtml", ".eml", ".msg", ".json", ".jsonl", ".xml", ".yaml", ".yml",
        ".toml", ".ini", ".cfg", ".conf", ".dat", ".bin", ".bak", ".old", ".tmp",
    )
)  # fmt: skip
"""Types that can hold any content."""


@dataclass(frozen=True, slots=True)
class NameAndTypeRules:
    """How often each file type and each word of a file name occurs in each folder.

    `example_names` are the file names by category and suffix; `starters` are the categories by starter category.
    """

    names: Sequence[str]
    suffixes: dict[str, Counter[str]]
    words: dict[str, Counter[str]]
    example_names: dict[tuple[str, str], list[str]]
    starters: dict[str, str]
    folder_count: int

    @classmethod
    def learn(cls, taxonomy: Sequence[Category]) -> "NameAndTypeRules":
        """Learn from the names of the examples."""
        suffixes: dict[str, Counter[str]] = {}
        words: dict[str, Counter[str]] = {}
        example_names: dict[tuple[str, str], list[str]] = {}
        for category in taxonomy:
            for example in category.examples:
                suffix = ScannedFile("", example.name).suffix
                suffixes.setdefault(suffix, Counter())[category.name] += 1
                for word in dict.fromkeys(split_words(example.name.rpartition(".")[0])):
                    words.setdefault(word, Counter())[category.name] += 1
                example_names.setdefault((category.name, suffix), []).append(example.name)
        starters: dict[str, str] = {}
        for category in taxonomy:
            if (starter := find_starter(category.name)) is not None:
                starters.setdefault(starter.name, category.name)
        folder_count = max(2, sum(1 for category in taxonomy if category.examples))
        return cls([category.name for category in taxonomy], suffixes, words, example_names, starters, folder_count)

    def verdict(self, file: ScannedFile, excerpt: Excerpt) -> Verdict | None:
        """Return the verdict by type and name, None if neither says anything."""
        chances: dict[str, float] = {}
        rules: dict[str, list[str]] = {}
        self._add_type(file, chances, rules)
        self._add_name_words(file, chances, rules)
        if (suggestion := self.match_starter(file, excerpt)) is not None:
            category, match = suggestion
            _add(chances, category, match.confidence)
            rules.setdefault(category, []).append(match.rule)
        if not chances:
            return None
        category, chance = max(chances.items(), key=lambda pair: (pair[1], self.has_files(pair[0]), pair[0]))
        rule = "; ".join(rules[category])
        nearest = tuple(self.example_names.get((category, file.suffix), [])[:3])
        evidence = Evidence(nearest, (), rule)
        return Verdict(category, min(_MAX_CONFIDENCE, chance), reasoning=f"{category}: {rule}.", evidence=evidence)

    def match_starter(self, file: ScannedFile, excerpt: Excerpt) -> tuple[str, StarterMatch] | None:
        """Return the category that the starter list suggests for a file, with the match; None if there is none."""
        for match in match_starters(file, excerpt) if self.starters else ():
            if match.name in self.starters:
                return self.starters[match.name], match
        return None

    def is_telling(self, file: ScannedFile, match: StarterMatch) -> bool:
        """Return whether a starter category fits so clearly that it decides for a folder with other files, too.

        That is by a type that holds one kind of content, such as `.java`, or by a word in the name that means one thing.
        """
        return match.confidence >= BY_NAME if match.terms else file.suffix not in _GENERIC_TYPES

    def has_files(self, category: str) -> bool:
        """Return whether a category has examples."""
        return any(category in counts for counts in self.suffixes.values())

    def _add_type(self, file: ScannedFile, chances: dict[str, float], rules: dict[str, list[str]]) -> None:
        counts = self.suffixes.get(file.suffix, Counter()) if file.suffix else Counter()
        total = counts.total()
        prior, note = _PRIOR, ""
        if file.suffix in _GENERIC_TYPES:
            prior, note = _PRIOR_OF_GENERIC_TYPE * self.folder_count, ", which says little"
        for category, count in counts.items():
            _add(chances, category, (count / total) * count / (count + prior))
            known = (
                f"{count} of {total} known {file.suffix} files lie"
                if total > 1
                else f"the only known {file.suffix} file lies"
            )
            rules.setdefault(category, []).append(f"{known} there{note}")

    def _add_name_words(self, file: ScannedFile, chances: dict[str, float], rules: dict[str, list[str]]) -> None:
        for word in dict.fromkeys(split_words(file.name.rpartition(".")[0])):
            counts = self.words.get(word, Counter())
            total = counts.total()
            for category, count in counts.items():
                if total >= 2 and len(word) > 2 and count / total > 0.6:
                    _add(chances, category, 0.8 * (count / total) * count / (count + _PRIOR))
                    rules.setdefault(category, []).append(f"names with '{word}' lie there")


def _add(chances: dict[str, float], category: str, chance: float) -> None:
    """Combine a chance with the one that a category has already, as independent evidence."""
    chances[category] = 1 - (1 - chances.get(category, 0.0)) * (1 - chance)
