"""Files that all but repeat a known one, as a vendor's next invoice does: its words are enough, whatever the crowd.

Where most files at hand are of one kind, what they share tells none of them from the rest, and each looks as if it belonged
nowhere. Words that are the same beyond chance do not depend on the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log

from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.classify.tfidf import is_word, terms_of
from holdfast.organiser.model import Evidence, Verdict
from holdfast.text.display import display_name

ALIKE = 0.85
"""How sure it makes a verdict; less than the same text does."""

_SHARED = 0.8
_FEWEST_WORDS = 8

Words = frozenset[str]


def recognised(
    learned: TextClassifier, verdicts: Sequence[Verdict], texts: Sequence[str], check: Callable[[], None]
) -> list[Verdict]:
    """Return the verdicts, and for an uncertain file that all but repeats one of a folder, and none of another, that folder."""
    if all(verdict.confidence >= ALIKE for verdict in verdicts):
        return list(verdicts)
    known = NearDuplicates.of(learned)
    found = []
    for verdict, text in zip(verdicts, texts, strict=True):
        check()
        found.append(verdict if verdict.confidence >= ALIKE else known.verdict(_words(text)) or verdict)
    return found


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """The words of the known files; a word weighs the more, the fewer folders have it, so that common ones say nothing.

    Two files that share most of their weight share one of the weightiest words of each, so few need to be compared. A
    folder that is told from others by a number, such as a year, is not known by words.
    """

    files: Sequence[tuple[int, str, Words]]
    folders: Sequence[str]
    untrusted: frozenset[int]
    spread: Counter[str]
    index: dict[str, list[int]]

    @classmethod
    def of(cls, learned: TextClassifier) -> "NearDuplicates":
        """Take the words of what was learned from."""
        files = [(label, example.name, _words(example.text)) for label, example in learned.known()]
        spread = Counter(word for _, word in {(label, word) for label, _, words in files for word in words})
        numbered = {at for at, folder in enumerate(learned.names) if any(char.isdigit() for char in folder)}
        known = cls(files, learned.names, learned.judge.review_only | numbered, spread, {})
        for at, (_, _, words) in enumerate(files):
            for word in known._weightiest(words):
                known.index.setdefault(word, []).append(at)
        return known

    def verdict(self, words: Words) -> Verdict | None:
        """Return the folder that words are known from; None when there is none, or more than one."""
        if len(words) < _FEWEST_WORDS:
            return None
        near = sorted({at for word in self._weightiest(words) for at in self.index.get(word, ())})
        twins = {label: name for label, name, said in (self.files[at] for at in near) if self._are_alike(words, said)}
        if len(twins) != 1 or not self.untrusted.isdisjoint(twins):
            return None
        label, name = twins.popitem()
        rule = f"all but the same words as {display_name(name)}"
        folder = self.folders[label]
        return Verdict(folder, ALIKE, reasoning=f"It has {rule}, in {folder}.", evidence=Evidence((name,), (), rule))

    def _are_alike(self, one: Words, other: Words) -> bool:
        return self._weight(one & other) >= _SHARED * self._weight(one | other)

    def _weightiest(self, words: Words) -> list[str]:
        """Return the words without which too little weight is left for another file to share."""
        ordered = sorted(words, key=lambda word: (self.spread[word] or 1, word))
        left, enough = self._weight(words), _SHARED * self._weight(words)
        for count, word in enumerate(ordered):
            if left < enough:
                return ordered[:count]
            left -= self._weight((word,))
        return ordered

    def _weight(self, words: Iterable[str]) -> float:
        most = 1 + len(self.folders)
        return sum(log(most / (self.spread[word] or 1)) for word in words)


def _words(text: str) -> Words:
    return frozenset(term for term in terms_of(text) if is_word(term))
