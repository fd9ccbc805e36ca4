"""Pure: when to say nothing: a file that belongs nowhere, one that two folders claim, a folder that attracts wrong files."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log
from statistics import median

from holdfast.organiser.classify.confidence import Curve, fitted
from holdfast.organiser.classify.profiles import DEFAULT_LIKENESS

POOR_PRECISION = 0.6
"""Below it, a folder's files are for a person to look at."""

REVIEW_ONLY = 0.5
"""The most that a file bound for such a folder can reach; below every sensible gate."""

BY_NAME_ALONE = 0.55
"""The most for a folder without files whose name is no common one: a person should see the first of them."""

TRIED = 0.95
"""The most that few examples can promise when filing was tried on them, or played again on its own outcome."""

_STRANGERS = 0.1
"""Share of files that belong to no folder, in a folder about which nothing is known."""

ENOUGH = 2
"""Known files of a folder that can judge each other."""

_FEW = 3
_LEAST_SCALE = 0.05
_CROWD = 20
_SAMPLE = 500
_ROUNDS = 20
_FEWEST_BELONG = 0.3
_MOST_BELONG = 0.98
_MARGIN_PRIOR = Curve(slope=2.5, offset=0.8, scale=0.4)
_NEARNESS_PRIOR = Curve(slope=4.0, offset=-1.0, scale=DEFAULT_LIKENESS)


@dataclass(frozen=True, slots=True)
class Trial:
    """A known file that was judged without itself: which folder it would have gone to, and how clearly."""

    actual: int
    predicted: int
    margin: float
    nearness: float

    @property
    def right(self) -> bool:
        """Return whether it would have gone where it lies."""
        return self.actual == self.predicted


@dataclass(frozen=True, slots=True)
class ConfidenceModel:
    """Turns margin and nearness into the chance of being right, as measured on the person's own folders.

    `named` are the folders whose names say what belongs there, `examples` how many known files each has.
    """

    which: Curve = _MARGIN_PRIOR
    anywhere: Curve = _NEARNESS_PRIOR
    examples: Sequence[int] = ()
    named: frozenset[int] = field(default_factory=frozenset)
    precision: Sequence[float] = ()
    review_only: frozenset[int] = field(default_factory=frozenset)
    replayed: bool = False

    @classmethod
    def learn(
        cls, trials: Sequence[Trial], inside: Sequence[float], outside: Sequence[float], counts: Sequence[int]
    ) -> "ConfidenceModel":
        """Fit the curves: `inside` and `outside` are similarities of known files to their own and to foreign folders."""
        if not trials:
            return cls(examples=counts, precision=[0.0] * len(counts))
        scale = max(_LEAST_SCALE, median(trial.margin for trial in trials))
        prior = Curve(_MARGIN_PRIOR.slope, _MARGIN_PRIOR.offset, scale)
        which = fitted(prior, [trial.margin for trial in trials], [trial.right for trial in trials])
        precision = [_precision(trials, folder) for folder in range(len(counts))]
        poor = frozenset(folder for folder in range(len(counts)) if _is_poor(trials, folder))
        return cls(which, _anywhere(inside, outside), counts, precision=precision, review_only=poor)

    def played_again(self, margin: Sequence[float], review_only: frozenset[int]) -> "ConfidenceModel":
        """Return the judge for filing as it was, when it learned from filing played again.

        `margin` is how clear the real outcome was, `review_only` the folders that attracted wrong files when really tried.
        """
        which = replace(self.which, scale=max(_LEAST_SCALE, median(margin)))
        return replace(self, which=which, review_only=review_only, replayed=True)

    def adapted(self, nearness: Sequence[float]) -> "ConfidenceModel":
        """Return the judge for a crowd of unfiled files: the share of strangers among them is read off their nearness."""
        if len(nearness) < _CROWD or self.anywhere is _NEARNESS_PRIOR:
            return self
        before = _odds(1 - _STRANGERS)
        sample = nearness[:: 1 + len(nearness) // _SAMPLE]
        shift = 0.0
        for _ in range(_ROUNDS):
            shifted = replace(self.anywhere, offset=self.anywhere.offset + shift)
            belonging = sum(shifted.at(value) for value in sample) / len(sample)
            shift = _odds(min(_MOST_BELONG, max(_FEWEST_BELONG, belonging))) - before
        return replace(self, anywhere=replace(self.anywhere, offset=self.anywhere.offset + shift))

    def confidence(self, folder: int, margin: float, nearness: float) -> float:
        """Return how likely a folder is right for a file."""
        chance = self.which.at(margin) * self.anywhere.at(nearness)
        chance = min(chance, self._most(folder))
        return min(chance, REVIEW_ONLY) if folder in self.review_only else chance

    def belongs(self, nearness: float) -> float:
        """Return how likely a file belongs to any folder at all."""
        return self.anywhere.at(nearness)

    def _most(self, folder: int) -> float:
        """Return the most that so few examples can promise."""
        known = self.examples[folder] if folder < len(self.examples) else 0
        if not known and folder not in self.named:
            return BY_NAME_ALONE
        tried = self.replayed or known >= ENOUGH
        return max(1 - 1 / (5 + 4 * known), TRIED if tried else 0.0)


def _anywhere(inside: Sequence[float], outside: Sequence[float]) -> Curve:
    values = [*inside, *outside]
    if len(inside) < _FEW or len(outside) < _FEW:
        return _NEARNESS_PRIOR
    share = _STRANGERS / (1 - _STRANGERS) * len(inside) / len(outside)
    weights = [1.0] * len(inside) + [share] * len(outside)
    prior = Curve(_NEARNESS_PRIOR.slope, _NEARNESS_PRIOR.offset, max(0.1, median(inside)))
    return fitted(prior, values, [True] * len(inside) + [False] * len(outside), weights)


def _precision(trials: Sequence[Trial], folder: int) -> float:
    sent = [trial.right for trial in trials if trial.predicted == folder]
    return (sum(sent) + 1) / (len(sent) + 2)


def _is_poor(trials: Sequence[Trial], folder: int) -> bool:
    sent = [trial.right for trial in trials if trial.predicted == folder]
    return len(sent) >= _FEW and sum(sent) / len(sent) < POOR_PRECISION


def _odds(share: float) -> float:
    return log(share / (1 - share))
