"""Turns verdicts into moves, doubts and files that stay; what belongs together goes as one or stays as one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.changes.names import collision_key
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.folders.access.file_version import HashedVersion
from holdfast.organiser.model import KEEP, ScannedFile, UncertainFile, Verdict
from holdfast.text.surrogates import replace_lone_surrogates

NamesInFolder = Callable[[str], set[str]]
"""What the names in a folder, given by its path from the planned one, share with those some file system takes for them."""


class ClassifiedFile(NamedTuple):
    """A file or unit with the verdict on it; the confidence is the one that counts."""

    found: ScannedFile
    file_hash: str
    verdict: Verdict


@dataclass(slots=True)
class PlanDraft:
    """What becomes of the files: moves, those of units first so that they keep their names, and what stays."""

    wishes: list[MoveRequest] = field(default_factory=list)
    doubts: list[UncertainFile] = field(default_factory=list)
    stay: int = 0
    moved: int = 0


def drafted(
    judged: Sequence[ClassifiedFile], folder: str, places: Mapping[str, str], gate: float, names_in: NamesInFolder
) -> PlanDraft:
    """Return what becomes of files of a folder, given by its absolute path; `places` are the categories' folders."""
    draft = PlanDraft()
    ordered = sorted(judged, key=lambda one: not one.found.members)
    for one in ordered:
        target = places.get(one.verdict.category)
        if one.verdict.category == KEEP or (target is not None and _is_in(one.found, target)):
            draft.stay += 1
        elif target is None or one.verdict.confidence < gate:
            draft.doubts.append(doubt_of(one, one.verdict.reasoning))
        elif taken := _taken(one.found, names_in(target)):
            reason = f"{taken!r} is in {target} already, and what belongs together keeps its names."
            draft.doubts.append(doubt_of(one, reason))
        else:
            draft.moved += bool(one.file_hash)
            draft.wishes += wishes_of(one, f"{folder.rstrip('/')}/{target}")
    return draft


def doubt_of(one: ClassifiedFile, reasoning: str) -> UncertainFile:
    """Return a file that stays for somebody to look at."""
    confidence = round(one.verdict.confidence, 3)
    guess = one.verdict.category if confidence else ""
    return UncertainFile(
        one.found.relative, one.file_hash, guess, confidence, replace_lone_surrogates(reasoning), one.found.look
    )


def wishes_of(one: ClassifiedFile, target: str) -> list[MoveRequest]:
    """Return the moves that bring a file and what goes with it into a folder, given by its absolute path."""
    verdict = one.verdict
    hashes = (one.file_hash, *("" for _ in one.found.members))
    return [
        MoveRequest(
            found.path,
            f"{target}/{found.name}",
            replace_lone_surrogates(verdict.reasoning),
            round(verdict.confidence, 3),
            _seen(found, hash_),
            one.found.path if one.found.members else None,
        )
        for found, hash_ in zip((one.found, *one.found.members), hashes, strict=True)
    ]


def _seen(found: ScannedFile, file_hash: str) -> HashedVersion | None:
    if not file_hash:
        return None
    return HashedVersion(found.version, file_hash)


def _is_in(found: ScannedFile, target: str) -> bool:
    """Return whether a file lies in a folder already, or the folder is the file itself or lies in it."""
    lies_there = found.folder == target or found.folder.startswith(f"{target}/")
    return lies_there or target == found.relative or target.startswith(f"{found.relative}/")


def _taken(found: ScannedFile, names: set[str]) -> str | None:
    """Return a name of a unit that the folder has already; the names of one that fits are taken from then on."""
    if not found.members:
        return None
    wanted = [one.name for one in (found, *found.members)]
    keys = [collision_key(name) for name in wanted]
    clash = next((name for name, key in zip(wanted, keys, strict=True) if key in names), None)
    if clash is None and len(set(keys)) < len(keys):
        clash = found.name
    if clash is None:
        names.update(keys)
    return clash
