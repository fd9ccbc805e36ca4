"""Folder profiles in use: learned once from the known files and those at hand, then asked where each of these belongs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy

from holdfast.organiser.classify.confidence_model import ENOUGH, ConfidenceModel, Trial
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.evaluate import held_out, trials_of
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores, nearest
from holdfast.organiser.classify.replay import replayed
from holdfast.organiser.classify.seeds import seeds
from holdfast.organiser.classify.space import DIMENSIONS, Space
from holdfast.organiser.classify.starter import known_as
from holdfast.organiser.classify.tfidf import Floats, Rows, is_word, terms_of
from holdfast.organiser.model import MIN_CHARS, Category, Evidence, Example, Verdict
from holdfast.text.display import display_name

_TERMS = 5
_UNSURE = 0.5
_UNLIKE = -1.0
"""The likeness to a folder without a file to compare with."""


@dataclass(frozen=True, slots=True)
class TextClassifier:
    """What was learned, and the files at hand as points; numbers of files are those of the sequence given."""

    names: Sequence[str]
    space: Space
    rows: Rows
    points: Floats
    examples: Sequence[Example]
    example_points: Floats
    labels: Labels
    scores: Scores
    judged: Labels
    judged_scores: Scores
    trials: Sequence[Trial]
    judge: ConfidenceModel
    vocabulary: Sequence[str]
    telling: Floats

    @classmethod
    def learn(
        cls,
        taxonomy: Sequence[Category],
        documents: Sequence[Counter[str]],
        texts: Sequence[str],
        models: EmbeddingModels,
        check: Callable[[], None],
        chosen: Sequence[int] | None = None,
    ) -> "TextClassifier":
        """Learn from the taxonomy's examples, and from the terms and texts of the files at hand.

        `chosen` are the files that tell which words matter, all where it is None.
        """
        speaking = [
            (at, example)
            for at, category in enumerate(taxonomy)
            for example in category.examples
            if len(example.text) >= MIN_CHARS
        ]
        examples = [example for _, example in speaking]
        labels = numpy.array([at for at, _ in speaking], dtype=numpy.int64)
        known = [terms_of(example.text, example.name, example.content_type) for example in examples]
        check()
        telling_files = documents if chosen is None else [documents[at] for at in chosen]
        space = Space.learn(_mixed(known, telling_files), max(DIMENSIONS, 4 * len(taxonomy)))
        check()
        rows = space.rows(documents)
        example_rows = space.rows(known)
        where = numpy.concatenate((space.points(example_rows), space.points(rows)))
        where = models.joined(where, [*(example.text for example in examples), *texts], check)
        example_points, points = where[: len(examples)], where[len(examples) :]
        first = seeds(space, documents, texts, taxonomy, models, check)
        seeded = numpy.array([category for _, category in first], dtype=numpy.int64)
        all_points = (
            numpy.concatenate((example_points, points[[file for file, _ in first]])) if first else example_points
        )
        all_labels = numpy.concatenate((labels, seeded))
        check()
        profiles = Profiles.of(all_points, all_labels, len(taxonomy), points)
        scores = profiles.scores()
        check()
        judged, judged_scores = held_out(profiles)
        trials = trials_of(all_labels[judged], judged_scores)
        counts = numpy.bincount(labels, minlength=len(taxonomy)).tolist()
        judge = _judge(profiles, scores, trials, counts)
        named = frozenset(at for at, category in enumerate(taxonomy) if known_as(category.name) is not None)
        judge = replace(judge, named=named)
        vocabulary = list(space.words.index)
        telling = _telling(example_rows, labels, rows, first, len(taxonomy), space)
        return cls(
            [category.name for category in taxonomy], space, rows, points, examples, example_points, labels,
            scores, judged, judged_scores, trials, judge, vocabulary, telling,
        )  # fmt: skip

    def known(self) -> list[tuple[int, Example]]:
        """Return the files that were learned from, with the numbers of their folders."""
        return list(zip(self.labels.tolist(), self.examples, strict=True))

    def claimed(self) -> Labels:
        """Return how many files at hand each folder has the strongest claim to."""
        counts: Labels = numpy.bincount(self.scores.best, minlength=len(self.names))
        return counts

    def verdicts(self) -> list[Verdict]:
        """Return where each file at hand belongs, with the evidence."""
        best, margin, near = self.scores.best, self.scores.margin, self.scores.nearness
        return [self.verdict(file, int(best[file]), self.judge.confidence(int(best[file]), float(margin[file]), float(near[file])))
                for file in range(len(self.points))]  # fmt: skip

    def verdict(self, file: int, category: int, confidence: float) -> Verdict:
        """Return the verdict that a file belongs to a category, with what speaks for it."""
        evidence = Evidence(self._nearest(file, category), self._terms(file, category))
        return Verdict(
            self.names[category], confidence, False, self._reasoning(file, category, confidence, evidence), evidence
        )

    def _nearest(self, file: int, category: int) -> tuple[str, ...]:
        mine = numpy.flatnonzero(self.labels == category)
        found = nearest(self.points[file : file + 1], self.example_points[mine])[0]
        return tuple(self.examples[int(mine[at])].name for at in found)

    def _terms(self, file: int, category: int) -> tuple[str, ...]:
        columns, values = self.rows.row(file)
        shares = values * self.telling[category, columns]
        words = [self.vocabulary[columns[at]] for at in numpy.argsort(-shares)[: 4 * _TERMS] if shares[at] > 0]
        return tuple(word for word in words if is_word(word))[:_TERMS]

    def _reasoning(self, file: int, category: int, confidence: float, evidence: Evidence) -> str:
        name = self.names[category]
        if self.judge.belongs(float(self.scores.nearness[file])) < _UNSURE:
            near = f"; {name} is the nearest" if self.scores.likeness[file, category] > _UNLIKE else ""
            return f"It is not clearly like the files of any folder{near}."
        if category in self.judge.review_only:
            return f"{name} is nearest, but files were often sent there wrongly when the folder was tried: review only."
        said = f"Nearest to {name}"
        if evidence.nearest:
            said += f", to {display_name(evidence.nearest[0])}"
        if evidence.terms:
            said += f"; telling words: {', '.join(evidence.terms)}"
        if confidence < _UNSURE and len(self.names) > 1:
            second = int(numpy.argsort(-self.scores.claims[file])[1])
            said += f"; {self.names[second]} is almost as near"
        return f"{said}."


def _judge(profiles: Profiles, scores: Scores, trials: Sequence[Trial], counts: Sequence[int]) -> ConfidenceModel:
    """Return the judge that the known files make, and where next to none are known, the outcome played again."""
    near = scores.nearness.tolist()
    tried = ConfidenceModel.learn(trials, profiles.own, profiles.foreign, counts)
    replay = replayed(profiles, scores) if max(counts) < ENOUGH else None
    if replay is None:
        return tried.adapted(near)
    judge = ConfidenceModel.learn(replay.trials, replay.inside, replay.outside, counts)
    judge = judge.played_again(scores.margin.tolist(), tried.review_only)
    # How like their folders files are was measured on this very crowd: it may lower hopes, not raise them a second time.
    return min(judge, judge.adapted(near), key=lambda one: one.anywhere.offset)


def _mixed(known: Sequence[Counter[str]], unfiled: Sequence[Counter[str]]) -> list[Counter[str]]:
    """Return both kinds of files, the known ones no rarer than the others, so that an even sample holds enough of each."""
    step = max(1, len(unfiled) // max(1, len(known), 500))
    return [*known, *unfiled[::step]]


def _telling(
    example_rows: Rows, labels: Labels, rows: Rows, first: Sequence[tuple[int, int]], categories: int, space: Space
) -> Floats:
    """Return for each folder how much more each term weighs there than elsewhere."""
    weights = numpy.zeros((categories, len(space.words.index)), dtype=numpy.float32)
    counts = numpy.zeros(categories)
    owners = [(example_rows, at, int(label)) for at, label in enumerate(labels)]
    owners += [(rows, file, category) for file, category in first]
    for source, at, category in owners:
        columns, values = source.row(at)
        weights[category, columns] += values
        counts[category] += 1
    weights /= numpy.maximum(counts, 1)[:, None]
    return weights - space.mean
