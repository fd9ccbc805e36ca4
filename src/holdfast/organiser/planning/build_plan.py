"""Draws a plan up: surveys a folder, finds its order, has files judged, and says what becomes of each and what is to be known."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.changes.disk.links import is_canonical_link, link_target
from holdfast.changes.names import collision_key
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.folders.service import Folders
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import KEEP, Example, Measures, Notes, SkippedFile, SkipReason, Verdict
from holdfast.organiser.model import FileType as Entry
from holdfast.organiser.planning.categories import CategorySet, is_loose, order_of, with_shelf
from holdfast.organiser.planning.classify_files import ClassificationRun
from holdfast.organiser.planning.confidence_gate import ClassifiedFile, NamesInFolder, PlanDraft, drafted
from holdfast.organiser.planning.measurements import Recording
from holdfast.organiser.ports import Classifier, Examples, FileCache, PlanNotes
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import Survey, SurveyedFile

_MAX_DOUBTS = 10_000
_MAX_SKIPS = 1_000
_CHOSEN = "Somebody chose this folder."

Decisions = Mapping[str, str | None]
"""Folders by files: where somebody wants a file to go, None for one that is to stay."""


@dataclass(frozen=True, slots=True)
class OrganiserState:
    """Where the organiser keeps what it knows: of files, of a person's corrections, of plans."""

    files: FileCache
    examples: Examples
    notes: PlanNotes


@dataclass(frozen=True, slots=True)
class SurveyedFolder:
    """A folder after a scan: everything that was found, what was left alone, and the directories in the folder itself.

    The first of what was left alone is what could not be read: nobody asked for that.
    `apart` are the entries of the folder itself that nothing may go into: they are whole, or were left alone.
    """

    folder: str
    files: list[SurveyedFile]
    skips: list[SkippedFile]
    apart: set[str]
    directories: list[str]
    survey: Survey


@dataclass(frozen=True, slots=True)
class PlanBuilder:
    """Draws plans up with one classifier, and another for what it cannot judge."""

    keeping: OrganiserState
    classifier: Classifier
    fallback: Classifier
    settings: OrganiserSettings

    def scanned(self, jail: Jail, call: Call, folder: str) -> SurveyedFolder:
        """Look through a folder."""
        options = ScanOptions(self.settings.include_hidden, self.settings.allow_symlinks)
        survey = Survey(jail, call, folder, options, self.keeping.files)
        files: list[SurveyedFile] = []
        unreadable: list[SkippedFile] = []
        skips: list[SkippedFile] = []
        apart: set[str] = set()
        for stretch in survey:
            files += stretch.files
            for skip in stretch.skipped:
                some = unreadable if skip.reason is SkipReason.UNREADABLE else skips
                some += [skip][: _MAX_SKIPS - len(some)]
            apart |= {skip.relative.rstrip("/") for skip in stretch.skipped}
            entries = (entry for one in stretch.files for entry in (one.found, *one.found.members))
            apart |= {entry.relative for entry in entries if entry.kind is Entry.DIRECTORY}
            apart = {name for name in apart if "/" not in name}
            call.progress(survey.seen, None, f"SurveyedFolder {survey.seen} entries")
        with jail.open_directory(folder) as fd, os.scandir(fd) as listing:
            directories = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        return SurveyedFolder(folder, files, unreadable + skips, apart, directories, survey)

    def drawn(
        self,
        folders: Folders,
        call: Call,
        found: SurveyedFolder,
        decisions: Decisions,
        recording: Recording,
        *,
        deep: bool,
        only: set[str] | None = None,
        taught: Sequence[Example] | None = None,
    ) -> tuple[PlanDraft, Notes]:
        """Return what becomes of a folder's files, or `only` of some, and what is to be known of the plan.

        With something newly `taught` every file is judged anew.
        """
        jail, folder, settings = folders.jail, found.folder, self.settings
        lessons = [*self.keeping.examples.lessons(folder), *(taught or ())]
        order = _order(found, settings.max_categories, deep, lessons, decisions)
        loose = [one for one in found.files if is_loose(one.found, deep=deep) and one.found.relative not in decisions]
        loose = [one for one in loose if only is None or one.found.path in only]
        run = ClassificationRun(
            jail,
            call,
            self.keeping.files,
            self.classifier,
            self.fallback,
            settings.deep_below,
            folders.settings.max_document_bytes,
            recording.calls.append,
        )
        judged = run.judged(loose, order, lessons, anew=taught is not None)
        judged += decided(found.files, decisions)
        draft = self.drafted(jail, folder, judged, order.places)
        recording.counts = {"files": len(judged), "moves": len(draft.wishes), "uncertain": len(draft.doubts)}
        used = {wish.dest[len(folder) + 1 :].rpartition("/")[0] for wish in draft.wishes}
        notes = Notes(
            decider=decider_key(self.classifier.decider, order.categories),
            folder=folder,
            shelves=order.shelves(used),
            doubts=tuple(sorted(draft.doubts, key=lambda doubt: -doubt.confidence)[:_MAX_DOUBTS]),
            doubted=len(draft.doubts),
            skips=tuple(found.skips),
            measures=_measures(found, run, draft.moved),
            decisions=decisions,
            deep=deep,
            remark=" ".join(filter(None, (run.remark, _unread(len(run.unread)), _orphaned(jail, found, draft)))),
        )
        return draft, notes

    def drafted(
        self, jail: Jail, folder: str, judged: Sequence[ClassifiedFile], places: Mapping[str, str]
    ) -> PlanDraft:
        """Return what becomes of judged files, given the folders of their categories."""
        staying = [_link_stays(jail, one) for one in judged]
        return drafted(staying, folder, places, self.settings.confidence_gate, _names_in(jail, folder))


def decided(files: Sequence[SurveyedFile], decisions: Decisions) -> list[ClassifiedFile]:
    """Return the files that somebody has decided on, as judged so."""
    return [
        ClassifiedFile(one.found, one.file_hash, Verdict(decisions[one.found.relative] or KEEP, 1.0, reasoning=_CHOSEN))
        for one in files
        if one.found.relative in decisions
    ]


def _order(
    found: SurveyedFolder, most: int, deep: bool, lessons: Sequence[Example], decisions: Decisions
) -> CategorySet:
    directories = [name for name in found.directories if name not in found.apart and not name.startswith(".")]
    taken = [*(one.found.relative for one in found.files if not one.found.folder), *sorted(found.apart)]
    order = order_of(found.files, directories, taken, most, deep)
    chosen = [lesson.category for lesson in lessons if lesson.category != KEEP]
    for folder in dict.fromkeys([*chosen, *(folder for folder in decisions.values() if folder)]):
        order = with_shelf(order, folder)
    return replace(order, existing=order.existing | set(found.directories))


def _names_in(jail: Jail, folder: str) -> NamesInFolder:
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


def _link_stays(jail: Jail, one: ClassifiedFile) -> ClassifiedFile:
    """Return the verdict on a link: one that leads on a detour could not be written again as it is, so it stays."""
    if one.found.kind is not Entry.LINK:
        return one
    text = _said_by(jail, one.found.path)
    reason = "It is a link that leads on a detour, which would be lost elsewhere."
    return (
        one if is_canonical_link(one.found.path, text) else one._replace(verdict=Verdict(KEEP, 1.0, reasoning=reason))
    )


def _unread(count: int) -> str:
    if not count:
        return ""
    files = "1 file" if count == 1 else f"{count} files"
    return f"{files} could not be read this time, for no fault of theirs; the next scan tries again."


def _orphaned(jail: Jail, found: SurveyedFolder, draft: PlanDraft) -> str:
    """Return that links which stay would lead nowhere, because what they lead to moves; nothing where there are none."""
    moving = {wish.src for wish in draft.wishes}
    links = [f"{found.folder}/{skip.relative}" for skip in found.skips if skip.reason is SkipReason.LINK]
    links += [one.found.path for one in found.files if one.found.kind is Entry.LINK and one.found.path not in moving]
    count = sum(1 for link in links if link_target(link, _said_by(jail, link)) in moving)
    if not count:
        return ""
    return f"{'1 link that stays' if count == 1 else f'{count} links that stay'} would lead nowhere: the file behind moves."


def _said_by(jail: Jail, link: str) -> str:
    try:
        with jail.place(link, follow=False) as place:
            return os.readlink(place.name, dir_fd=place.parent_fd)
    except (HoldfastError, OSError):
        return ""


def _measures(found: SurveyedFolder, run: ClassificationRun, moved: int) -> Measures:
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
