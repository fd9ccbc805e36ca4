"""Pure: how good filing would be, measured before anything moves: every known file is judged without itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from holdfast.organiser.classify.confidence_model import ConfidenceModel, Trial
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores

TURNS = 5
_BINS = 10


@dataclass(frozen=True, slots=True)
class FolderReport:
    """One folder: its files, how many of those sent to it belong there, and how many of its own would reach it."""

    name: str
    files: int
    precision: float
    recall: float
    review_only: bool


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """All folders: the share judged right, and what would be filed at the gate and how much of that is right."""

    files: int
    accuracy: float
    gate: float
    coverage: float
    precision: float
    calibration_error: float
    folders: tuple[FolderReport, ...]


def held_out(profiles: Profiles, turns: int = TURNS) -> tuple[Labels, Scores]:
    """Judge each known file by the files of other turns: which files could be judged, and their scores.

    A folder's only file cannot be judged.
    """
    turn = _turns(profiles.labels, profiles.folders, turns)
    judged: list[Labels] = []
    scores: list[Scores] = []
    for number in range(turns):
        kept = numpy.unique(profiles.labels[turn != number])
        held = numpy.flatnonzero((turn == number) & numpy.isin(profiles.labels, kept))
        if held.size:
            judged.append(held)
            scores.append(profiles.judged(held))
    if not judged:
        nothing = numpy.zeros((0, profiles.folders), dtype=numpy.float32)
        return numpy.zeros(0, dtype=numpy.int64), Scores(nothing, nothing)
    likeness = numpy.concatenate([one.likeness for one in scores])
    return numpy.concatenate(judged), Scores(likeness, numpy.concatenate([one.claims for one in scores]))


def trials_of(actual: Labels, scores: Scores) -> list[Trial]:
    """Return the trials that scores of known files amount to."""
    rows = zip(actual, scores.best, scores.margin, scores.nearness, strict=True)
    return [Trial(int(one), int(best), float(margin), float(near)) for one, best, margin, near in rows]


def report(names: Sequence[str], trials: Sequence[Trial], judge: ConfidenceModel, gate: float) -> EvaluationReport:
    """Return what the trials say, folder by folder and in all."""
    sure = [judge.confidence(trial.predicted, trial.margin, trial.nearness) for trial in trials]
    filed = [trial for trial, confidence in zip(trials, sure, strict=True) if confidence >= gate]
    return EvaluationReport(
        files=len(trials),
        accuracy=_share(trials),
        gate=gate,
        coverage=len(filed) / len(trials) if trials else 0.0,
        precision=_share(filed),
        calibration_error=calibration_error(sure, [trial.right for trial in trials]),
        folders=tuple(_folder(name, number, trials, judge) for number, name in enumerate(names)),
    )


def calibration_error(confidences: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Return the expected calibration error over ten equal bins: 0 when 80 % sure is right eight times of ten."""
    if not confidences:
        return 0.0
    sums = numpy.zeros((_BINS, 3))
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        sums[min(_BINS - 1, int(confidence * _BINS))] += (1, confidence, outcome)
    return float(numpy.abs(sums[:, 1] - sums[:, 2]).sum() / len(confidences))


def _turns(labels: Labels, folders: int, turns: int) -> NDArray[numpy.int64]:
    turn = numpy.zeros(len(labels), dtype=numpy.int64)
    for folder in range(folders):
        mine = numpy.flatnonzero(labels == folder)
        turn[mine] = numpy.arange(len(mine)) % turns
    return turn


def _folder(name: str, number: int, trials: Sequence[Trial], judge: ConfidenceModel) -> FolderReport:
    own = [trial for trial in trials if trial.actual == number]
    sent = [trial for trial in trials if trial.predicted == number]
    return FolderReport(name, len(own), _share(sent), _share(own), number in judge.review_only)


def _share(trials: Sequence[Trial]) -> float:
    return sum(trial.right for trial in trials) / len(trials) if trials else 0.0
