"""Applies the confidence gate: decides for each classified file whether it moves, stays, or is listed as uncertain.

A file stays if its category says so or if it lies in the right folder already. It is uncertain if its confidence is below
the gate (`organiser.confidence_gate`), if its category has no folder, or if it is a unit whose names are taken in the
target folder: a unit moves as one or not at all. Every other file moves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.changes.names import collision_key
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.folders.access.file_version import HashedVersion
from holdfast.organiser.model import KEEP, ScannedFile, UncertainFile, Verdict
from holdfast.text.decode import replace_lone_surrogates

NamesInFolder = Callable[[str], set[str]]
"""Returns the collision keys of the names in a folder, given by its path from the planned folder."""


class ClassifiedFile(NamedTuple):
    """A file or unit with the verdict on it, whose confidence is the final one."""

    file: ScannedFile
    file_hash: str
    verdict: Verdict


@dataclass(slots=True)
class PlanDraft:
    """The result of the gate: moves, those of units first so that they keep their names, and uncertain files.

    `moved_files` counts the files with a hash that move, a unit as one.
    """

    moves: list[MoveRequest] = field(default_factory=list)
    uncertain: list[UncertainFile] = field(default_factory=list)
    moved_files: int = 0


def apply_gate(
    classified: Sequence[ClassifiedFile],
    folder: str,
    category_folders: Mapping[str, str],
    gate: float,
    names_in: NamesInFolder,
) -> PlanDraft:
    """Return what becomes of the files of a folder, which is an absolute path."""
    draft = PlanDraft()
    for entry in sorted(classified, key=lambda entry: not entry.file.members):
        file, verdict = entry.file, entry.verdict
        target = category_folders.get(verdict.category)
        if verdict.category == KEEP or (target is not None and _is_in(file, target)):
            continue
        if target is None or verdict.confidence < gate:
            draft.uncertain.append(_uncertain_file(entry, verdict.reasoning))
        elif file.members and (name := _reserve_names(file, names_in(target))):
            reason = f"{name!r} is in {target} already, and what belongs together keeps its names."
            draft.uncertain.append(_uncertain_file(entry, reason))
        else:
            draft.moved_files += bool(entry.file_hash)
            draft.moves += _moves_for(entry, f"{folder.rstrip('/')}/{target}")
    return draft


def _uncertain_file(entry: ClassifiedFile, reasoning: str) -> UncertainFile:
    confidence = round(entry.verdict.confidence, 3)
    guess = entry.verdict.category if confidence else ""
    return UncertainFile(
        entry.file.relative,
        entry.file_hash,
        guess,
        confidence,
        replace_lone_surrogates(reasoning),
        entry.file.version.scan_text,
    )


def _moves_for(entry: ClassifiedFile, target: str) -> list[MoveRequest]:
    """Return the moves of a file and its members into a folder, which is an absolute path."""
    main, verdict = entry.file, entry.verdict
    version = HashedVersion(main.version, entry.file_hash) if entry.file_hash else None
    return [
        MoveRequest(
            file.path,
            f"{target}/{file.name}",
            replace_lone_surrogates(verdict.reasoning),
            round(verdict.confidence, 3),
            version if file is main else None,
            main.path if main.members else None,
        )
        for file in (main, *main.members)
    ]


def _is_in(file: ScannedFile, target: str) -> bool:
    """Return whether a file lies in a folder already, or the folder is the file itself or lies in it."""
    lies_there = file.folder == target or file.folder.startswith(f"{target}/")
    return lies_there or target == file.relative or target.startswith(f"{file.relative}/")


def _reserve_names(unit: ScannedFile, keys_in_target: set[str]) -> str | None:
    """Return a name of a unit that is taken in the target folder; if none is, reserve all of them for the unit."""
    names = [file.name for file in (unit, *unit.members)]
    keys = [collision_key(name) for name in names]
    taken_name = next((name for name, key in zip(names, keys, strict=True) if key in keys_in_target), None)
    if taken_name is None and len(set(keys)) < len(keys):
        taken_name = unit.name
    if taken_name is None:
        keys_in_target.update(keys)
    return taken_name
