"""A second opinion for uncertain files: what a sentence model says, weighed by how right it proves on the known files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy

from holdfast.organiser.classify.confidence_model import ConfidenceModel
from holdfast.organiser.classify.embeddings import EmbeddingModels
from holdfast.organiser.classify.evaluate import held_out, trials_of
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores
from holdfast.organiser.classify.space import unit
from holdfast.organiser.classify.text_classifier import TextClassifier
from holdfast.organiser.classify.tfidf import Floats
from holdfast.organiser.model import Verdict

PER_FOLDER = 4
"""Known files of a folder that are embedded."""

LEAST_BUDGET = 48
_SHARE = 8


def budget(files: int) -> int:
    """Return how many texts may be embedded for so many files: the model is a hundred times slower than all the rest."""
    return max(LEAST_BUDGET, files // _SHARE)


def reconsidered(
    learned: TextClassifier,
    verdicts: Sequence[Verdict],
    texts: Sequence[str],
    models: EmbeddingModels,
    ask_below: float,
    check: Callable[[], None],
) -> list[Verdict]:
    """Return the verdicts, those below the bound replaced by what words and model say together.

    Known files are asked about first: where the model would not have filed more of them rightly, the words stand.
    """
    result = list(verdicts)
    chosen = _chosen(learned)
    left = budget(len(texts)) - len(chosen)
    doubtful = (at for at, verdict in enumerate(verdicts) if verdict.confidence < ask_below)
    unsure = sorted(doubtful, key=lambda at: -verdicts[at].confidence)[: max(0, left)]
    if not unsure or len(chosen) < 2 * PER_FOLDER:
        return result
    opinion = CombinedModel.of(learned, chosen, models, check)
    vectors = models.embedded([texts[at] for at in unsure], check) if opinion is not None else None
    if opinion is None or vectors is None:
        return result
    both = opinion.scores(learned, unsure, vectors)
    for row, at in enumerate(unsure):
        best = int(both.best[row])
        confidence = opinion.judge.confidence(best, float(both.margin[row]), float(both.nearness[row]))
        result[at] = learned.verdict(at, best, confidence)
    return result


def _chosen(learned: TextClassifier) -> list[int]:
    """Return known files that the words were tried on, evenly spread over each folder."""
    chosen: list[int] = []
    for folder in range(len(learned.names)):
        tried = learned.judged[learned.judged < len(learned.labels)]
        mine = numpy.sort(tried[learned.labels[tried] == folder])
        kept = min(len(mine), PER_FOLDER)
        chosen += [int(mine[at * len(mine) // kept]) for at in range(kept)]
    return chosen


@dataclass(frozen=True, slots=True)
class CombinedModel:
    """What the model knows of the folders, and how words and model weigh together."""

    points: Floats
    labels: Labels
    mean: Floats
    words_scale: float
    model_scale: float
    judge: ConfidenceModel

    @classmethod
    def of(
        cls, learned: TextClassifier, chosen: Sequence[int], models: EmbeddingModels, check: Callable[[], None]
    ) -> "CombinedModel | None":
        """Ask the model about known files; None when it is missing, or of no help with them."""
        place = {int(at): row for row, at in enumerate(learned.judged)}
        labels = learned.labels[list(chosen)]
        if all(learned.trials[place[at]].right for at in chosen):
            return None
        vectors = models.embedded([learned.examples[at].text for at in chosen], check)
        if vectors is None:
            return None
        mean: Floats = vectors.mean(axis=0)
        points = unit(vectors - mean)
        judged, meant = held_out(Profiles.of(points, labels, len(learned.names), points[:0]))
        rows = [place[chosen[at]] for at in judged]
        worded = Scores(learned.judged_scores.likeness[rows], learned.judged_scores.claims[rows])
        words_scale, model_scale = _scale(worded), _scale(meant)
        both = Scores(worded.likeness, worded.claims / words_scale + meant.claims / model_scale)
        trials, alone = trials_of(labels[judged], both), trials_of(labels[judged], worded)
        if sum(trial.right for trial in trials) <= sum(trial.right for trial in alone):
            return None
        which = ConfidenceModel.learn(trials, [], [], learned.judge.examples).which
        return cls(points, labels, mean, words_scale, model_scale, replace(learned.judge, which=which))

    def scores(self, learned: TextClassifier, files: Sequence[int], vectors: Floats) -> Scores:
        """Return how files stand to each folder by words and model together."""
        profiles = Profiles.of(self.points, self.labels, len(learned.names), unit(vectors - self.mean))
        claims = learned.scores.claims[list(files)] / self.words_scale + profiles.scores().claims / self.model_scale
        return Scores(learned.scores.likeness[list(files)], claims)


def _scale(scores: Scores) -> float:
    margins = scores.margin.tolist()
    return max(0.05, float(median(margins))) if margins else 1.0
