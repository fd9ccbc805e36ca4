"""Classifies near duplicates: a file with almost the same words as a known file goes to its folder.

The next invoice of the same vendor is an example. Where most files are of one kind, the words that they share distinguish
none of them, and each looks as if it belonged nowhere; almost equal words do not depend on the other files.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log

from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.classify.word_space import count_terms, is_word
from holdfast.organiser.model import Evidence, Verdict
from holdfast.text.display import display_name

NEAR_DUPLICATE = 0.85
"""The confidence of the verdict; lower than that of the same text."""

_MIN_OVERLAP = 0.8
_MIN_WORDS = 8

Words = frozenset[str]


def apply_near_duplicates(
    classifier: TextClassifier, verdicts: Sequence[Verdict], texts: Sequence[str], check: Callable[[], None]
) -> list[Verdict]:
    """Return the verdicts, replaced for an uncertain file that is a near duplicate of known files in exactly one folder."""
    if all(verdict.confidence >= NEAR_DUPLICATE for verdict in verdicts):
        return list(verdicts)
    known = NearDuplicates.build(classifier)
    result = []
    for verdict, text in zip(verdicts, texts, strict=True):
        check()
        is_sure = verdict.confidence >= NEAR_DUPLICATE
        result.append(verdict if is_sure else known.find_verdict(_words(text)) or verdict)
    return result


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """The words of the known files. A word in few folders weighs more; a word in all folders weighs next to nothing.

    Two files that share most of their weight share at least one of the heaviest words of each, so `index` needs only
    those. Folders whose names differ by a number, such as a year, cannot be distinguished by words: they are untrusted.
    """

    files: Sequence[tuple[int, str, Words]]
    folders: Sequence[str]
    untrusted: frozenset[int]
    folders_per_word: Counter[str]
    index: dict[str, list[int]]

    @classmethod
    def build(cls, classifier: TextClassifier) -> "NearDuplicates":
        """Return the words of the examples that a classifier was trained from."""
        files = [
            (label, example.name, _words(example.text))
            for label, example in zip(classifier.labels.tolist(), classifier.examples, strict=True)
        ]
        folders_per_word = Counter(word for _, word in {(label, word) for label, _, words in files for word in words})
        numbered = {at for at, folder in enumerate(classifier.names) if any(char.isdigit() for char in folder)}
        untrusted = classifier.confidence_model.review_only | numbered
        known = cls(files, classifier.names, untrusted, folders_per_word, {})
        for at, (_, _, words) in enumerate(files):
            for word in known._heaviest(words):
                known.index.setdefault(word, []).append(at)
        return known

    def find_verdict(self, words: Words) -> Verdict | None:
        """Return the verdict for the folder of the near duplicates; None if there is no such folder, or more than one."""
        if len(words) < _MIN_WORDS:
            return None
        candidates = sorted({at for word in self._heaviest(words) for at in self.index.get(word, ())})
        duplicates = {
            label: name
            for label, name, known in (self.files[at] for at in candidates)
            if self._weight(words & known) >= _MIN_OVERLAP * self._weight(words | known)
        }
        if len(duplicates) != 1 or not self.untrusted.isdisjoint(duplicates):
            return None
        label, name = duplicates.popitem()
        rule = f"almost the same words as {display_name(name)}"
        folder = self.folders[label]
        return Verdict(
            folder, NEAR_DUPLICATE, reasoning=f"It has {rule}, in {folder}.", evidence=Evidence((name,), (), rule)
        )

    def _heaviest(self, words: Words) -> list[str]:
        """Return the heaviest words, as few as leave the others lighter than what a near duplicate must share."""
        ordered = sorted(words, key=lambda word: (self.folders_per_word[word] or 1, word))
        left, enough = self._weight(words), _MIN_OVERLAP * self._weight(words)
        for count, word in enumerate(ordered):
            if left < enough:
                return ordered[:count]
            left -= self._weight((word,))
        return ordered

    def _weight(self, words: Iterable[str]) -> float:
        folders = 1 + len(self.folders)
        return sum(log(folders / (self.folders_per_word[word] or 1)) for word in words)


def _words(text: str) -> Words:
    return frozenset(term for term in count_terms(text) if is_word(term))
