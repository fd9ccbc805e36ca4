"""Builds a plan: survey the folder, derive the categories, classify the files, apply the confidence gate, take notes."""

import os
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from holdfast.call import Call
from holdfast.changes.disk.links import is_canonical_link, link_target
from holdfast.changes.names import collision_key
from holdfast.config.settings import OrganiserSettings
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.folders.service import Folders
from holdfast.observe.metrics import Metrics, ScanFigures
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import (
    KEEP,
    Example,
    FileType,
    Measures,
    ModelCall,
    Notes,
    PlanRecord,
    SkippedFile,
    SkipReason,
    Verdict,
)
from holdfast.organiser.planning.categories import NEVER_SORTED, CategorySet, build_categories, is_sorted
from holdfast.organiser.planning.classify_files import ClassificationRun, PlanStep, report_step
from holdfast.organiser.planning.confidence_gate import ClassifiedFile, NamesInFolder, PlanDraft, apply_gate
from holdfast.organiser.ports import Classifier, Corrections, FileCache, PlanNotes, PlanObserver
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import Survey, SurveyedFile
from holdfast.text.display import quantity

_MAX_UNCERTAIN = 10_000
_MAX_SKIPPED = 1_000
_NO_EXAMPLES = "Files in subfolders are sorted too, so none of them is an example of where files belong."

Decisions = Mapping[str, str | None]
"""The chosen folder of each file; None for a file that is to stay."""


@dataclass(frozen=True, slots=True)
class OrganiserState:
    """What the organiser keeps between calls: the file cache, a person's corrections, notes of plans."""

    files: FileCache
    corrections: Corrections
    notes: PlanNotes


@dataclass(slots=True)
class Recording:
    """What an observer will learn of some work on a plan; filled while the work goes on."""

    calls: list[ModelCall] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    measures: Measures | None = None


@contextmanager
def record_work(observer: PlanObserver | None, plan_id: str, event: str) -> Iterator[Recording]:
    """Give a recording to fill, and send it to the observer when the work has ended or failed."""
    recording, started_ns, fault = Recording(), time.time_ns(), "INTERNAL"
    try:
        yield recording
        fault = ""
    except HoldfastError as error:
        fault = error.code
        raise
    finally:
        if observer is not None:
            calls, ended_ns = tuple(recording.calls), time.time_ns()
            observer.record(
                PlanRecord(plan_id, event, started_ns, ended_ns, recording.counts, calls, recording.measures, fault)
            )


class MeasuredPlans:
    """Implements `PlanObserver`: counts each plan in the metrics, and passes its record on."""

    def __init__(self, metrics: Metrics, then: PlanObserver | None) -> None:
        self._metrics = metrics
        self._then = then

    def record(self, record: PlanRecord) -> None:
        """Take the record; never waits and never fails."""
        measures, counts = record.measures, record.counts
        moved, uncertain = counts.get("moves", 0), counts.get("uncertain", 0)
        stay = max(0, counts.get("files", 0) - moved - uncertain)
        figures = ScanFigures(
            outcome=record.fault.lower() or "ok",
            seconds=(record.ended_ns - record.started_ns) / 1e9,
            files_read=measures.files - measures.cache_hits if measures else 0,
            bytes_read=measures.bytes_read if measures else 0,
            verdicts={"move": moved, "uncertain": uncertain, "stay": stay} if counts else None,
        )
        self._metrics.scan_ended(figures)
        if self._then is not None:
            self._then.record(record)


@dataclass(frozen=True, slots=True)
class SurveyedFolder:
    """A folder after a survey: its files and units, the skipped entries, and the directories in the folder itself.

    Unreadable entries come first among the skipped ones. `closed` are the names in the folder itself that nothing can be
    moved into: units and skipped entries.
    """

    folder: str
    files: list[SurveyedFile]
    skipped: list[SkippedFile]
    closed: set[str]
    directories: list[str]
    survey: Survey


@dataclass(frozen=True, slots=True)
class PlanBuilder:
    """Builds plans with one classifier, and a fallback for files that it fails on."""

    state: OrganiserState
    classifier: Classifier
    fallback: Classifier
    settings: OrganiserSettings

    def survey_folder(self, jail: Jail, call: Call, folder: str) -> SurveyedFolder:
        """Scan a folder, and read the ends of the files that are not in the cache."""
        options = ScanOptions(self.settings.include_hidden, self.settings.allow_symlinks)
        survey = Survey(jail, call, folder, options, self.state.files)
        files: list[SurveyedFile] = []
        unreadable: list[SkippedFile] = []
        skipped: list[SkippedFile] = []
        closed: set[str] = set()
        for batch in survey:
            files += batch.files
            whole = [
                SkippedFile(entry.file.relative, SkipReason.WHOLE, entry.file.unit.value)
                for entry in batch.files
                if entry.file.unit is not None and entry.file.unit in NEVER_SORTED
            ]
            survey.skip_counts.update(entry.reason for entry in whole)
            for entry in (*batch.skipped, *whole):
                entries = unreadable if entry.reason is SkipReason.UNREADABLE else skipped
                if len(entries) < _MAX_SKIPPED:
                    entries.append(entry)
            closed |= {entry.relative.rstrip("/") for entry in batch.skipped}
            members = (file for entry in batch.files for file in (entry.file, *entry.file.members))
            closed |= {file.relative for file in members if file.type is FileType.DIRECTORY}
            closed = {name for name in closed if "/" not in name}
            report_step(
                call,
                PlanStep.SCAN,
                survey.entry_count,
                None,
                f"Scanned {quantity(survey.entry_count, 'entry', 'entries', separator=',')}",
            )
        with jail.open_directory(folder) as fd, os.scandir(fd) as listing:
            directories = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        directories = [name for name in directories if not jail.hides(f"{folder}/{name}")]
        return SurveyedFolder(folder, files, unreadable + skipped, closed, directories, survey)

    def build(
        self,
        folders: Folders,
        call: Call,
        folder_survey: SurveyedFolder,
        decisions: Decisions,
        recording: Recording,
        *,
        include_subfolders: bool,
        only: set[str] | None = None,
        new_corrections: Sequence[Example] | None = None,
        earlier: Mapping[str, Verdict] | None = None,
        by_agent: frozenset[str] = frozenset(),
    ) -> tuple[PlanDraft, Notes]:
        """Return the draft of a plan for a folder, and its notes; `only` limits it to these absolute paths.

        `by_agent` are the files whose decision was the agent's and not the user's.
        With new corrections every file is classified again, whatever is in the cache. `earlier` are moves by absolute path
        that stay what they are unless another folder passes the gate.
        """
        jail, folder, settings = folders.jail, folder_survey.folder, self.settings
        corrections = [*self.state.corrections.load_corrections(folder), *(new_corrections or ())]
        chosen_folders = [correction.category for correction in corrections if correction.category != KEEP]
        chosen_folders += [folder_of_file for folder_of_file in decisions.values() if folder_of_file]
        categories = _categories_for(folder_survey, settings.max_categories, include_subfolders, chosen_folders)
        to_classify = [
            entry
            for entry in folder_survey.files
            if is_sorted(entry.file, include_subfolders=include_subfolders)
            and entry.file.relative not in decisions
            and (only is None or entry.file.path in only)
        ]
        run = ClassificationRun(
            jail,
            call,
            self.state.files,
            self.classifier,
            self.fallback,
            settings.deep_below,
            folders.settings.max_document_bytes,
            recording.calls.append,
        )
        classified = run.classify(to_classify, categories, corrections, use_cache=new_corrections is None)
        classified = _keep_earlier_moves(classified, earlier or {}, categories.folders, settings.confidence_gate)
        classified += classify_by_decisions(folder_survey.files, decisions, by_agent)
        draft = self.draft(jail, folder, classified, categories.folders)
        recording.counts = {
            "files": len(classified),
            "moves": len(draft.moves),
            "uncertain": len(draft.uncertain),
        }
        used = {move.dest[len(folder) + 1 :].rpartition("/")[0] for move in draft.moves}
        remarks = (
            _NO_EXAMPLES if include_subfolders and any(entry.file.folder for entry in to_classify) else "",
            run.remark,
            _unread_remark(len(run.unread)),
            _broken_links_remark(jail, folder_survey, draft),
        )
        notes = Notes(
            decider=decider_key(self.classifier.decider, categories.categories),
            folder=folder,
            destinations=categories.destinations(used),
            uncertain=tuple(sorted(draft.uncertain, key=lambda file: -file.confidence)[:_MAX_UNCERTAIN]),
            uncertain_count=len(draft.uncertain),
            skipped=tuple(folder_survey.skipped),
            measures=_measure(folder_survey, run, draft.moved_files),
            decisions=decisions,
            agent_decisions=by_agent,
            include_subfolders=include_subfolders,
            remark=" ".join(filter(None, remarks)),
        )
        return draft, notes

    def draft(
        self, jail: Jail, folder: str, classified: Sequence[ClassifiedFile], category_folders: Mapping[str, str]
    ) -> PlanDraft:
        """Return the draft of a plan from classified files; links that would not survive a move stay."""
        checked = [_keep_indirect_link(jail, entry) for entry in classified]
        gate = self.settings.confidence_gate
        return apply_gate(checked, folder, category_folders, gate, _list_names_in(jail, folder))


def classify_by_decisions(
    files: Sequence[SurveyedFile], decisions: Decisions, by_agent: Container[str]
) -> list[ClassifiedFile]:
    """Return the files that the agent or the user decided on, with that decision as a certain verdict."""
    classified: list[ClassifiedFile] = []
    for entry in files:
        relative = entry.file.relative
        if relative in decisions:
            folder, decider = decisions[relative], "agent" if relative in by_agent else "user"
            reasoning = f"The {decider} chose this folder." if folder else f"The {decider} decided that it stays."
            verdict = Verdict(folder or KEEP, 1.0, reasoning=reasoning)
            classified.append(ClassifiedFile(entry.file, entry.file_hash, verdict))
    return classified


def _keep_earlier_moves(
    classified: Sequence[ClassifiedFile], earlier: Mapping[str, Verdict], folders: Mapping[str, str], gate: float
) -> list[ClassifiedFile]:
    """Return the files, with the verdict of an earlier move for those whose own verdict leads nowhere."""
    category_of = {folder: category for category, folder in folders.items()}

    def keep(entry: ClassifiedFile) -> ClassifiedFile:
        move = earlier.get(entry.file.path)
        leads_on = entry.verdict.category in folders and entry.verdict.confidence >= gate
        if move is None or leads_on or move.category not in category_of:
            return entry
        return entry._replace(verdict=replace(move, category=category_of[move.category]))

    return [keep(entry) for entry in classified]


def _categories_for(
    folder_survey: SurveyedFolder, max_categories: int, include_subfolders: bool, chosen_folders: Sequence[str]
) -> CategorySet:
    directories = [
        name for name in folder_survey.directories if name not in folder_survey.closed and not name.startswith(".")
    ]
    unavailable = [entry.file.relative for entry in folder_survey.files if not entry.file.folder]
    unavailable += sorted(folder_survey.closed)
    categories = build_categories(folder_survey.files, directories, unavailable, max_categories, include_subfolders)
    for folder in dict.fromkeys(chosen_folders):
        categories = categories.add_chosen(folder)
    return replace(categories, existing=categories.existing | set(folder_survey.directories))


def _list_names_in(jail: Jail, folder: str) -> NamesInFolder:
    """Return a function that lists the names in a subfolder once, and gives the same set for it from then on."""
    listed: dict[str, set[str]] = {}

    def names_in(target: str) -> set[str]:
        if target not in listed:
            try:
                with jail.open_directory(f"{folder}/{target}") as fd:
                    listed[target] = {collision_key(name) for name in os.listdir(fd)}
            except HoldfastError:
                listed[target] = set()
        return listed[target]

    return names_in


def _keep_indirect_link(jail: Jail, entry: ClassifiedFile) -> ClassifiedFile:
    """Return a file with its verdict, changed to stay for a link whose target cannot be rewritten for another folder."""
    if entry.file.type is not FileType.LINK or is_canonical_link(entry.file.path, _read_link(jail, entry.file.path)):
        return entry
    reason = "Its target is not a normalised path, so it cannot be rewritten for another folder."
    return entry._replace(verdict=Verdict(KEEP, 1.0, reasoning=reason))


def _unread_remark(count: int) -> str:
    if not count:
        return ""
    return f"{quantity(count, 'file')} could not be read because of a temporary error; the next scan tries again."


def _broken_links_remark(jail: Jail, folder_survey: SurveyedFolder, draft: PlanDraft) -> str:
    """Return how many links that stay would be broken because their targets move; empty if none would."""
    moving = {move.src for move in draft.moves}
    links = [
        f"{folder_survey.folder}/{entry.relative}" for entry in folder_survey.skipped if entry.reason is SkipReason.LINK
    ]
    links += [
        entry.file.path
        for entry in folder_survey.files
        if entry.file.type is FileType.LINK and entry.file.path not in moving
    ]
    count = sum(1 for link in links if link_target(link, _read_link(jail, link)) in moving)
    if not count:
        return ""
    if count == 1:
        return "1 link that stays would be broken, because its target moves."
    return f"{count} links that stay would be broken, because their targets move."


def _read_link(jail: Jail, link: str) -> str:
    try:
        with jail.place(link, follow=False) as place:
            return os.readlink(place.name, dir_fd=place.parent_fd)
    except (HoldfastError, OSError):
        return ""


def _measure(folder_survey: SurveyedFolder, run: ClassificationRun, moved_files: int) -> Measures:
    survey = folder_survey.survey
    files = [entry for entry in folder_survey.files if entry.file_hash]
    return Measures(
        files=len(files),
        cache_hits=sum(1 for entry in files if entry.excerpt is None and entry.file_hash not in run.classified_hashes),
        size_bytes=sum(entry.file.size for entry in files),
        bytes_read=survey.bytes_read + run.bytes_read,
        staying=len(files) - moved_files,
        skipped=dict(survey.skip_counts),
    )
