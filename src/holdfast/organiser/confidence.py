"""Pure: how sure a verdict is: the rules that hold for every classifier, and curves fitted to what proved right."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from holdfast.organiser.model import KEEP

CATCH_ALL = frozenset({"misc", "other"})
STEP = 0.2

_WORDS = re.compile(r"[^\W_]+")
_ROUNDS = 25
_STIFFNESS = 1.0
"""How hard the prior holds on: as much as a handful of outcomes."""


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
    slope, offset = prior.slope, prior.offset
    scaled = [value / prior.scale for value in values]
    heavy = weights or [1.0] * len(scaled)
    for _ in range(_ROUNDS):
        pull = (_STIFFNESS * (slope - prior.slope), _STIFFNESS * (offset - prior.offset))
        bend = (_STIFFNESS, 0.0, _STIFFNESS)
        for value, outcome, weight in zip(scaled, outcomes, heavy, strict=True):
            chance = _chance(slope * value + offset)
            wrong, doubt = weight * (chance - outcome), weight * chance * (1 - chance)
            pull = (pull[0] + wrong * value, pull[1] + wrong)
            bend = (bend[0] + doubt * value * value, bend[1] + doubt * value, bend[2] + doubt)
        area = bend[0] * bend[2] - bend[1] * bend[1]
        step = ((bend[2] * pull[0] - bend[1] * pull[1]) / area, (bend[0] * pull[1] - bend[1] * pull[0]) / area)
        slope, offset = slope - step[0], offset - step[1]
        if abs(step[0]) + abs(step[1]) < 1e-6:
            break
    return Curve(max(slope, 0.0), offset, prior.scale)


def _chance(value: float) -> float:
    return 1 / (1 + exp(-min(30.0, max(-30.0, value))))
