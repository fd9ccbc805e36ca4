"""The use cases of the organiser: make a plan, show it, correct it, explain a file. `changes` carries plans out."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.auth.context import CallerKind, ClientInfo
from holdfast.bulletin import Bulletin
from holdfast.call import Call
from holdfast.changes.disk.places import Locks
from holdfast.changes.model import Item, Op, Plan, PlanOverview, PlanStatus, UndoResult, is_beneath
from holdfast.changes.plans.service import Plans, no_such_plan
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import Conflict, HoldfastError, NotDirectory, NotFound, PermissionDenied
from holdfast.folders.access.jail import HiddenByPolicy, Jail
from holdfast.folders.service import Folders
from holdfast.organiser.classify.confidence import final_confidence
from holdfast.organiser.model import (
    KEEP,
    Example,
    Excerpt,
    Measures,
    Notes,
    PastMove,
    SkippedFile,
    UncertainFile,
    Verdict,
)
from holdfast.organiser.planning.build_plan import (
    Decisions,
    OrganiserState,
    PlanBuilder,
    Recording,
    SurveyedFolder,
    classify_by_decisions,
    record_work,
)
from holdfast.organiser.planning.classify_files import PlanStep, report_step
from holdfast.organiser.planning.corrections import (
    compare_moves,
    index_by_path,
    moves_to_keep,
    resolve_file,
    resolve_folder,
    revise_notes,
)
from holdfast.organiser.planning.explain import (
    Explanation,
    find_in_notes,
    path_and_parents,
    read_current_excerpts,
    trace_moves,
)
from holdfast.organiser.planning.jobs import PlanJob, PlanJobs
from holdfast.organiser.ports import Classifier, PlanObserver
from holdfast.organiser.scan.scope import FolderScope, scope_of
from holdfast.organiser.scan.survey import SurveyedFile
from holdfast.text.display import display_name

_MAX_PLANS_TO_SEARCH = 20
_MAX_PLANS_TO_MEASURE = 500


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan with its notes, and the hash that an approval must name."""

    plan: Plan
    notes: Notes
    plan_hash: str
    needs_approval: bool

    @property
    def folder(self) -> str:
        """Return the folder that the plan is for."""
        return self.plan.folder or self.plan.root_dir

    @property
    def moves(self) -> list[Item]:
        """Return the moves in the order of their positions."""
        return [item for item in self.plan.items if item.op is Op.MOVE]


class Organiser:
    """The plans of every caller; each caller sees those beneath its own roots. Call `close()` at the end."""

    def __init__(
        self,
        plans: Plans,
        state: OrganiserState,
        classifier: Classifier,
        settings: OrganiserSettings,
        fallback: Classifier | None = None,
        observer: PlanObserver | None = None,
        bulletin: Bulletin | None = None,
    ) -> None:
        self.plans = plans
        self.settings = settings
        self.jobs = PlanJobs()
        self._locks = Locks()
        self._state = state
        self._builder = PlanBuilder(state, classifier, fallback or classifier, settings)
        self._observer = observer
        self._bulletin = bulletin or Bulletin()

    def close(self) -> None:
        """Stop the plans in the making."""
        self.jobs.close()

    def begin(self, folders: Folders, call: Call, folder: str, *, include_subfolders: bool = False) -> PlanJob:
        """Begin to make a plan for a folder, and return the job that makes it.

        Raises what the jail raises for the folder, PermissionDenied for one that is too wide, and ResourceBusy when too
        many plans are in the making.
        """
        root, parts = folders.jail.locate(folder)
        absolute = "/".join([root.path.rstrip("/"), *parts]) or "/"
        _check_scope(absolute, call.caller.client)
        with folders.jail.open_directory(absolute):
            pass
        job = PlanJob.create(call.caller, absolute, root.path, self._bulletin)
        self.jobs.start(
            job,
            lambda job: self._make_plan(folders, job, include_subfolders=include_subfolders),
            before=lambda: self._state.notes.save(job.plan_id, Notes(decider="", folder=absolute)),
        )
        return job

    def find_job(self, folders: Folders, plan_id: str) -> PlanJob | None:
        """Return the job of a plan of the caller that is in the making or lately was; None for any other."""
        job = self.jobs.find(plan_id)
        is_callers = job is not None and is_beneath(job.root, folders.jail.allowed_paths)
        return job if job is not None and is_callers and not folders.jail.hides(job.folder) else None

    def show(self, folders: Folders, plan_id: str) -> PlanView:
        """Return a plan of the caller. NotFound for any other, Conflict for one whose scan was interrupted."""
        notes = self._state.notes.load(plan_id) or Notes(decider="")
        try:
            plan = self.plans.find(folders, plan_id)
        except NotFound:
            is_callers = is_beneath(notes.folder, folders.jail.allowed_paths) and not folders.jail.hides(notes.folder)
            if notes.folder and is_callers and not self.plans.exists(plan_id):
                raise Conflict(
                    f"The scan of {notes.folder} was interrupted before plan {plan_id} was made. Call "
                    "create_organization_plan with that folder: it goes on from what was read.",
                    status="INTERRUPTED",
                ) from None
            raise
        _check_notes_visible(folders.jail, plan, notes)
        return PlanView(plan, notes, self.plans.hash_of(plan), self.settings.require_approval)

    def past_measures(self, folders: Folders, folder: str, limit: int) -> list[tuple[PlanOverview, Measures]]:
        """Return the newest plans for a folder with their measures, oldest first."""
        lines = [line for line in self.plans.list(folders, _MAX_PLANS_TO_MEASURE) if line.folder == folder]
        newest = sorted(lines, key=lambda line: line.created_at)[-limit:]
        noted = [(line, self._state.notes.load(line.id)) for line in newest]
        return [(line, notes.measures) for line, notes in noted if notes is not None]

    def read_uncertain(
        self, folders: Folders, folder: str, files: Sequence[UncertainFile]
    ) -> Iterator[tuple[UncertainFile, str]]:
        """Yield uncertain files of a plan for a folder with their texts; of one that changed since, only that it did."""
        excerpts = self._load_excerpts([file.file_hash for file in files])
        return read_current_excerpts(folders.jail, folder, files, excerpts)

    def cancel(self, folders: Folders, plan_id: str) -> None:
        """Stop a plan in the making, or close one that was not begun. Conflict for any other."""
        job = self.find_job(folders, plan_id)
        if job is not None and job.is_running:
            job.call.cancel()
        else:
            self.plans.cancel(folders, plan_id)

    def revise(self, folders: Folders, call: Call, plan_id: str, decisions: Decisions) -> PlanView:
        """Apply an agent's decisions to files of a CREATED plan: each counts for its file in this plan alone.

        InvalidArgument for a file that is not in the planned folder or a folder that is not valid; Conflict once the plan
        was approved.
        """
        with self._locks.hold(call, [plan_id]):
            view, folder_survey, path_decisions = self._resolve_decisions(folders, call, plan_id, decisions)
            category_folders = {folder: folder for folder in path_decisions.values() if folder}
            classified = classify_by_decisions(folder_survey.files, path_decisions, path_decisions)
            draft = self._builder.draft(folders.jail, view.folder, classified, category_folders)
            paths = {file.path for entry in classified for file in (entry.file, *entry.file.members)}
            moves = [item for item in view.moves if item.src_path in paths]
            revision = compare_moves(moves, draft.moves)
            self.plans.revise(folders, call, plan_id, revision.dests, reasons=revision.reasons, added=revision.added)
            notes = revise_notes(view.notes, path_decisions, draft.uncertain, folder_survey.directories)
            by_agent = view.notes.agent_decisions | path_decisions.keys()
            return self._save_notes(folders, plan_id, replace(notes, agent_decisions=by_agent))

    def correct(self, folders: Folders, call: Call, plan_id: str, decisions: Decisions) -> PlanView:
        """Apply a person's decisions: each is kept as an example, and the other files of the plan are classified again.

        Refused for the same reasons as `revise`.
        """
        with self._locks.hold(call, [plan_id]):
            view, folder_survey, path_decisions = self._resolve_decisions(folders, call, plan_id, decisions)
            with record_work(self._observer, plan_id, "correct") as recording:
                notes = self._correct(folders, call, view, folder_survey, path_decisions, recording)
            return self._save_notes(folders, plan_id, notes)

    def undo(self, folders: Folders, call: Call, view: PlanView, positions: Collection[int] | None) -> UndoResult:
        """Undo a plan, or its moves at these positions.

        When a person takes back single files, their corrections are forgotten, so the next plan does not repeat them.
        """
        result = self.plans.undo(folders, call, view.plan, positions)
        is_persons = call.caller.kind is CallerKind.PERSON or call.caller.client.is_command
        if positions is not None and is_persons:
            hashes = [item.composite_hash for item in view.moves if item.position in positions and item.composite_hash]
            self._state.corrections.delete_corrections(view.folder, hashes)
        return result

    def _resolve_decisions(
        self, folders: Folders, call: Call, plan_id: str, decisions: Decisions
    ) -> tuple[PlanView, SurveyedFolder, Decisions]:
        """Return a CREATED plan, its folder surveyed again, and the decisions by the plan's own names."""
        view = self.show(folders, plan_id)
        status = view.plan.status
        if status is not PlanStatus.CREATED:
            raise Conflict(f"Plan {plan_id} is {status}, so it cannot be revised.", status=status)
        folder_survey = self._builder.survey_folder(folders.jail, call, view.folder)
        files = index_by_path(folder_survey.files)
        known = [destination.folder for destination in view.notes.destinations]
        path_decisions = {
            resolve_file(path, view.folder, files): resolve_folder(folder, known) if folder else None
            for path, folder in decisions.items()
        }
        return view, folder_survey, path_decisions

    def _correct(
        self,
        folders: Folders,
        call: Call,
        view: PlanView,
        folder_survey: SurveyedFolder,
        path_decisions: Decisions,
        recording: Recording,
    ) -> Notes:
        files = index_by_path(folder_survey.files)
        corrections = self._to_examples({path: (files[path], folder) for path, folder in path_decisions.items()})
        decisions = {**view.notes.decisions, **path_decisions}
        relatives = (*decisions, *(file.relative for file in view.notes.uncertain))
        in_plan = {item.src_path for item in view.moves} | {f"{view.folder}/{relative}" for relative in relatives}
        draft, notes = self._builder.build(
            folders,
            call,
            folder_survey,
            decisions,
            recording,
            include_subfolders=view.notes.include_subfolders,
            only=in_plan,
            new_corrections=corrections,
            earlier=moves_to_keep(view.moves, view.folder, path_decisions),
            by_agent=view.notes.agent_decisions - path_decisions.keys(),
        )
        revision = compare_moves(view.moves, draft.moves)
        self.plans.revise(folders, call, view.plan.id, revision.dests, reasons=revision.reasons, added=revision.added)
        self._state.corrections.save_corrections(view.folder, corrections)
        old = view.notes
        return replace(notes, measures=old.measures, skipped=old.skipped, made_by=old.made_by)

    def _save_notes(self, folders: Folders, plan_id: str, notes: Notes) -> PlanView:
        """Save the notes of a revised plan, with the number of files that stay, and return the plan."""
        items = self.plans.find(folders, plan_id).items
        moved = sum(1 for item in items if item.composite_hash and item.unit in (None, item.src_path))
        measures = replace(notes.measures, staying=max(0, notes.measures.files - moved))
        self._state.notes.save(plan_id, replace(notes, measures=measures))
        return self.show(folders, plan_id)

    def explain(self, folders: Folders, call: Call, path: str) -> Explanation:
        """Return why a file is where it is and where it went. NotFound if neither disk nor journal knows it."""
        call.check()
        exists, real_path = _locate(folders.jail, path)

        def find_moves(paths: Sequence[str]) -> list[PastMove]:
            return self._state.notes.find_moves(paths, folders.jail.allowed_paths)

        current, hops = trace_moves(real_path, find_moves, exists=exists)
        if any(folders.jail.hides(path) for path in (current, *(hop.move.src for hop in hops))):
            raise NotFound(f"No such file or directory: {path}")
        moves = find_moves(path_and_parents(current))
        waiting = [move for move in moves if move.src == current and move.status == "PENDING"]
        pending = next((move for move in waiting if not folders.jail.hides(move.dest)), None)
        newest = pending or (hops[0].move if hops else None)
        if newest is not None:
            return Explanation(current, hops, pending, verdict=self._load_verdict(newest))
        if not exists:
            raise NotFound.at(path, display_name(path))
        uncertain, skipped = self._find_in_newest_plan(folders, real_path)
        return Explanation(current, hops, pending, uncertain, skipped)

    def _make_plan(self, folders: Folders, job: PlanJob, *, include_subfolders: bool) -> None:
        """Make the plan of a job; this runs in the job's thread."""
        with record_work(self._observer, job.plan_id, "create") as recording:
            folder_survey = self._builder.survey_folder(folders.jail, job.call, job.folder)
            draft, notes = self._builder.build(
                folders, job.call, folder_survey, {}, recording, include_subfolders=include_subfolders
            )
            maker = "command" if job.call.caller.client.is_command else ""
            self._state.notes.save(job.plan_id, replace(notes, made_by=maker))
            report_step(job.call, PlanStep.WRITE, 0, 1, "Writing the plan")
            try:
                self.plans.create(folders, job.call, job.folder, draft.moves, plan_id=job.plan_id, may_be_empty=True)
            except NotFound:
                remaining = [move for move in draft.moves if _exists(folders.jail, move.src)]
                self.plans.create(folders, job.call, job.folder, remaining, plan_id=job.plan_id, may_be_empty=True)
            recording.measures = notes.measures
        self._state.files.trim(self.settings.max_cached_files)

    def _to_examples(self, decided: Mapping[str, tuple[SurveyedFile, str | None]]) -> list[Example]:
        """Return decisions on files as examples; a file without content is no example."""
        excerpts = self._load_excerpts([entry.file_hash for entry, _ in decided.values()])
        return [
            Example(entry.file_hash, entry.file.name, folder or KEEP, excerpt.text, excerpt.content_type)
            for entry, folder in decided.values()
            if (excerpt := excerpts.get(entry.file_hash)) is not None
        ]

    def _load_verdict(self, move: PastMove) -> Verdict | None:
        """Return the verdict on the content of a file that moved, with its final confidence; None when none is cached."""
        notes = self._state.notes.load(move.plan_id)
        if notes is None or not move.file_hash:
            return None
        verdict = self._state.files.load_verdicts([move.file_hash], notes.decider).get(move.file_hash)
        if verdict is None:
            return None
        name = move.src.rpartition("/")[2]
        return replace(verdict, confidence=final_confidence(verdict.category, name, verdict.confidence))

    def _find_in_newest_plan(self, folders: Folders, path: str) -> tuple[UncertainFile | None, SkippedFile | None]:
        """Return what the newest plan for a folder above a file notes of it."""
        for line in self.plans.list(folders, _MAX_PLANS_TO_SEARCH):
            if is_beneath(path, [line.folder]):
                notes = self._state.notes.load(line.id)
                uncertain, skipped = find_in_notes(notes, path) if notes is not None else (None, None)
                if uncertain is not None and folders.jail.hides(f"{line.folder}/{uncertain.category}"):
                    return None, None
                if uncertain is not None:
                    uncertain, _ = next(self.read_uncertain(folders, line.folder, [uncertain]))
                return uncertain, skipped
        return None, None

    def _load_excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        return self._state.files.load_excerpts([hash_ for hash_ in hashes if hash_])


def _check_notes_visible(jail: Jail, plan: Plan, notes: Notes) -> None:
    """Raise NotFound for a plan whose notes name a path that is hidden from the caller, a folder as a guess among them."""
    if jail.policy is None:
        return
    relatives = [name for file in notes.uncertain for name in (file.relative, file.category)]
    relatives += [entry.relative for entry in notes.skipped]
    if any(jail.hides(f"{plan.folder}/{relative}") for relative in relatives):
        raise no_such_plan(plan.id)


def _locate(jail: Jail, path: str) -> tuple[bool, str]:
    """Return whether a path exists, and the path with the links above it resolved."""
    try:
        with jail.place(path, follow=False) as place:
            return place.status is not None, place.path
    except HiddenByPolicy:
        raise
    except (NotFound, NotDirectory):
        return False, jail.absolute(path)


def _exists(jail: Jail, path: str) -> bool:
    try:
        return _locate(jail, path)[0]
    except HoldfastError:
        return False


def _check_scope(path: str, client: ClientInfo) -> None:
    """Refuse folders of the system, and a whole home folder unless a command asks for it: that has asked the person."""
    scope = scope_of(path, os.path.realpath(Path.home()))
    if scope is FolderScope.SYSTEM:
        raise PermissionDenied(f"{path} belongs to the system and is not organised. Name a folder with files of yours.")
    if scope is FolderScope.HOME and not client.is_command:
        raise PermissionDenied(f"{path} is a whole home folder. Name a folder in it, such as Downloads.")
