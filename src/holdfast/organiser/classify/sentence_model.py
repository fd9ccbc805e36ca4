"""Classifies uncertain files again by a sentence model, weighted by how often it is right on the known files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy

from holdfast.organiser.classify.confidence_model import ConfidenceModel
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.evaluate import score_held_out, trials_from_scores
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores
from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.classify.word_space import Floats, normalise
from holdfast.organiser.model import Verdict

PER_FOLDER = 4
"""Examples of a folder that are embedded."""

MIN_BUDGET = 48
_FILES_PER_EMBEDDING = 8


def embedding_budget(file_count: int) -> int:
    """Return how many texts may be embedded for a number of files: the model is a hundred times slower than the rest."""
    return max(MIN_BUDGET, file_count // _FILES_PER_EMBEDDING)


def apply_sentence_model(
    classifier: TextClassifier,
    verdicts: Sequence[Verdict],
    texts: Sequence[str],
    models: EmbeddingModels,
    ask_below: float,
    check: Callable[[], None],
) -> list[Verdict]:
    """Return the verdicts, those below `ask_below` replaced by the verdicts of words and model together.

    The model is tried on examples first: where it would not have filed more of them correctly, the verdicts stand.
    """
    result = list(verdicts)
    examples = _pick_examples(classifier)
    budget = embedding_budget(len(texts)) - len(examples)
    below = (at for at, verdict in enumerate(verdicts) if verdict.confidence < ask_below)
    uncertain = sorted(below, key=lambda at: -verdicts[at].confidence)[: max(0, budget)]
    if not uncertain or len(examples) < 2 * PER_FOLDER:
        return result
    combined = CombinedModel.train(classifier, examples, models, check)
    vectors = models.embed_sentences([texts[at] for at in uncertain], check) if combined is not None else None
    if combined is None or vectors is None:
        return result
    scores = combined.scores(classifier, uncertain, vectors)
    for row, at in enumerate(uncertain):
        best = int(scores.best[row])
        margin, nearness = float(scores.margin[row]), float(scores.nearness[row])
        result[at] = classifier.verdict(at, best, combined.confidence_model.confidence(best, margin, nearness))
    return result


def _pick_examples(classifier: TextClassifier) -> list[int]:
    """Return examples that the words were tried on, evenly spread over each folder."""
    positions: list[int] = []
    for folder in range(len(classifier.names)):
        tested_rows = classifier.held_out[classifier.held_out < len(classifier.labels)]
        own = numpy.sort(tested_rows[classifier.labels[tested_rows] == folder])
        count = min(len(own), PER_FOLDER)
        positions += [int(own[at * len(own) // count]) for at in range(count)]
    return positions


@dataclass(frozen=True, slots=True)
class CombinedModel:
    """The sentence vectors of examples, and the scales at which words and model count the same."""

    points: Floats
    labels: Labels
    mean: Floats
    words_scale: float
    model_scale: float
    confidence_model: ConfidenceModel

    @classmethod
    def train(
        cls, classifier: TextClassifier, positions: Sequence[int], models: EmbeddingModels, check: Callable[[], None]
    ) -> "CombinedModel | None":
        """Embed the picked examples; None if there is no model, or if it files no more of them correctly than words do."""
        row_of = {int(at): row for row, at in enumerate(classifier.held_out)}
        labels = classifier.labels[list(positions)]
        if all(classifier.trials[row_of[at]].is_right for at in positions):
            return None
        vectors = models.embed_sentences([classifier.examples[at].text for at in positions], check)
        if vectors is None:
            return None
        mean: Floats = vectors.mean(axis=0)
        points = normalise(vectors - mean)
        held_out, by_model = score_held_out(Profiles.build(points, labels, len(classifier.names), points[:0]))
        rows = [row_of[positions[at]] for at in held_out]
        by_words = Scores(classifier.held_out_scores.likeness[rows], classifier.held_out_scores.claims[rows])
        words_scale, model_scale = _scale(by_words), _scale(by_model)
        by_both = Scores(by_words.likeness, by_words.claims / words_scale + by_model.claims / model_scale)
        trials = trials_from_scores(labels[held_out], by_both)
        word_trials = trials_from_scores(labels[held_out], by_words)
        if sum(trial.is_right for trial in trials) <= sum(trial.is_right for trial in word_trials):
            return None
        curve = ConfidenceModel.fit(trials, [], [], classifier.confidence_model.example_counts).margin_curve
        confidence_model = replace(classifier.confidence_model, margin_curve=curve)
        return cls(points, labels, mean, words_scale, model_scale, confidence_model)

    def scores(self, classifier: TextClassifier, files: Sequence[int], vectors: Floats) -> Scores:
        """Return the scores of files by words and model together."""
        profiles = Profiles.build(self.points, self.labels, len(classifier.names), normalise(vectors - self.mean))
        by_words, by_model = classifier.scores.claims[list(files)], profiles.scores().claims
        claims = by_words / self.words_scale + by_model / self.model_scale
        return Scores(classifier.scores.likeness[list(files)], claims)


def _scale(scores: Scores) -> float:
    """Return the median margin, by which the claims of two models can be compared."""
    margins = scores.margin.tolist()
    return max(0.05, float(median(margins))) if margins else 1.0
