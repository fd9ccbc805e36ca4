"""Pure: measures confidence where next to no examples are known, by replaying the filing on its own outcome.

A folder's only file cannot be classified without itself, and seeds, files found by a folder's name, were picked for being
clear. So the outcome is taken for the truth, other files of each folder take the place of its examples, and all files are
filed again from these: where folders lie apart the outcome is the same, where they overlap it changes.
"""

from dataclasses import dataclass

import numpy

from holdfast.organiser.classify.confidence_model import Trial
from holdfast.organiser.classify.evaluate import trials_from_scores
from holdfast.organiser.classify.profiles import Labels, Profiles, Scores, likeness

TURNS = 8
MIN_FILES = 20
"""With fewer files a replay says too little."""

_MAX_TRIALS = 500


@dataclass(frozen=True, slots=True)
class Replay:
    """The trials, and for files with the same outcome their likeness to their own folder and to the most similar other one."""

    trials: list[Trial]
    inside: list[float]
    outside: list[float]


def replay_filing(profiles: Profiles, scores: Scores) -> Replay | None:
    """Replay the filing that gave the scores; None if there are too few files or fewer than two folders.

    None too if a folder got no file: it cannot take part, and without it the others would look too good.
    """
    folders = numpy.unique(scores.best)
    if len(profiles.unfiled) < MIN_FILES or not 2 <= len(folders) == profiles.folders or not profiles.is_whole:
        return None
    random = numpy.random.default_rng(0)
    turns = [_turn(profiles, scores, folders, random) for _ in range(TURNS)]
    step = 1 + TURNS * len(profiles.unfiled) // _MAX_TRIALS
    return Replay(
        [trial for turn in turns for trial in turn.trials][::step],
        [value for turn in turns for value in turn.inside][::step],
        [value for turn in turns for value in turn.outside][::step],
    )


def _turn(profiles: Profiles, scores: Scores, folders: Labels, random: numpy.random.Generator) -> Replay:
    """Return one turn: files are filed from others of each folder, as many as it really has as examples."""
    samples = []
    for folder in folders:
        own_files = numpy.flatnonzero(scores.best == folder)
        example_count = int((profiles.labels == folder).sum())
        samples.append(random.permutation(own_files)[: max(1, min(example_count, len(own_files) // 2))])
    known, labels = numpy.concatenate(samples), numpy.repeat(folders, [len(sample) for sample in samples])
    again = profiles.scores_from(known, labels)
    rest = numpy.setdiff1d(numpy.arange(len(profiles.unfiled)), known)
    trials = trials_from_scores(scores.best[rest], Scores(again.likeness[rest], again.claims[rest]))
    same = rest[again.best[rest] == scores.best[rest]]
    like = likeness(profiles.unfiled[same], profiles.unfiled[known], labels, profiles.folders)
    own = scores.best[same][:, None]
    inside = numpy.take_along_axis(like, own, axis=1)[:, 0].tolist()
    numpy.put_along_axis(like, own, -1.0, axis=1)
    return Replay(trials, inside, like.max(axis=1).tolist())
