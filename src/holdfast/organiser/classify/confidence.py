"""Pure: confidence: the adjustments that apply to every classifier, and logistic curves fitted to outcomes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from holdfast.organiser.model import KEEP

CATCH_ALL = frozenset({"misc", "other"})
STEP = 0.2

_WORDS = re.compile(r"[^\W_]+")
_ROUNDS = 25
_HALVINGS = 12
_TOLERANCE = 1e-6
_PRIOR_WEIGHT = 1.0
"""How strongly the fit is held near the prior: about as much as a handful of outcomes."""

Observation = tuple[float, bool, float]
"""A value of the measure, whether the verdict was right, and the weight of the observation."""


def final_confidence(category: str, file_name: str, confidence: float) -> float:
    """Return the confidence that the gate is applied to, from 0 to 1, for the confidence of any classifier.

    A catch-all category loses 0.2, a category named by whole words in the file name gains 0.2, and staying is certain.
    """
    if category == KEEP:
        return 1.0
    if category.strip().casefold() in CATCH_ALL:
        confidence -= STEP
    if _is_named_in(category, file_name):
        confidence += STEP
    return min(1.0, max(0.0, confidence))


def _is_named_in(category: str, file_name: str) -> bool:
    category_words = _WORDS.findall(category.casefold())
    words = _WORDS.findall(file_name.casefold())
    spans = range(len(words) - len(category_words) + 1)
    return bool(category_words) and any(words[at : at + len(category_words)] == category_words for at in spans)


@dataclass(frozen=True, slots=True)
class Curve:
    """The chance of being right as a logistic curve over a measure: 1 / (1 + e^-(slope x / scale + offset))."""

    slope: float
    offset: float
    scale: float = 1.0

    def at(self, value: float) -> float:
        """Return the chance at a value of the measure."""
        return _logistic(self.slope * value / self.scale + self.offset)


def fit_curve(prior: Curve, values: Sequence[float], outcomes: Sequence[bool], weights: Sequence[float] = ()) -> Curve:
    """Return the curve of highest likelihood for the outcomes, held near the prior while there are few of them."""
    scaled = [value / prior.scale for value in values]
    observations = list(zip(scaled, outcomes, weights or [1.0] * len(scaled), strict=True))
    slope, offset = _minimise_loss(prior, observations, fit_slope=True)
    if slope < 0:
        slope, offset = _minimise_loss(replace(prior, slope=0.0), observations, fit_slope=False)
    return Curve(slope, offset, prior.scale)


def _minimise_loss(prior: Curve, observations: Sequence[Observation], *, fit_slope: bool) -> tuple[float, float]:
    """Return the slope and the offset with the lowest loss, by Newton's method; with `fit_slope` False only the offset."""
    slope, offset = prior.slope, prior.offset
    loss = _loss(prior, observations, slope, offset)
    for _ in range(_ROUNDS):
        step = _newton_step(prior, observations, slope, offset, fit_slope=fit_slope)
        for _ in range(_HALVINGS):
            new_loss = _loss(prior, observations, slope - step[0], offset - step[1])
            if new_loss <= loss:
                break
            step = (step[0] / 2, step[1] / 2)
        else:
            break
        slope, offset, loss = slope - step[0], offset - step[1], new_loss
        if abs(step[0]) + abs(step[1]) < _TOLERANCE:
            break
    return slope, offset


def _newton_step(
    prior: Curve, observations: Sequence[Observation], slope: float, offset: float, *, fit_slope: bool
) -> tuple[float, float]:
    gradient = [_PRIOR_WEIGHT * (slope - prior.slope), _PRIOR_WEIGHT * (offset - prior.offset)]
    hessian = [_PRIOR_WEIGHT, 0.0, _PRIOR_WEIGHT]
    for value, outcome, weight in observations:
        chance = _logistic(slope * value + offset)
        residual, variance = weight * (chance - outcome), weight * chance * (1 - chance)
        gradient[0] += residual * value
        gradient[1] += residual
        hessian[0] += variance * value * value
        hessian[1] += variance * value
        hessian[2] += variance
    if not fit_slope:
        return 0.0, gradient[1] / hessian[2]
    determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1]
    return (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant, (
        hessian[0] * gradient[1] - hessian[1] * gradient[0]
    ) / determinant


def _loss(prior: Curve, observations: Sequence[Observation], slope: float, offset: float) -> float:
    penalty = _PRIOR_WEIGHT * ((slope - prior.slope) ** 2 + (offset - prior.offset) ** 2) / 2
    signs = ((slope * value + offset) * (1 if outcome else -1) for value, outcome, _ in observations)
    return penalty + sum(
        weight * -log(_logistic(sign)) for sign, (_, _, weight) in zip(signs, observations, strict=True)
    )


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-min(30.0, max(-30.0, value))))
