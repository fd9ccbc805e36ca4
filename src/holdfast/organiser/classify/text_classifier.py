"""Classifies files by their words: trained from the examples of each category and the files at hand.

Words become points (tfidf, space), points get scores for each folder (profiles), and scores become a confidence
(confidence_model) that is measured on the examples themselves (evaluate, replay).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy

from holdfast.organiser.classify.confidence_model import MIN_EXAMPLES_TO_COMPARE, ConfidenceModel, Trial
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.evaluate import score_held_out, trials_from_scores
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores, find_nearest, leave_one_out
from holdfast.organiser.classify.replay import replay_filing
from holdfast.organiser.classify.seeds import find_seeds
from holdfast.organiser.classify.starter import find_starter
from holdfast.organiser.classify.word_space import DIMENSIONS, Floats, Rows, Space, count_terms, is_word
from holdfast.organiser.model import MIN_CHARS, MIN_GUESS, Category, Evidence, Example, Verdict
from holdfast.text.display import display_name

_EVIDENCE_TERMS = 5
_UNSURE = 0.5
_NO_LIKENESS = -1.0
"""The likeness to a folder without a file to compare with."""

_MIN_SAMPLE = 500
_CROWD_SHARE = 0.4
"""Files are a crowd when one folder claims more than this share of all files."""
_MIN_FOLDERS = 3
_MIN_FILES = 5
_MIN_OF_EACH = 2
_MIN_LIKENESS = 0.05


@dataclass(frozen=True, slots=True)
class TextClassifier:
    """A trained classifier; files are indices into the sequence given to `train`, categories indices into `names`.

    `held_out` are the examples and seeds that were classified without themselves, with their scores and trials.
    `term_weights` says for each folder how much more each term of the vocabulary weighs there than elsewhere.
    """

    names: Sequence[str]
    space: Space
    rows: Rows
    points: Floats
    examples: Sequence[Example]
    example_points: Floats
    labels: Labels
    scores: Scores
    held_out: Labels
    held_out_scores: Scores
    trials: Sequence[Trial]
    confidence_model: ConfidenceModel
    vocabulary: Sequence[str]
    term_weights: Floats

    @classmethod
    def train(
        cls,
        taxonomy: Sequence[Category],
        documents: Sequence[Counter[str]],
        texts: Sequence[str],
        models: EmbeddingModels,
        check: Callable[[], None],
        sample_positions: Sequence[int] | None = None,
    ) -> "TextClassifier":
        """Train from the examples of the taxonomy, and from the terms and the texts of the files.

        `sample_positions` are the files whose word statistics count, all if it is None.
        """
        labelled = [
            (label, example)
            for label, category in enumerate(taxonomy)
            for example in category.examples
            if len(example.text) >= MIN_CHARS
        ]
        examples = [example for _, example in labelled]
        labels = numpy.array([label for label, _ in labelled], dtype=numpy.int64)
        example_documents = [count_terms(example.text, example.name, example.content_type) for example in examples]
        check()
        sample = documents if sample_positions is None else [documents[at] for at in sample_positions]
        space = Space.learn(_mix(example_documents, sample), max(DIMENSIONS, 4 * len(taxonomy)))
        check()
        rows = space.rows(documents)
        example_rows = space.rows(example_documents)
        joined = numpy.concatenate((space.points(example_rows), space.points(rows)))
        joined = models.append_word_vectors(joined, [*(example.text for example in examples), *texts], check)
        example_points, points = joined[: len(examples)], joined[len(examples) :]
        seeds = find_seeds(space, documents, texts, taxonomy, models, check)
        seed_labels = numpy.array([category for _, category in seeds], dtype=numpy.int64)
        known_points = (
            numpy.concatenate((example_points, points[[file for file, _ in seeds]])) if seeds else example_points
        )
        known_labels = numpy.concatenate((labels, seed_labels))
        check()
        profiles = Profiles.build(known_points, known_labels, len(taxonomy), points)
        scores = profiles.scores()
        check()
        held_out, held_out_scores = score_held_out(profiles)
        trials = trials_from_scores(known_labels[held_out], held_out_scores)
        example_counts = numpy.bincount(labels, minlength=len(taxonomy)).tolist()
        named_folders = frozenset(at for at, category in enumerate(taxonomy) if find_starter(category.name) is not None)
        confidence_model = replace(
            _fit_confidence(profiles, scores, trials, example_counts), named_folders=named_folders
        )
        vocabulary = list(space.words.index)
        term_weights = _term_weights(example_rows, labels, rows, seeds, len(taxonomy), space)
        return cls(
            [category.name for category in taxonomy], space, rows, points, examples, example_points, labels,
            scores, held_out, held_out_scores, trials, confidence_model, vocabulary, term_weights,
        )  # fmt: skip

    def count_claimed(self) -> Labels:
        """Return for each folder how many files it has the strongest claim to."""
        counts: Labels = numpy.bincount(self.scores.best, minlength=len(self.names))
        return counts

    def verdicts(self) -> list[Verdict]:
        """Return the verdict on each file, with the evidence."""
        best, margin, nearness = self.scores.best, self.scores.margin, self.scores.nearness
        result = []
        for file in range(len(self.points)):
            category = int(best[file])
            confidence = self.confidence_model.confidence(category, float(margin[file]), float(nearness[file]))
            result.append(self.verdict(file, category, confidence))
        return result

    def verdict(self, file: int, category: int, confidence: float) -> Verdict:
        """Return the verdict that a file belongs to a category, with the evidence for it."""
        in_category = numpy.flatnonzero(self.labels == category)
        nearest = find_nearest(self.points[file : file + 1], self.example_points[in_category])[0]
        names = tuple(self.examples[int(in_category[at])].name for at in nearest)
        evidence = Evidence(names, self._evidence_terms(file, category))
        reasoning = self._reasoning(file, category, confidence, evidence)
        return Verdict(self.names[category], confidence, False, reasoning, evidence)

    def _evidence_terms(self, file: int, category: int) -> tuple[str, ...]:
        """Return the words of a file that speak most for a category."""
        columns, values = self.rows.row(file)
        shares = values * self.term_weights[category, columns]
        heaviest = numpy.argsort(-shares)[: 4 * _EVIDENCE_TERMS]
        words = [self.vocabulary[columns[at]] for at in heaviest if shares[at] > 0]
        return tuple(word for word in words if is_word(word))[:_EVIDENCE_TERMS]

    def _reasoning(self, file: int, category: int, confidence: float, evidence: Evidence) -> str:
        name = self.names[category]
        if self.confidence_model.chance_to_belong(float(self.scores.nearness[file])) < _UNSURE:
            is_guess = confidence >= MIN_GUESS and self.scores.likeness[file, category] > _NO_LIKENESS
            near = f"; {name} is the nearest" if is_guess else ""
            return f"It is not clearly like the files of any folder{near}."
        if category in self.confidence_model.review_only:
            return f"{name} is nearest, but files were often sent there wrongly when the folder was tried: review only."
        reasoning = f"Nearest to {name}"
        if evidence.nearest:
            reasoning += f", to {display_name(evidence.nearest[0])}"
        if evidence.terms:
            reasoning += f"; telling words: {', '.join(evidence.terms)}"
        if confidence < _UNSURE and len(self.names) > 1:
            second = int(numpy.argsort(-self.scores.claims[file])[1])
            reasoning += f"; {self.names[second]} is almost as near"
        return f"{reasoning}."


def _fit_confidence(
    profiles: Profiles, scores: Scores, trials: Sequence[Trial], example_counts: Sequence[int]
) -> ConfidenceModel:
    """Return the confidence model fitted to the examples, or to a replay where there are next to no examples."""
    nearness = scores.nearness.tolist()
    fitted = ConfidenceModel.fit(trials, profiles.own, profiles.foreign, example_counts)
    replay = replay_filing(profiles, scores) if max(example_counts) < MIN_EXAMPLES_TO_COMPARE else None
    if replay is None:
        return fitted.adapt_to(nearness)
    model = ConfidenceModel.fit(replay.trials, replay.inside, replay.outside, example_counts)
    model = model.rescale_replay(scores.margin.tolist(), fitted.review_only)
    # The replay has measured nearness on these very files: adapting to them may lower the confidence, never raise it.
    return min(model, model.adapt_to(nearness), key=lambda candidate: candidate.nearness_curve.offset)


def _mix(examples: Sequence[Counter[str]], unfiled: Sequence[Counter[str]]) -> list[Counter[str]]:
    """Return examples and unfiled files, the examples no rarer than the others, so that an even sample has enough of each."""
    step = max(1, len(unfiled) // max(1, len(examples), _MIN_SAMPLE))
    return [*examples, *unfiled[::step]]


def _term_weights(
    example_rows: Rows, labels: Labels, rows: Rows, seeds: Sequence[tuple[int, int]], categories: int, space: Space
) -> Floats:
    """Return for each folder how much more each term weighs there than elsewhere."""
    weights = numpy.zeros((categories, len(space.words.index)), dtype=numpy.float32)
    counts = numpy.zeros(categories)
    members = [(example_rows, at, int(label)) for at, label in enumerate(labels)]
    members += [(rows, file, category) for file, category in seeds]
    for source, at, category in members:
        columns, values = source.row(at)
        weights[category, columns] += values
        counts[category] += 1
    weights /= numpy.maximum(counts, 1)[:, None]
    return weights - space.mean


def train_balanced(
    taxonomy: Sequence[Category],
    documents: Sequence[Counter[str]],
    texts: Sequence[str],
    models: EmbeddingModels,
    check: Callable[[], None],
) -> TextClassifier:
    """Return a classifier trained from the taxonomy and the files, with no more files of a crowd than of the others.

    Words that most files share distinguish none of them, so each file of a crowd looks as if it belonged nowhere. In that
    case the classifier is trained again, with the word statistics of a balanced selection of the files. The second
    training counts where it shows that the crowd is known: its files are at least as similar to their folder as the
    folder's own files are to each other. For a crowd that belongs to no folder, the first training stands.
    """
    first = TextClassifier.train(taxonomy, documents, texts, models, check)
    if not _is_crowded(first):
        return first
    second = TextClassifier.train(taxonomy, documents, texts, models, check, sample_positions=_pick_balanced(first))
    return second if _is_crowd_known(second) else first


def _is_crowded(classifier: TextClassifier) -> bool:
    claimed = classifier.count_claimed()
    if len(claimed) < _MIN_FOLDERS or claimed.max() <= _CROWD_SHARE * len(classifier.points):
        return False
    return int((classifier.labels == claimed.argmax()).sum()) >= MIN_EXAMPLES_TO_COMPARE


def _pick_balanced(classifier: TextClassifier) -> list[int]:
    """Return evenly spread files of each folder, so many that with its examples no folder has far more than another."""
    example_counts = numpy.bincount(classifier.labels, minlength=len(classifier.names))
    per_folder = max(_MIN_FILES, int(numpy.median(example_counts + classifier.count_claimed())))
    positions: list[int] = []
    for folder in range(len(classifier.names)):
        claimed = numpy.flatnonzero(classifier.scores.best == folder)
        room = max(_MIN_OF_EACH, per_folder - int(example_counts[folder]))
        positions += claimed[:: max(1, len(claimed) // room)][:room].tolist()
    return sorted(positions)


def _is_crowd_known(classifier: TextClassifier) -> bool:
    """Return whether the files of the crowd are as similar to their folder as its examples are to each other."""
    crowd = int(classifier.count_claimed().argmax())
    examples = classifier.example_points[classifier.labels == crowd]
    own, _ = leave_one_out(examples, numpy.zeros(len(examples), dtype=numpy.int64), 1)
    nearness = classifier.scores.nearness[classifier.scores.best == crowd]
    return bool(own) and float(numpy.median(nearness)) >= max(_MIN_LIKENESS, float(numpy.median(own)))
