"""Pure: how sure to be where next to nothing is known: filing is played again on its own outcome.

A folder's only file cannot be judged without itself, and first files that were found by a folder's name were chosen for
being clear. So the outcome is taken for the truth, other files of each folder for its known ones, and all are filed from
these: where folders lie apart the outcome is the same again, where they do not it changes.
"""

from dataclasses import dataclass

import numpy

from holdfast.organiser.classify.confidence_model import Trial
from holdfast.organiser.classify.evaluate import trials_of
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores, likeness

TURNS = 8
LEAST_FILES = 20
"""Fewer files say too little about how they lie."""

_MOST_TRIALS = 500


@dataclass(frozen=True, slots=True)
class Replay:
    """What came out: trials, and the likeness of files that came out the same to their own folder and to a foreign one."""

    trials: list[Trial]
    inside: list[float]
    outside: list[float]


def replayed(profiles: Profiles, scores: Scores) -> Replay | None:
    """Play again what gave the scores; None where there are too few files, or no two folders, to tell anything.

    A folder that got no file cannot take part, and without it the others would come out too well: None as well.
    """
    folders = numpy.unique(scores.best)
    if len(profiles.unfiled) < LEAST_FILES or not 2 <= len(folders) == profiles.folders or not profiles.is_whole:
        return None
    chance = numpy.random.default_rng(0)
    turns = [_turn(profiles, scores, folders, chance) for _ in range(TURNS)]
    step = 1 + TURNS * len(profiles.unfiled) // _MOST_TRIALS
    return Replay(
        [trial for turn in turns for trial in turn.trials][::step],
        [value for turn in turns for value in turn.inside][::step],
        [value for turn in turns for value in turn.outside][::step],
    )


def _turn(profiles: Profiles, scores: Scores, folders: Labels, chance: numpy.random.Generator) -> Replay:
    """Return one turn: files are filed from others of each folder, as many as it really had."""
    drawn = [_drawn(profiles, scores, int(folder), chance) for folder in folders]
    known, labels = numpy.concatenate(drawn), numpy.repeat(folders, [len(files) for files in drawn])
    again = profiles.scores_from(known, labels)
    rest = numpy.setdiff1d(numpy.arange(len(profiles.unfiled)), known)
    trials = trials_of(scores.best[rest], Scores(again.likeness[rest], again.claims[rest]))
    same = rest[again.best[rest] == scores.best[rest]]
    like = likeness(profiles.unfiled[same], profiles.unfiled[known], labels, profiles.folders)
    own = scores.best[same][:, None]
    inside = numpy.take_along_axis(like, own, axis=1)[:, 0].tolist()
    numpy.put_along_axis(like, own, -1.0, axis=1)
    return Replay(trials, inside, like.max(axis=1).tolist())


def _drawn(profiles: Profiles, scores: Scores, folder: int, chance: numpy.random.Generator) -> Labels:
    """Return unfiled files that went to a folder: as many as it had known ones, but half of them at most."""
    mine = numpy.flatnonzero(scores.best == folder)
    wanted = int((profiles.labels == folder).sum())
    return chance.permutation(mine)[: max(1, min(wanted, len(mine) // 2))]
