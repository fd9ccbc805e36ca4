"""Pure: the confidence of a text verdict: low for a file that fits no folder or two, and for a folder that attracts wrong files."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log
from statistics import median

from holdfast.organiser.classify.confidence import Curve, fit_curve
from holdfast.organiser.classify.profiles import DEFAULT_LIKENESS

POOR_PRECISION = 0.6
"""Below this precision, files for a folder are left to a person."""

REVIEW_ONLY = 0.5
"""The highest confidence for such a folder; below every sensible gate."""

BY_NAME_ALONE = 0.55
"""The highest confidence for a folder without files whose name is not a common one: a person should see its first files."""

FEW_EXAMPLES = 0.95
"""The highest confidence for few examples, when filing was tried on them or replayed on its own outcome."""

_OUTSIDER_SHARE = 0.1
"""The assumed share of files that belong to no folder, before anything is known."""

MIN_EXAMPLES_TO_COMPARE = 2
"""The number of examples from which the files of a folder can be compared with each other."""

_MIN_TRIALS = 3
_MIN_SCALE = 0.05
_MIN_FILES_TO_ADAPT = 20
_SAMPLE = 500
_ROUNDS = 20
_MIN_BELONGING = 0.3
_MAX_BELONGING = 0.98
_MARGIN_PRIOR = Curve(slope=2.5, offset=0.8, scale=0.4)
_NEARNESS_PRIOR = Curve(slope=4.0, offset=-1.0, scale=DEFAULT_LIKENESS)


@dataclass(frozen=True, slots=True)
class Trial:
    """An example that was classified without itself: the folder it would have gone to, and how clearly."""

    actual: int
    predicted: int
    margin: float
    nearness: float

    @property
    def is_right(self) -> bool:
        """Return whether it would have gone to its own folder."""
        return self.actual == self.predicted


@dataclass(frozen=True, slots=True)
class ConfidenceModel:
    """Turns margin and nearness into the chance of being right, as measured on the person's own folders.

    `margin_curve` is the chance that the best folder is the right one, `nearness_curve` the chance that a file belongs to
    any folder at all. `named_folders` are the folders with a common name, which says what belongs there.
    """

    margin_curve: Curve = _MARGIN_PRIOR
    nearness_curve: Curve = _NEARNESS_PRIOR
    example_counts: Sequence[int] = ()
    named_folders: frozenset[int] = field(default_factory=frozenset)
    precision: Sequence[float] = ()
    review_only: frozenset[int] = field(default_factory=frozenset)
    is_replay: bool = False

    @classmethod
    def fit(
        cls, trials: Sequence[Trial], inside: Sequence[float], outside: Sequence[float], counts: Sequence[int]
    ) -> "ConfidenceModel":
        """Fit the curves; `inside` and `outside` are the likenesses of examples to their own folder and to other folders."""
        if not trials:
            return cls(example_counts=counts, precision=[0.0] * len(counts))
        scale = max(_MIN_SCALE, median(trial.margin for trial in trials))
        prior = Curve(_MARGIN_PRIOR.slope, _MARGIN_PRIOR.offset, scale)
        margin_curve = fit_curve(prior, [trial.margin for trial in trials], [trial.is_right for trial in trials])
        precision = [_precision(trials, folder) for folder in range(len(counts))]
        poor = frozenset(folder for folder in range(len(counts)) if _is_poor(trials, folder))
        return cls(margin_curve, _fit_nearness(inside, outside), counts, precision=precision, review_only=poor)

    def rescale_replay(self, margin: Sequence[float], review_only: frozenset[int]) -> "ConfidenceModel":
        """Return a model that was fitted to a replay, rescaled to the real outcome.

        `margin` are the real margins, `review_only` the folders that attracted wrong files in the real trials.
        """
        margin_curve = replace(self.margin_curve, scale=max(_MIN_SCALE, median(margin)))
        return replace(self, margin_curve=margin_curve, review_only=review_only, is_replay=True)

    def adapt_to(self, nearness: Sequence[float]) -> "ConfidenceModel":
        """Return the model adapted to many unfiled files: their nearness shows how many of them belong to no folder."""
        if len(nearness) < _MIN_FILES_TO_ADAPT or self.nearness_curve is _NEARNESS_PRIOR:
            return self
        before = _log_odds(1 - _OUTSIDER_SHARE)
        sample = nearness[:: 1 + len(nearness) // _SAMPLE]
        shift = 0.0
        for _ in range(_ROUNDS):
            shifted = replace(self.nearness_curve, offset=self.nearness_curve.offset + shift)
            belonging = sum(shifted.at(value) for value in sample) / len(sample)
            shift = _log_odds(min(_MAX_BELONGING, max(_MIN_BELONGING, belonging))) - before
        shifted = replace(self.nearness_curve, offset=self.nearness_curve.offset + shift)
        return replace(self, nearness_curve=shifted)

    def confidence(self, folder: int, margin: float, nearness: float) -> float:
        """Return the chance that a folder is right for a file."""
        chance = self.margin_curve.at(margin) * self.nearness_curve.at(nearness)
        chance = min(chance, self._highest(folder))
        return min(chance, REVIEW_ONLY) if folder in self.review_only else chance

    def chance_to_belong(self, nearness: float) -> float:
        """Return the chance that a file belongs to any folder at all."""
        return self.nearness_curve.at(nearness)

    def _highest(self, folder: int) -> float:
        """Return the highest confidence that the number of examples allows."""
        examples = self.example_counts[folder] if folder < len(self.example_counts) else 0
        if not examples and folder not in self.named_folders:
            return BY_NAME_ALONE
        is_tried = self.is_replay or examples >= MIN_EXAMPLES_TO_COMPARE
        return max(1 - 1 / (5 + 4 * examples), FEW_EXAMPLES if is_tried else 0.0)


def _fit_nearness(inside: Sequence[float], outside: Sequence[float]) -> Curve:
    values = [*inside, *outside]
    if len(inside) < _MIN_TRIALS or len(outside) < _MIN_TRIALS:
        return _NEARNESS_PRIOR
    outside_weight = _OUTSIDER_SHARE / (1 - _OUTSIDER_SHARE) * len(inside) / len(outside)
    weights = [1.0] * len(inside) + [outside_weight] * len(outside)
    prior = Curve(_NEARNESS_PRIOR.slope, _NEARNESS_PRIOR.offset, max(0.1, median(inside)))
    return fit_curve(prior, values, [True] * len(inside) + [False] * len(outside), weights)


def _precision(trials: Sequence[Trial], folder: int) -> float:
    sent = [trial.is_right for trial in trials if trial.predicted == folder]
    return (sum(sent) + 1) / (len(sent) + 2)


def _is_poor(trials: Sequence[Trial], folder: int) -> bool:
    sent = [trial.is_right for trial in trials if trial.predicted == folder]
    return len(sent) >= _MIN_TRIALS and sum(sent) / len(sent) < POOR_PRECISION


def _log_odds(share: float) -> float:
    return log(share / (1 - share))
