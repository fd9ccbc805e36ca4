"""Judges what a crash left: the disk as before or after a step, the journal true, nothing lost, nothing left over."""

import hashlib
import os
import sqlite3
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.changes.model import Change, ItemStatus, Op, PlanStatus
from holdfast.errors import HoldfastError
from tests.torture.changes_scenarios import Scenario, Stage, Step

_WHERE = {ItemStatus.PENDING: 0, ItemStatus.UNDONE: 0, ItemStatus.DONE: 1}
QUARANTINE = ".holdfast-quarantine"

Snapshot = dict[str, tuple[str, int, str]]
"""Every entry of both folders: what it is, its mode, and the hash of its bytes."""


@dataclass(frozen=True)
class Moment:
    """The disk and the journal between two steps, and how the step before ended."""

    disk: Snapshot
    statuses: tuple[str, ...]
    outcome: str = "ok"


@dataclass
class Run:
    """What a process under fire said before it ended: how many steps began, ended, and how each ended."""

    begun_steps: int = 0
    ended_steps: int = 0
    faults: list[str] = field(default_factory=list)


def snapshot(first: Path, second: Path) -> Snapshot:
    """Return both folders as they are, our quarantine left out."""
    return {
        f"{label}/{name}": entry
        for label, folder in (("one", first), ("two", second))
        for name, entry in _entries(folder)
        if QUARANTINE not in name.split("/")
    }


def _entries(folder: Path) -> list[tuple[str, tuple[str, int, str]]]:
    entries = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        name = str(path.relative_to(folder))
        if stat.S_ISLNK(status.st_mode):
            entries.append((name, ("link", 0, os.readlink(path))))
        elif stat.S_ISDIR(status.st_mode):
            entries.append((name, ("dir", mode, "")))
        else:
            entries.append((name, ("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())))
    return entries


def statuses(stage: Stage) -> tuple[str, ...]:
    """Return the statuses of the changes that took effect, oldest first."""
    return tuple(change.status.value for change in _in_effect(stage))


def ids(stage: Stage) -> list[str]:
    """Return the ids of the changes that took effect, oldest first."""
    return [change.id for change in _in_effect(stage)]


def _in_effect(stage: Stage) -> list[Change]:
    """A plan may be FAILED and have moved something, or EXECUTED with every item SKIPPED: its items are asked."""
    return [change for change in reversed(stage.world.listed()) if _did(stage, change)]


def _did(stage: Stage, change: Change) -> bool:
    plan = stage.world.changes._journal.find(change.id)
    items = () if plan is None else plan.items
    return any(item.status in (ItemStatus.DONE, ItemStatus.UNDONE) for item in items if item.op is not Op.SAVE)


def judge(scenario: Scenario, moments: list[Moment], run: Run, stage: Stage) -> list[str]:
    """Return what is wrong after recovery; carries the scenario to its end and takes it back on the way."""
    disk = snapshot(stage.first, stage.second)
    at, problems = _find(scenario, moments, run, disk)
    if at is None:
        return problems
    exact = disk == moments[at].disk
    problems += _journal_problems(moments[at], stage, exact=exact)
    problems += _plan_problems(stage)
    problems += _lost(moments[: at + 1], disk, stage)
    standing = statuses(stage)
    stage.world.changes.recover()
    if snapshot(stage.first, stage.second) != disk or statuses(stage) != standing:
        problems.append("a second recovery found something to do")
    if not problems:
        problems += _finished(scenario, moments, at, stage)
    if not problems:
        problems += _taken_back(scenario, moments, stage)
    return problems


def _find(scenario: Scenario, moments: list[Moment], run: Run, disk: Snapshot) -> tuple[int | None, list[str]]:
    """Say which moment the disk shows, among those that the run allows."""
    allowed = range(run.ended_steps, run.begun_steps + 1)
    for at in reversed(allowed):
        if disk == moments[at].disk:
            return at, []
    if not scenario.is_atomic:
        for at in allowed[:-1]:
            if _is_between(disk, moments[at].disk, moments[at + 1].disk):
                return at, []
    known = [at for at, moment in enumerate(moments) if moment.disk == disk]
    progress = f"steps ended: {run.ended_steps}, begun: {run.begun_steps}"
    if known:
        return None, [f"the disk is as after step {known[0]}, but {progress}"]
    return None, [f"the disk is as after no step ({progress}): {difference(moments[run.ended_steps].disk, disk)}"]


def _is_between(disk: Snapshot, before: Snapshot, after: Snapshot) -> bool:
    """Return whether every entry is as before or as after, and every content there as often as then."""
    if any(disk.get(name) not in (before.get(name), after.get(name)) for name in disk.keys() | before.keys()):
        return False
    now, old, new = _contents(disk), _contents(before), _contents(after)
    return (old & new) <= now <= (old | new)


def _contents(disk: Snapshot) -> Counter[str]:
    return Counter(text for kind, _, text in disk.values() if kind == "file")


def difference(expected_disk: Snapshot, disk: Snapshot) -> str:
    """Return how a disk differs from the one expected, entry by entry."""
    names = sorted(name for name in expected_disk.keys() | disk.keys() if expected_disk.get(name) != disk.get(name))
    return "; ".join(f"{name}: {expected_disk.get(name)} became {disk.get(name)}" for name in names)[:600]


def _journal_problems(moment: Moment, stage: Stage, *, exact: bool) -> list[str]:
    problems = []
    journal = stage.world.changes._journal
    unfinished = journal.find_unfinished()
    if unfinished:
        problems.append(f"{len(unfinished)} changes are unfinished after recovery")
    is_waiting = not {PlanStatus.APPROVED, PlanStatus.RUNNING}.isdisjoint(statuses(stage))
    if exact and not is_waiting and statuses(stage) != moment.statuses:
        problems.append(f"the journal says {statuses(stage)}, but the disk says {moment.statuses}")
    folder = stage.world.state / "images"
    stored = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    if stored != journal.images.files():
        problems.append(f"image files on disk and in the journal differ: {sorted(stored ^ journal.images.files())}")
    return problems


def _plan_problems(stage: Stage) -> list[str]:
    """Compare what each plan of moves says of its items with what stands where."""
    problems = []
    plans = stage.world.changes.plans
    for line in plans.list(stage.world.folders, 10):
        plan = plans.find(stage.world.folders, line.id)
        for item in plan.items:
            if item.op is Op.MOVE and item.status in _WHERE:
                are_there = (os.path.lexists(item.src_path), os.path.lexists(item.dest_path or ""))
                is_both = all(are_there) and item.status is not ItemStatus.PENDING
                if is_both or not are_there[_WHERE[item.status]]:
                    problems.append(f"{item.src_path} is {item.status}, and (source, target) are there: {are_there}")
        states = {item.status for item in plan.items}
        if plan.status is PlanStatus.EXECUTED and states & {ItemStatus.PENDING, ItemStatus.ERROR}:
            problems.append(f"the plan is EXECUTED with items {sorted(states)}")
        if plan.status is PlanStatus.FAILED and ItemStatus.ERROR not in states:
            problems.append(f"the plan is FAILED with items {sorted(states)}")
    return problems


def _lost(past: list[Moment], disk: Snapshot, stage: Stage) -> list[str]:
    """Return the contents that were there once and are neither on the disk nor kept."""
    present = set(_contents(disk)) | _quarantined(stage)
    once = {text for moment in past for text in _contents(moment.disk)}
    return [f"lost: the bytes {hash_[:12]}…" for hash_ in sorted(once - present) if not _is_kept(stage, hash_)]


def _quarantined(stage: Stage) -> set[str]:
    places = [stage.world.state / "quarantine"]
    places += [path for folder in (stage.first, stage.second) for path in folder.rglob(QUARANTINE)]
    files = (path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _is_kept(stage: Stage, hash_: str) -> bool:
    try:
        data = b"".join(stage.world.changes._images.read(hash_))
    except (HoldfastError, OSError):
        return False
    return hashlib.sha256(data).hexdigest() == hash_


def _finished(scenario: Scenario, moments: list[Moment], at: int, stage: Stage) -> list[str]:
    """Carry out what is left of the scenario, as the caller would; the end is that of an undisturbed run."""
    stage.ids[:] = ids(stage)
    for step, moment in zip(scenario.steps[at:], moments[at + 1 :], strict=True):
        outcome = outcome_of(step, stage)
        if outcome != moment.outcome:
            return [f"again, step {moments.index(moment)} ends with {outcome!r}, not {moment.outcome!r}"]
    disk = snapshot(stage.first, stage.second)
    if disk != moments[-1].disk:
        return [f"again, the end is another one: {difference(moments[-1].disk, disk)}"]
    return []


def outcome_of(step: Step, stage: Stage) -> str:
    """Carry out a step; returns "ok" or the kind of its error."""
    try:
        change = step(stage)
    except HoldfastError as error:
        return str(getattr(error, "outcome", type(error).__name__))
    except (OSError, sqlite3.Error) as error:
        return f"{type(error).__name__}: {error}"
    if change:
        stage.ids.append(change)
    return "ok"


def _taken_back(scenario: Scenario, moments: list[Moment], stage: Stage) -> list[str]:
    """Undo every change that was under fire, newest first; the disk is as before the first of them."""
    under_fire = ids(stage)[len(moments[0].statuses) :]
    for change_id in reversed(under_fire):
        try:
            stage.world.undo(change_id)
        except HoldfastError as error:
            return [f"undo is refused: {type(error).__name__}: {error.message}"]
    disk, expected_disk = snapshot(stage.first, stage.second), dict(moments[0 if under_fire else -1].disk)
    if under_fire and scenario.reused_names:
        fresh, name = scenario.reused_names
        expected_disk[name] = expected_disk.pop(fresh)
    if disk != expected_disk:
        return [f"undone, the disk is another one: {difference(expected_disk, disk)}"]
    return []
