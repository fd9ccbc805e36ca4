"""The use cases of the organiser: make a plan, look at it, correct it, explain a file. Carrying out is a change's."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.changes.arrange import collision_key
from holdfast.changes.locks import Locks
from holdfast.changes.model import Item, Op, Plan, PlanStatus, is_beneath
from holdfast.changes.plans import Plans
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import Conflict, HoldfastError, NotDirectory, NotFound
from holdfast.folders.jail import Jail
from holdfast.folders.service import Folders
from holdfast.organiser.correct import by_path, chosen_folder, meant_file, redrawn
from holdfast.organiser.decide import Deciding
from holdfast.organiser.directory import Options
from holdfast.organiser.explain import Explanation, ancestors, trail_of
from holdfast.organiser.jobs import Job, Jobs
from holdfast.organiser.model import KEEP, Doubt, Example, Excerpt, Measures, Notes, Past, Skip, Verdict
from holdfast.organiser.model import Kind as Entry
from holdfast.organiser.order import Order, is_loose, order_of, with_shelf
from holdfast.organiser.plan import Draft, Judged, NamesIn, drafted
from holdfast.organiser.ports import Classifier, Examples, FileCache, PlanNotes
from holdfast.organiser.survey import Survey, Surveyed
from holdfast.organiser.taxonomy import decider_key

_MAX_DOUBTS = 10_000
_MAX_SKIPS = 1_000
_CHOSEN = "Somebody chose this folder."

Decisions = Mapping[str, str | None]
"""Folders by files: where somebody wants a file to go, None for one that is to stay."""


@dataclass(frozen=True, slots=True)
class Shown:
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


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where the organiser keeps what it knows: of files, of a person's corrections, of plans."""

    files: FileCache
    examples: Examples
    notes: PlanNotes


@dataclass(frozen=True, slots=True)
class _Surveyed:
    """A folder after a scan: everything that was found, what was left alone, and the directories in the folder itself.

    `apart` are the entries of the folder itself that nothing may go into: they are whole, or were left alone.
    """

    files: list[Surveyed]
    skips: list[Skip]
    apart: set[str]
    directories: list[str]
    survey: Survey


class Organiser:
    """The plans of every caller; each sees those beneath its own roots. Call `close()` at the end."""

    def __init__(
        self,
        plans: Plans,
        keeping: Keeping,
        classifier: Classifier,
        settings: OrganiserSettings,
        fallback: Classifier | None = None,
    ) -> None:
        self.plans = plans
        self.settings = settings
        self.jobs = Jobs()
        self._locks = Locks()
        self._keeping = keeping
        self._classifier = classifier
        self._fallback = fallback or classifier

    def close(self) -> None:
        """Stop the plans in the making."""
        self.jobs.close()

    def begin(self, folders: Folders, call: Call, folder: str, *, deep: bool = False) -> Job:
        """Begin to make a plan for a folder; `deep` sorts the files in its subfolders as well.

        Raises what the jail says of the folder, at once.
        """
        root, parts = folders.jail.locate(folder)
        absolute = "/".join([root.path.rstrip("/"), *parts]) or "/"
        with folders.jail.open_directory(absolute):
            pass
        return self.jobs.start(call.caller, absolute, root.path, lambda job: self._make(folders, job, deep=deep))

    def job(self, folders: Folders, plan_id: str) -> Job | None:
        """Return a plan of the caller that is in the making or lately was; None for any other."""
        job = self.jobs.find(plan_id)
        return job if job is not None and is_beneath(job.root, folders.jail.allowed) else None

    def show(self, folders: Folders, plan_id: str) -> Shown:
        """Return a plan of the caller. NotFound for any other."""
        plan = self.plans.find(folders, plan_id)
        notes = self._keeping.notes.load(plan_id) or Notes(decider="")
        return Shown(plan, notes, self.plans.hash_of(plan), self.settings.require_approval)

    def excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return what files said when they were read last."""
        return self._keeping.files.excerpts([hash_ for hash_ in hashes if hash_])

    def cancel(self, folders: Folders, plan_id: str) -> None:
        """Stop a plan in the making, or close one that was not begun. Conflict for any other."""
        job = self.job(folders, plan_id)
        if job is not None and job.is_running:
            job.call.cancel()
        else:
            self.plans.cancel(folders, plan_id)

    def revise(self, folders: Folders, call: Call, plan_id: str, decisions: Decisions) -> Shown:
        """Correct a CREATED plan; what was decided is kept as an example, and judges the other files of the plan anew.

        InvalidArgument for a file that is not in the planned folder or a folder that cannot be; Conflict once the plan
        was approved.
        """
        with self._locks.hold(call, [plan_id]):
            self._revise(folders, call, self.show(folders, plan_id), decisions)
            return self.show(folders, plan_id)

    def _revise(self, folders: Folders, call: Call, shown: Shown, decisions: Decisions) -> None:
        plan_id, status = shown.plan.id, shown.plan.status
        if status is not PlanStatus.CREATED:
            raise Conflict(f"Plan {plan_id} is {status}, so it cannot be revised.", status=status)
        found = self._surveyed(folders.jail, call, shown.folder)
        files = by_path(found.files)
        known = [shelf.folder for shelf in shown.notes.shelves]
        decided = {
            meant_file(path, shown.folder, files): None if not folder else chosen_folder(folder, known)
            for path, folder in decisions.items()
        }
        lessons = self._lessons({path: (files[path], folder) for path, folder in decided.items()})
        every = {**shown.notes.decisions, **decided}
        concerned = {item.src_path for item in shown.moves}
        concerned |= {f"{shown.folder}/{path}" for path in (*every, *(doubt.relative for doubt in shown.notes.doubts))}
        draft, notes = self._drafted(
            folders, call, shown.folder, found, every, deep=shown.notes.deep, only=concerned, taught=lessons
        )
        change = redrawn(shown.moves, draft.wishes)
        self.plans.revise(folders, call, plan_id, change.dests, reasons=change.reasons, added=change.added)
        self._keeping.examples.teach(shown.folder, lessons)
        self._keeping.notes.save(plan_id, replace(notes, measures=shown.notes.measures, skips=shown.notes.skips))

    def explain(self, folders: Folders, call: Call, path: str) -> Explanation:
        """Return why a file lies where it lies and where it went. NotFound when neither disk nor journal knows it."""
        call.check()
        is_there, real = _where(folders.jail, path)
        past_of = self._past_of(folders)
        now, moves = trail_of(real, past_of, is_there=is_there)
        past = past_of(ancestors(real))
        waiting = next((one for one in past if one.src == real and one.status == "PENDING"), None)
        newest = waiting or (moves[0].past if moves else None)
        if newest is None and not is_there:
            raise NotFound(f"No such file or directory: {path}")
        verdict = self._verdict(newest) if newest is not None else None
        return Explanation(now, moves, waiting, self._doubt(folders, real) if newest is None else None, verdict)

    def _make(self, folders: Folders, job: Job, *, deep: bool) -> None:
        found = self._surveyed(folders.jail, job.call, job.folder)
        draft, notes = self._drafted(folders, job.call, job.folder, found, {}, deep=deep)
        self._keeping.notes.save(job.plan_id, notes)
        job.call.progress(len(found.files), len(found.files), "Writing the plan")
        try:
            self.plans.create(folders, job.call, job.folder, draft.wishes, plan_id=job.plan_id, may_be_empty=True)
        except NotFound:
            there = [wish for wish in draft.wishes if _is_there(folders.jail, wish.src)]
            self.plans.create(folders, job.call, job.folder, there, plan_id=job.plan_id, may_be_empty=True)
        self._keeping.files.trim(self.settings.max_cached_files)

    def _surveyed(self, jail: Jail, call: Call, folder: str) -> _Surveyed:
        options = Options(self.settings.include_hidden, self.settings.allow_symlinks)
        survey = Survey(jail, call, folder, options, self._keeping.files)
        files: list[Surveyed] = []
        skips: list[Skip] = []
        apart: set[str] = set()
        for stretch in survey:
            files += stretch.files
            skips += stretch.skipped[: _MAX_SKIPS - len(skips)]
            apart |= {skip.relative.rstrip("/") for skip in stretch.skipped}
            apart |= {one.found.relative for one in stretch.files if one.found.kind is Entry.DIRECTORY}
            apart = {name for name in apart if "/" not in name}
            call.progress(survey.seen, None, f"Scanned {survey.seen} entries")
        with jail.open_directory(folder) as fd, os.scandir(fd) as entries:
            directories = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return _Surveyed(files, skips, apart, directories, survey)

    def _drafted(
        self,
        folders: Folders,
        call: Call,
        folder: str,
        found: _Surveyed,
        decisions: Decisions,
        *,
        deep: bool,
        only: set[str] | None = None,
        taught: Sequence[Example] | None = None,
    ) -> tuple[Draft, Notes]:
        """Return what becomes of a folder's files, or `only` of some, and what is to be known of the plan.

        With something newly `taught` every file is judged anew.
        """
        jail, settings = folders.jail, self.settings
        lessons = [*self._keeping.examples.lessons(folder), *(taught or ())]
        order = _order(found, settings.max_categories, deep, lessons, decisions)
        loose = [one for one in found.files if is_loose(one.found, deep=deep) and one.found.relative not in decisions]
        loose = [one for one in loose if only is None or one.found.path in only]
        run = Deciding(
            jail,
            call,
            self._keeping.files,
            self._classifier,
            self._fallback,
            settings.deep_below,
            folders.settings.max_document_bytes,
        )
        judged = run.judged(loose, order, lessons, anew=taught is not None)
        judged += _decided(found.files, decisions)
        judged = [_link_stays(jail, one) for one in judged]
        draft = drafted(judged, folder, order.places, settings.confidence_gate, _names_in(jail, folder))
        used = {wish.dest[len(folder) + 1 :].rpartition("/")[0] for wish in draft.wishes}
        notes = Notes(
            decider=decider_key(self._classifier.decider, order.categories),
            shelves=order.shelves(used),
            doubts=tuple(sorted(draft.doubts, key=lambda doubt: -doubt.confidence)[:_MAX_DOUBTS]),
            doubted=len(draft.doubts),
            skips=tuple(found.skips),
            measures=_measures(found, run, draft.moved),
            decisions=decisions,
            deep=deep,
            remark=run.remark,
        )
        return draft, notes

    def _lessons(self, decided: Mapping[str, tuple[Surveyed, str | None]]) -> list[Example]:
        """Return decisions about files as examples; what has no content teaches nothing."""
        texts = self.excerpts([one.file_hash for one, _ in decided.values()])
        return [
            Example(one.file_hash, one.found.name, chosen or KEEP, excerpt.text, excerpt.content_type)
            for one, chosen in decided.values()
            if (excerpt := texts.get(one.file_hash)) is not None
        ]

    def _past_of(self, folders: Folders) -> Callable[[Sequence[str]], list[Past]]:
        allowed = folders.jail.allowed
        return lambda paths: self._keeping.notes.past_of(paths, allowed)

    def _verdict(self, past: Past) -> Verdict | None:
        notes = self._keeping.notes.load(past.plan_id)
        if notes is None or not past.file_hash:
            return None
        return self._keeping.files.verdicts([past.file_hash], notes.decider).get(past.file_hash)

    def _doubt(self, folders: Folders, path: str) -> Doubt | None:
        """Return what the newest plan for a folder above says of a file that it left."""
        for line in self.plans.list(folders, 20):
            if is_beneath(path, [line.folder]):
                notes = self._keeping.notes.load(line.id)
                doubts = notes.doubts if notes is not None else ()
                return next((one for one in doubts if f"{line.folder}/{one.relative}" == path), None)
        return None


def _order(
    found: _Surveyed, most: int, deep: bool, lessons: Sequence[Example], decisions: Mapping[str, str | None]
) -> Order:
    directories = [name for name in found.directories if name not in found.apart and not name.startswith(".")]
    taken = [*(one.found.relative for one in found.files if not one.found.folder), *sorted(found.apart)]
    order = order_of(found.files, directories, taken, most, deep)
    chosen = [lesson.category for lesson in lessons if lesson.category != KEEP]
    for folder in dict.fromkeys([*chosen, *(folder for folder in decisions.values() if folder)]):
        order = with_shelf(order, folder)
    return order


def _decided(files: Sequence[Surveyed], decisions: Mapping[str, str | None]) -> list[Judged]:
    return [
        Judged(one.found, one.file_hash, Verdict(decisions[one.found.relative] or KEEP, 1.0, reasoning=_CHOSEN))
        for one in files
        if one.found.relative in decisions
    ]


def _names_in(jail: Jail, folder: str) -> NamesIn:
    known: dict[str, set[str]] = {}

    def names_in(target: str) -> set[str]:
        if target not in known:
            try:
                with jail.open_directory(f"{folder}/{target}") as fd:
                    known[target] = {collision_key(name) for name in os.listdir(fd)}
            except HoldfastError:
                known[target] = set()
        return known[target]

    return names_in


def _link_stays(jail: Jail, one: Judged) -> Judged:
    """Return the verdict on a link: one that is relative would lead elsewhere from another folder, so it stays."""
    if one.found.kind is not Entry.LINK:
        return one
    with jail.place(one.found.path, follow=False) as place:
        is_absolute = os.readlink(place.name, dir_fd=place.parent_fd).startswith("/")
    reason = "It is a relative link, which would lead elsewhere from another folder."
    return one if is_absolute else one._replace(verdict=Verdict(KEEP, 1.0, reasoning=reason))


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


def _measures(found: _Surveyed, run: Deciding, moved: int) -> Measures:
    survey = found.survey
    files = [one for one in found.files if one.file_hash]
    return Measures(
        files=len(files),
        cache_hits=sum(1 for one in files if one.excerpt is None and one.file_hash not in run.asked),
        size_bytes=sum(one.found.size for one in files),
        bytes_read=survey.bytes_read + run.bytes_read,
        kept=len(files) - moved,
        skipped=dict(survey.counts),
    )
