"""Pure: measures how good filing would be, before anything moves: every example is classified without itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from holdfast.organiser.classify.confidence_model import ConfidenceModel, Trial
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores

TURNS = 5
_BINS = 10


@dataclass(frozen=True, slots=True)
class FolderReport:
    """One folder: the number of its files, the share of files sent to it that belong there, the share of its own that reach it."""

    name: str
    files: int
    precision: float
    recall: float
    review_only: bool


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """All folders: the share of right verdicts, the share of files that pass the gate, and how many of those are right."""

    files: int
    accuracy: float
    gate: float
    coverage: float
    precision: float
    calibration_error: float
    folders: tuple[FolderReport, ...]


def score_held_out(profiles: Profiles, turns: int = TURNS) -> tuple[Labels, Scores]:
    """Return which known files could be held out, and their scores by the files of other turns.

    A folder's only file cannot be held out.
    """
    turn_of_file = numpy.zeros(len(profiles.labels), dtype=numpy.int64)
    for folder in range(profiles.folders):
        own_files = numpy.flatnonzero(profiles.labels == folder)
        turn_of_file[own_files] = numpy.arange(len(own_files)) % turns
    files: list[Labels] = []
    scores: list[Scores] = []
    for turn in range(turns):
        folders_left = numpy.unique(profiles.labels[turn_of_file != turn])
        held_out = numpy.flatnonzero((turn_of_file == turn) & numpy.isin(profiles.labels, folders_left))
        if held_out.size:
            files.append(held_out)
            scores.append(profiles.scores_without(held_out))
    if not files:
        empty = numpy.zeros((0, profiles.folders), dtype=numpy.float32)
        return numpy.zeros(0, dtype=numpy.int64), Scores(empty, empty)
    likeness = numpy.concatenate([turn_scores.likeness for turn_scores in scores])
    claims = numpy.concatenate([turn_scores.claims for turn_scores in scores])
    return numpy.concatenate(files), Scores(likeness, claims)


def trials_from_scores(actual: Labels, scores: Scores) -> list[Trial]:
    """Return a trial for each known file, from its folder and its scores."""
    rows = zip(actual, scores.best, scores.margin, scores.nearness, strict=True)
    return [Trial(int(label), int(best), float(margin), float(near)) for label, best, margin, near in rows]


def build_report(
    names: Sequence[str], trials: Sequence[Trial], confidence_model: ConfidenceModel, gate: float
) -> EvaluationReport:
    """Return the results of the trials, in all and for each folder."""
    confidences = [confidence_model.confidence(trial.predicted, trial.margin, trial.nearness) for trial in trials]
    filed = [trial for trial, confidence in zip(trials, confidences, strict=True) if confidence >= gate]
    return EvaluationReport(
        files=len(trials),
        accuracy=_share_right(trials),
        gate=gate,
        coverage=len(filed) / len(trials) if trials else 0.0,
        precision=_share_right(filed),
        calibration_error=calibration_error(confidences, [trial.is_right for trial in trials]),
        folders=tuple(_report_folder(name, folder, trials, confidence_model) for folder, name in enumerate(names)),
    )


def calibration_error(confidences: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Return the expected calibration error over ten equal bins: 0 if verdicts of 80 % are right eight times out of ten."""
    if not confidences:
        return 0.0
    sums = numpy.zeros((_BINS, 3))
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        sums[min(_BINS - 1, int(confidence * _BINS))] += (1, confidence, outcome)
    return float(numpy.abs(sums[:, 1] - sums[:, 2]).sum() / len(confidences))


def _report_folder(name: str, folder: int, trials: Sequence[Trial], confidence_model: ConfidenceModel) -> FolderReport:
    own = [trial for trial in trials if trial.actual == folder]
    sent = [trial for trial in trials if trial.predicted == folder]
    is_review_only = folder in confidence_model.review_only
    return FolderReport(name, len(own), _share_right(sent), _share_right(own), is_review_only)


def _share_right(trials: Sequence[Trial]) -> float:
    return sum(trial.is_right for trial in trials) / len(trials) if trials else 0.0
