"""The use cases of the organiser: make a plan, look at it, correct it, explain a file. Carrying out is a change's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.changes.disk.locks import Locks
from holdfast.changes.model import Item, Op, Plan, PlanStatus, is_beneath
from holdfast.changes.plans.service import Plans
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import Conflict, HoldfastError, NotDirectory, NotFound
from holdfast.folders.access.jail import Jail
from holdfast.folders.service import Folders
from holdfast.organiser.model import KEEP, Example, Excerpt, Notes, PastMove, SkippedFile, UncertainFile, Verdict
from holdfast.organiser.planning.build_plan import Decisions, OrganiserState, PlanBuilder, SurveyedFolder, decided
from holdfast.organiser.planning.corrections import (
    PlanRevision,
    by_path,
    chosen_folder,
    meant_file,
    of_files,
    redrawn,
    relabelled,
)
from holdfast.organiser.planning.current_excerpts import said_now
from holdfast.organiser.planning.explain import Explanation, ancestors, left_by, trail_of
from holdfast.organiser.planning.jobs import PlanJob, PlanJobs
from holdfast.organiser.planning.measurements import Recording, recorded
from holdfast.organiser.ports import Classifier, Observer
from holdfast.organiser.scan.survey import SurveyedFile


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan with what is known of it, and the hash that an approval names."""

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
        """Return the moves in the order of their numbers."""
        return [item for item in self.plan.items if item.op is Op.MOVE]


class Organiser:
    """The plans of every caller; each sees those beneath its own roots. Call `close()` at the end."""

    def __init__(
        self,
        plans: Plans,
        keeping: OrganiserState,
        classifier: Classifier,
        settings: OrganiserSettings,
        fallback: Classifier | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.plans = plans
        self.settings = settings
        self.jobs = PlanJobs()
        self._locks = Locks()
        self._keeping = keeping
        self._drawing = PlanBuilder(keeping, classifier, fallback or classifier, settings)
        self._observer = observer

    def close(self) -> None:
        """Stop the plans in the making."""
        self.jobs.close()

    def begin(self, folders: Folders, call: Call, folder: str, *, deep: bool = False) -> PlanJob:
        """Begin to make a plan for a folder; `deep` sorts the files in its subfolders as well.

        Raises what the jail says of the folder, at once.
        """
        root, parts = folders.jail.locate(folder)
        absolute = "/".join([root.path.rstrip("/"), *parts]) or "/"
        with folders.jail.open_directory(absolute):
            pass
        job = PlanJob.create(call.caller, absolute, root.path)
        self._keeping.notes.save(job.plan_id, Notes(decider="", folder=absolute))
        self.jobs.start(job, lambda job: self._make(folders, job, deep=deep))
        return job

    def job(self, folders: Folders, plan_id: str) -> PlanJob | None:
        """Return a plan of the caller that is in the making or lately was; None for any other."""
        job = self.jobs.find(plan_id)
        return job if job is not None and is_beneath(job.root, folders.jail.allowed_paths) else None

    def show(self, folders: Folders, plan_id: str) -> PlanView:
        """Return a plan of the caller. NotFound for any other, Conflict for one whose scan was interrupted."""
        notes = self._keeping.notes.load(plan_id) or Notes(decider="")
        try:
            plan = self.plans.find(folders, plan_id)
        except NotFound:
            if notes.folder and is_beneath(notes.folder, folders.jail.allowed_paths):
                raise _interrupted(plan_id, notes.folder) from None
            raise
        return PlanView(plan, notes, self.plans.hash_of(plan), self.settings.require_approval)

    def said(
        self, folders: Folders, folder: str, doubts: Sequence[UncertainFile]
    ) -> Iterator[tuple[UncertainFile, str]]:
        """Give doubts of a plan for a folder with the texts of their files; of one that changed since, only that it did."""
        return said_now(folders.jail, folder, doubts, self._excerpts([doubt.file_hash for doubt in doubts]))

    def cancel(self, folders: Folders, plan_id: str) -> None:
        """Stop a plan in the making, or close one that was not begun. Conflict for any other."""
        job = self.job(folders, plan_id)
        if job is not None and job.is_running:
            job.call.cancel()
        else:
            self.plans.cancel(folders, plan_id)

    def revise(self, folders: Folders, call: Call, plan_id: str, decisions: Decisions) -> PlanView:
        """Take an agent's decisions on files of a CREATED plan: each holds for its file in this plan, and teaches nothing.

        InvalidArgument for a file that is not in the planned folder or a folder that cannot be; Conflict once the plan
        was approved.
        """
        with self._locks.hold(call, [plan_id]):
            before, found, chosen = self._decided(folders, call, plan_id, decisions)
            places = {folder: folder for folder in chosen.values() if folder}
            judged = decided(found.files, chosen)
            draft = self._drawing.drafted(folders.jail, before.folder, judged, places)
            files = [entry for one in judged for entry in (one.found, *one.found.members)]
            moves = of_files(before.moves, [entry.path for entry in files])
            self._apply(folders, call, plan_id, redrawn(moves, draft.wishes))
            notes = relabelled(before.notes, chosen, draft.doubts, found.directories)
            return self._noted(folders, plan_id, notes)

    def correct(self, folders: Folders, call: Call, plan_id: str, decisions: Decisions) -> PlanView:
        """Take a person's decisions: each is kept as an example, and judges the other files of the plan anew.

        It may be refused for the same reasons.
        """
        with self._locks.hold(call, [plan_id]):
            before, found, chosen = self._decided(folders, call, plan_id, decisions)
            with recorded(self._observer, plan_id, "correct") as recording:
                notes = self._correct(folders, call, before, found, chosen, recording)
            return self._noted(folders, plan_id, notes)

    def _decided(
        self, folders: Folders, call: Call, plan_id: str, decisions: Decisions
    ) -> tuple[PlanView, SurveyedFolder, Decisions]:
        """Return a plan that waits, its folder as it is, and the decisions in the words of both."""
        shown = self.show(folders, plan_id)
        status = shown.plan.status
        if status is not PlanStatus.CREATED:
            raise Conflict(f"Plan {plan_id} is {status}, so it cannot be revised.", status=status)
        found = self._drawing.scanned(folders.jail, call, shown.folder)
        files = by_path(found.files)
        known = [shelf.folder for shelf in shown.notes.shelves]
        return shown, found, {
            meant_file(path, shown.folder, files): None if not folder else chosen_folder(folder, known)
            for path, folder in decisions.items()
        }  # fmt: skip

    def _correct(
        self,
        folders: Folders,
        call: Call,
        shown: PlanView,
        found: SurveyedFolder,
        chosen: Decisions,
        recording: Recording,
    ) -> Notes:
        files = by_path(found.files)
        lessons = self._lessons({path: (files[path], folder) for path, folder in chosen.items()})
        every = {**shown.notes.decisions, **chosen}
        concerned = {item.src_path for item in shown.moves}
        concerned |= {f"{shown.folder}/{path}" for path in (*every, *(doubt.relative for doubt in shown.notes.doubts))}
        draft, notes = self._drawing.drawn(
            folders, call, found, every, recording, deep=shown.notes.deep, only=concerned, taught=lessons
        )
        self._apply(folders, call, shown.plan.id, redrawn(shown.moves, draft.wishes))
        self._keeping.examples.teach(shown.folder, lessons)
        return replace(notes, measures=shown.notes.measures, skips=shown.notes.skips, maker=shown.notes.maker)

    def _noted(self, folders: Folders, plan_id: str, notes: Notes) -> PlanView:
        """Keep what is known of a revised plan, with the share of files that stay as it is by now, and show it."""
        items = self.plans.find(folders, plan_id).items
        moved = sum(1 for item in items if item.composite_hash and item.unit in (None, item.src_path))
        measures = replace(notes.measures, kept=max(0, notes.measures.files - moved))
        self._keeping.notes.save(plan_id, replace(notes, measures=measures))
        return self.show(folders, plan_id)

    def _apply(self, folders: Folders, call: Call, plan_id: str, change: PlanRevision) -> None:
        self.plans.revise(folders, call, plan_id, change.dests, reasons=change.reasons, added=change.added)

    def explain(self, folders: Folders, call: Call, path: str) -> Explanation:
        """Return why a file lies where it lies and where it went. NotFound when neither disk nor journal knows it."""
        call.check()
        is_there, real = _where(folders.jail, path)
        past_of = self._past_of(folders)
        now, moves = trail_of(real, past_of, is_there=is_there)
        past = past_of(ancestors(now))
        waiting = next((one for one in past if one.src == now and one.status == "PENDING"), None)
        newest = waiting or (moves[0].past if moves else None)
        if newest is None and not is_there:
            raise NotFound(f"No such file or directory: {path}")
        if newest is not None:
            return Explanation(now, moves, waiting, verdict=self._verdict(newest))
        return Explanation(now, moves, waiting, *self._left(folders, real))

    def _make(self, folders: Folders, job: PlanJob, *, deep: bool) -> None:
        with recorded(self._observer, job.plan_id, "create") as recording:
            self._made(folders, job, recording, deep=deep)
        self._keeping.files.trim(self.settings.max_cached_files)

    def _made(self, folders: Folders, job: PlanJob, recording: Recording, *, deep: bool) -> None:
        found = self._drawing.scanned(folders.jail, job.call, job.folder)
        draft, notes = self._drawing.drawn(folders, job.call, found, {}, recording, deep=deep)
        self._keeping.notes.save(job.plan_id, replace(notes, maker=job.call.caller.client))
        job.call.progress(len(found.files), len(found.files), "Writing the plan")
        try:
            self.plans.create(folders, job.call, job.folder, draft.wishes, plan_id=job.plan_id, may_be_empty=True)
        except NotFound:
            there = [wish for wish in draft.wishes if _is_there(folders.jail, wish.src)]
            self.plans.create(folders, job.call, job.folder, there, plan_id=job.plan_id, may_be_empty=True)
        recording.measures = notes.measures

    def _lessons(self, decided: Mapping[str, tuple[SurveyedFile, str | None]]) -> list[Example]:
        """Return decisions about files as examples; what has no content teaches nothing."""
        texts = self._excerpts([one.file_hash for one, _ in decided.values()])
        return [
            Example(one.file_hash, one.found.name, chosen or KEEP, excerpt.text, excerpt.content_type)
            for one, chosen in decided.values()
            if (excerpt := texts.get(one.file_hash)) is not None
        ]

    def _past_of(self, folders: Folders) -> Callable[[Sequence[str]], list[PastMove]]:
        allowed = folders.jail.allowed_paths
        return lambda paths: self._keeping.notes.past_of(paths, allowed)

    def _verdict(self, past: PastMove) -> Verdict | None:
        notes = self._keeping.notes.load(past.plan_id)
        if notes is None or not past.file_hash:
            return None
        return self._keeping.files.verdicts([past.file_hash], notes.decider).get(past.file_hash)

    def _left(self, folders: Folders, path: str) -> tuple[UncertainFile | None, SkippedFile | None]:
        """Return what the newest plan for a folder above says of a file that it left."""
        for line in self.plans.list(folders, 20):
            if is_beneath(path, [line.folder]):
                notes = self._keeping.notes.load(line.id)
                doubt, skip = left_by(notes, path) if notes is not None else (None, None)
                now = next(self.said(folders, line.folder, [doubt]))[0] if doubt is not None else None
                return now, skip
        return None, None

    def _excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return what files said when they were read last."""
        return self._keeping.files.excerpts([hash_ for hash_ in hashes if hash_])


def _interrupted(plan_id: str, folder: str) -> Conflict:
    return Conflict(
        f"The scan of {folder} was interrupted before plan {plan_id} was made. Call create_organization_plan with that "
        "folder: it goes on from what was read.",
        status="INTERRUPTED",
    )


def _where(jail: Jail, path: str) -> tuple[bool, str]:
    """Return whether something is at a path, and the path with the links above it resolved."""
    try:
        with jail.place(path, follow=False) as place:
            return place.status is not None, place.path
    except (NotFound, NotDirectory):
        return False, jail.absolute(path)


def _is_there(jail: Jail, path: str) -> bool:
    try:
        return _where(jail, path)[0]
    except HoldfastError:
        return False
