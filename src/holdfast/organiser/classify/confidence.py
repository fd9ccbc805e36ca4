"""Pure: how sure a verdict is: the rules that hold for every classifier, and curves fitted to what proved right."""

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
_CLOSE = 1e-6
_STIFFNESS = 1.0
"""How hard the prior holds on: as much as a handful of outcomes."""

Seen = tuple[float, bool, float]
"""A value of the measure, whether it proved right, and how much that counts."""


def final_confidence(category: str, file_name: str, confidence: float) -> float:
    """Return the confidence that counts, from 0 to 1, for whatever a classifier said.

    A catch-all loses 0.2, a category that stands as whole words in the file's name gains 0.2, and staying is certain.
    """
    if category == KEEP:
        return 1.0
    if category.strip().casefold() in CATCH_ALL:
        confidence -= STEP
    if _names(category, file_name):
        confidence += STEP
    return min(1.0, max(0.0, confidence))


def _names(category: str, file_name: str) -> bool:
    wanted = _WORDS.findall(category.casefold())
    words = _WORDS.findall(file_name.casefold())
    spans = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in spans)


@dataclass(frozen=True, slots=True)
class Curve:
    """The chance of being right as a rising curve over some measure: 1 / (1 + e^-(slope x / scale + offset))."""

    slope: float
    offset: float
    scale: float = 1.0

    def at(self, value: float) -> float:
        """Return the chance at a value of the measure."""
        return _chance(self.slope * value / self.scale + self.offset)


def fitted(prior: Curve, values: Sequence[float], outcomes: Sequence[bool], weights: Sequence[float] = ()) -> Curve:
    """Return the curve that explains the outcomes best, held near the prior while there are few of them."""
    scaled = [value / prior.scale for value in values]
    seen = list(zip(scaled, outcomes, weights or [1.0] * len(scaled), strict=True))
    slope, offset = _least_surprised(prior, seen, rising=True)
    if slope < 0:
        slope, offset = _least_surprised(replace(prior, slope=0.0), seen, rising=False)
    return Curve(slope, offset, prior.scale)


def _least_surprised(prior: Curve, seen: Sequence[Seen], *, rising: bool) -> tuple[float, float]:
    """Return the slope and the offset that outcomes surprise least; a slope that need not rise is left as it is."""
    slope, offset = prior.slope, prior.offset
    surprise = _surprise(prior, seen, slope, offset)
    for _ in range(_ROUNDS):
        step = _step(prior, seen, slope, offset, rising=rising)
        for _ in range(_HALVINGS):
            tried = _surprise(prior, seen, slope - step[0], offset - step[1])
            if tried <= surprise:
                break
            step = (step[0] / 2, step[1] / 2)
        else:
            break
        slope, offset, surprise = slope - step[0], offset - step[1], tried
        if abs(step[0]) + abs(step[1]) < _CLOSE:
            break
    return slope, offset


def _step(prior: Curve, seen: Sequence[Seen], slope: float, offset: float, *, rising: bool) -> tuple[float, float]:
    pull = [_STIFFNESS * (slope - prior.slope), _STIFFNESS * (offset - prior.offset)]
    bend = [_STIFFNESS, 0.0, _STIFFNESS]
    for value, outcome, weight in seen:
        chance = _chance(slope * value + offset)
        wrong, doubt = weight * (chance - outcome), weight * chance * (1 - chance)
        pull[0] += wrong * value
        pull[1] += wrong
        bend[0] += doubt * value * value
        bend[1] += doubt * value
        bend[2] += doubt
    if not rising:
        return 0.0, pull[1] / bend[2]
    area = bend[0] * bend[2] - bend[1] * bend[1]
    return (bend[2] * pull[0] - bend[1] * pull[1]) / area, (bend[0] * pull[1] - bend[1] * pull[0]) / area


def _surprise(prior: Curve, seen: Sequence[Seen], slope: float, offset: float) -> float:
    held = _STIFFNESS * ((slope - prior.slope) ** 2 + (offset - prior.offset) ** 2) / 2
    signs = ((slope * value + offset) * (1 if outcome else -1) for value, outcome, _ in seen)
    return held + sum(weight * -log(_chance(sign)) for sign, (_, _, weight) in zip(signs, seen, strict=True))


def _chance(value: float) -> float:
    return 1 / (1 + exp(-min(30.0, max(-30.0, value))))
