"""Pure: where a file without text belongs: by where files of its type lie, by the words of its name, by the starter list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.organiser.classify.starter import StarterMatch, hits, known_as, name_words
from holdfast.organiser.model import Category, Evidence, Excerpt, ScannedFile, Verdict

_MAX = 0.95
_DOUBT = 1.0
_DOUBT_OF_ANY = 15.0
"""For each known folder, two at least: a type says something only where very many files of it lie in one of few folders."""

_OF_ANY_SUBJECT = frozenset(
    (
        ".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex", ".rtf", ".log", ".nfo", ".me",
        ".pdf", ".ps", ".xps", ".djvu", ".doc", ".docx", ".docm", ".dot", ".dotx", ".odt", ".ott", ".pages", ".wpd",
        ".xls", ".xlsx", ".xlsm", ".ods", ".numbers", ".csv", ".tsv", ".ppt", ".pptx", ".pps", ".odp", ".key",
        ".htm", ".html", ".xhtml", ".mht", ".mhtml", ".eml", ".msg", ".json", ".jsonl", ".xml", ".yaml", ".yml",
        ".toml", ".ini", ".cfg", ".conf", ".dat", ".bin", ".bak", ".old", ".tmp",
    )
)  # fmt: skip
"""Types that hold any text or anything at all."""


@dataclass(frozen=True, slots=True)
class NameAndTypeRules:
    """How often each type lies in each folder, and the words of the names there."""

    names: Sequence[str]
    suffixes: dict[str, Counter[str]]
    words: dict[str, Counter[str]]
    seen: dict[str, list[str]]
    starters: dict[str, str]
    folders: int

    @classmethod
    def learn(cls, taxonomy: Sequence[Category]) -> "NameAndTypeRules":
        """Learn from the names of known files."""
        suffixes: dict[str, Counter[str]] = {}
        words: dict[str, Counter[str]] = {}
        seen: dict[str, list[str]] = {}
        for category in taxonomy:
            for example in category.examples:
                suffix = ScannedFile("", example.name).suffix
                suffixes.setdefault(suffix, Counter())[category.name] += 1
                for word in set(name_words(example.name.rpartition(".")[0])):
                    words.setdefault(word, Counter())[category.name] += 1
                seen.setdefault(f"{category.name}\0{suffix}", []).append(example.name)
        starters: dict[str, str] = {}
        for category in taxonomy:
            if (known := known_as(category.name)) is not None:
                starters.setdefault(known.name, category.name)
        folders = max(2, sum(1 for category in taxonomy if category.examples))
        return cls([category.name for category in taxonomy], suffixes, words, seen, starters, folders)

    def verdict(self, file: ScannedFile, excerpt: Excerpt) -> Verdict | None:
        """Return where a file belongs by its type and name, None when neither says anything."""
        chances: dict[str, float] = {}
        rules: dict[str, list[str]] = {}
        self._by_type(file, chances, rules)
        self._by_words(file, chances, rules)
        self._by_starter(file, excerpt, chances, rules)
        if not chances:
            return None
        category, chance = max(chances.items(), key=lambda pair: (pair[1], self.knows(pair[0]), pair[0]))
        rule = "; ".join(rules[category])
        near = tuple(self.seen.get(f"{category}\0{file.suffix}", [])[:3])
        return Verdict(category, min(_MAX, chance), reasoning=f"{category}: {rule}.", evidence=Evidence(near, (), rule))

    def starter_hit(self, file: ScannedFile, excerpt: Excerpt) -> tuple[str, StarterMatch] | None:
        """Return the category of the taxonomy that the starter list suggests, with the rule that hit."""
        for hit in hits(file, excerpt) if self.starters else ():
            if hit.name in self.starters:
                return self.starters[hit.name], hit
        return None

    def knows(self, category: str) -> bool:
        """Return whether a category has files of its own to judge by."""
        return any(category in lying for lying in self.suffixes.values())

    def _by_type(self, file: ScannedFile, chances: dict[str, float], rules: dict[str, list[str]]) -> None:
        lying = self.suffixes.get(file.suffix, Counter()) if file.suffix else Counter()
        total = lying.total()
        is_of_any = file.suffix in _OF_ANY_SUBJECT
        doubt, but = (_DOUBT_OF_ANY * self.folders, ", which says little") if is_of_any else (_DOUBT, "")
        for category, count in lying.items():
            _add(chances, category, (count / total) * count / (count + doubt))
            rules.setdefault(category, []).append(f"{count} of {total} known {file.suffix} files lie there{but}")

    def _by_words(self, file: ScannedFile, chances: dict[str, float], rules: dict[str, list[str]]) -> None:
        for word in set(name_words(file.name.rpartition(".")[0])):
            lying = self.words.get(word, Counter())
            total = lying.total()
            for category, count in lying.items():
                if total >= 2 and len(word) > 2 and count / total > 0.6:
                    _add(chances, category, 0.8 * (count / total) * count / (count + _DOUBT))
                    rules.setdefault(category, []).append(f"names with '{word}' lie there")

    def _by_starter(
        self, file: ScannedFile, excerpt: Excerpt, chances: dict[str, float], rules: dict[str, list[str]]
    ) -> None:
        if (suggested := self.starter_hit(file, excerpt)) is not None:
            category, hit = suggested
            _add(chances, category, hit.confidence)
            rules.setdefault(category, []).append(hit.rule)


def _add(chances: dict[str, float], category: str, chance: float) -> None:
    chances[category] = 1 - (1 - chances.get(category, 0.0)) * (1 - chance)
