"""Classifies the files of a plan: verdicts from the cache where there are some, else by reading and the classifier.

A file is read in full where its ends call for it, and again where the first verdict on it is uncertain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.organiser.classify.confidence import final_confidence
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import KEEP, MIN_CHARS, Category, Example, Excerpt, ModelCall, ScannedFile, Verdict
from holdfast.organiser.planning.categories import CategorySet
from holdfast.organiser.planning.confidence_gate import ClassifiedFile
from holdfast.organiser.ports import CachedFile, Classifier, ClassifyFault, FileCache
from holdfast.organiser.scan.excerpts import reader_for, reason_to_read_text
from holdfast.organiser.scan.read import read_texts
from holdfast.organiser.scan.survey import SurveyedFile
from holdfast.text.display import quantity

MAX_TOGETHER = 4_000
"""Files whose texts are in memory at once."""

_MAX_DOCUMENTS_PER_FOLDER = 12
"""Documents of one folder that are read in full as examples."""

_MANY_ENTRIES = 20_000
"""Entries after which a scan, whose end is unknown, counts as half done."""


_READ_TOGETHER = 64
"""Files that are read in full before what was read is cached, so that an interrupted scan loses no more."""


class PlanStep(IntEnum):
    """The steps by which a plan is made, in their order; progress is counted in steps."""

    SCAN = 0
    LEARN = 1
    CLASSIFY = 2
    WRITE = 3


def report_step(call: Call, step: PlanStep, done: int, total: int | None, message: str) -> None:
    """Report how much of a step is done. Over all steps the figure only grows, as the protocol asks of progress."""
    share = done / (done + _MANY_ENTRIES) if total is None else min(1.0, done / max(1, total))
    call.progress(round(step + share, 4), float(len(PlanStep)), message)


@dataclass(slots=True)
class ClassificationRun:
    """One run over the files of a folder.

    `classified_hashes` are the hashes of the files that went to the classifier. `unread` are the files whose readers failed for a
    transient reason: neither that nor a verdict on them is cached. If an example is among them, verdicts of the local
    classifier are not cached either, since they would be different with it.
    """

    jail: Jail
    call: Call
    cache: FileCache
    classifier: Classifier
    fallback: Classifier
    read_text_below: float
    max_document_bytes: int
    on_model_call: Callable[[ModelCall], None]
    classified_hashes: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    bytes_read: int = 0
    remark: str = ""
    _taxonomy: list[Category] | None = field(default=None)
    _has_unread_examples: bool = field(default=False)
    _file_count: int = field(default=0)
    _part: range = field(default=range(0))

    def classify(
        self,
        files: Sequence[SurveyedFile],
        categories: CategorySet,
        corrections: Sequence[Example],
        *,
        use_cache: bool = True,
    ) -> list[ClassifiedFile]:
        """Return the files with their verdicts, in the same order; a person's correction of a file decides for it."""
        classified: list[ClassifiedFile] = []
        self._file_count = len(files)
        for start in range(0, len(files), MAX_TOGETHER):
            self.call.check()
            part = files[start : start + MAX_TOGETHER]
            self._part = range(start, start + len(part))
            known = self._known_verdicts(part, categories, corrections, use_cache=use_cache)
            unknown = [entry for entry in part if entry.file_hash not in known]
            new = iter(self._classify_unknown(unknown, categories, corrections) if unknown else ())
            for entry in part:
                verdict = known.get(entry.file_hash) or next(new)
                final = final_confidence(verdict.category, entry.file.name, verdict.confidence)
                verdict = replace(verdict, confidence=final)
                classified.append(ClassifiedFile(entry.file, entry.file_hash, verdict))
        return classified

    def _known_verdicts(
        self,
        files: Sequence[SurveyedFile],
        categories: CategorySet,
        corrections: Sequence[Example],
        *,
        use_cache: bool,
    ) -> dict[str, Verdict]:
        """Return the verdicts by hash that need no classifier: a person's corrections, then what is cached."""
        hashes = [entry.file_hash for entry in files if entry.file_hash]
        key = decider_key(self.classifier.decider, categories.categories)
        verdicts = self.cache.load_verdicts(hashes, key) if use_cache else {}
        allowed = {*categories.folders, KEEP}
        known = {hash_: verdict for hash_, verdict in verdicts.items() if verdict.category in allowed}
        corrected = {correction.file_hash: correction.category for correction in corrections}
        for hash_ in hashes:
            if (category := corrected.get(hash_)) in allowed:
                known[hash_] = Verdict(category, 1.0, reasoning="You decided so before.", decider="person")
        return known

    def _classify_unknown(
        self, files: Sequence[SurveyedFile], categories: CategorySet, corrections: Sequence[Example]
    ) -> list[Verdict]:
        """Read and classify files, read more of the uncertain ones, and classify again if that gave more text."""
        self.classified_hashes.update(entry.file_hash for entry in files)
        taxonomy = self._load_taxonomy(categories, corrections)
        hashes = [entry.file_hash for entry in files if entry.file_hash]
        cached = self.cache.load_excerpts(hashes)
        excerpts = [
            entry.excerpt or cached.get(entry.file_hash) or _excerpt_without_content(entry.file) for entry in files
        ]
        excerpts = self._read_more(files, excerpts)
        self._report(0.5, f"Deciding where {quantity(len(files), 'file', separator=',')} belong")
        verdicts = self._ask_classifier(files, excerpts, categories, taxonomy)
        longer = self._read_more(files, excerpts, verdicts)
        if any(new.text != old.text for new, old in zip(longer, excerpts, strict=True)):
            verdicts = self._ask_classifier(files, longer, categories, taxonomy)
        excerpts = longer
        verdicts = [_explain_unread(verdict, excerpt) for verdict, excerpt in zip(verdicts, excerpts, strict=True)]
        if self.classifier.sends_to or not self._has_unread_examples:
            self.cache.save(
                [
                    CachedFile(entry.file, entry.file_hash, None, verdict)
                    for entry, excerpt, verdict in zip(files, excerpts, verdicts, strict=True)
                    if entry.file_hash and not excerpt.is_transient
                ]
            )
        return verdicts

    def _read_more(
        self, files: Sequence[SurveyedFile], excerpts: Sequence[Excerpt], verdicts: Sequence[Verdict] | None = None
    ) -> list[Excerpt]:
        """Return the excerpts, replaced for files that must be read in full, by their ends or by their verdicts."""
        result = list(excerpts)
        to_read = [
            at
            for at, (entry, excerpt) in enumerate(zip(files, excerpts, strict=True))
            if entry.file_hash
            and reason_to_read_text(
                excerpt, entry.file.suffix[1:], verdicts[at] if verdicts else None, self.read_text_below
            )
        ]
        begin = 0.5 if verdicts else 0.0

        def report(done: int) -> None:
            share = begin + 0.4 * done / len(to_read)
            self._report(share, f"Reading documents: {done:,} of {len(to_read):,}")

        texts = self._read_texts([(files[at], excerpts[at]) for at in to_read], report)
        for at, excerpt in zip(to_read, texts, strict=True):
            result[at] = excerpt
        return result

    def _ask_classifier(
        self,
        files: Sequence[SurveyedFile],
        excerpts: Sequence[Excerpt],
        categories: CategorySet,
        taxonomy: Sequence[Category],
    ) -> list[Verdict]:
        """Return the verdicts of the classifier, which is asked separately about files with and without text."""
        verdicts: dict[int, Verdict] = {}
        with_text = [at for at, excerpt in enumerate(excerpts) if len(excerpt.text) >= MIN_CHARS]
        without_text = [at for at, excerpt in enumerate(excerpts) if len(excerpt.text) < MIN_CHARS]
        for group, choices in ((with_text, categories.comparable_by_text(taxonomy)), (without_text, taxonomy)):
            pairs = [(files[at].file, excerpts[at]) for at in group]
            answers = self._ask_or_fall_back(pairs, choices, categories) if pairs else []
            verdicts |= dict(zip(group, answers, strict=True))
        return [verdicts[at] for at in range(len(files))]

    def _ask_or_fall_back(
        self, files: Sequence[tuple[ScannedFile, Excerpt]], taxonomy: Sequence[Category], categories: CategorySet
    ) -> list[Verdict]:
        """Return the verdicts of the classifier, and of the local fallback for files that it failed on."""
        key = decider_key(self.classifier.decider, categories.categories)
        fallback_key = decider_key(self.fallback.decider, categories.categories)
        verdicts: Sequence[Verdict | None]
        try:
            verdicts = self.classifier.classify(files, taxonomy, self.call.check, self.on_model_call)
        except ClassifyFault as fault:
            verdicts = fault.verdicts
            self.remark = f"{self.classifier.sends_to} failed ({fault}); files were classified on this machine instead."
        else:
            if self.classifier.sends_to:
                self.remark = f"Names and excerpts of files were sent to {self.classifier.sends_to}."
        missing = [file for file, verdict in zip(files, verdicts, strict=True) if verdict is None]
        fallbacks = iter(
            self.fallback.classify(missing, taxonomy, self.call.check, self.on_model_call) if missing else ()
        )
        return [
            replace(verdict, decider=key) if verdict else replace(next(fallbacks), decider=fallback_key)
            for verdict in verdicts
        ]

    def _load_taxonomy(self, categories: CategorySet, corrections: Sequence[Example]) -> list[Category]:
        """Return the categories with their examples, read once in a run."""
        if self._taxonomy is None:
            excerpts: dict[str, Excerpt] = {}
            folder_count = len(categories.example_files)
            for at, files in enumerate(categories.example_files.values()):
                message = f"Learning from the folders: {at + 1:,} of {folder_count:,}"
                report_step(self.call, PlanStep.LEARN, at, folder_count, message)
                self.call.check()
                excerpts |= self._read_examples(files)
            self._taxonomy = categories.with_examples(excerpts, corrections)
            self._has_unread_examples = bool(self.unread)
        return self._taxonomy

    def _read_examples(self, files: Sequence[SurveyedFile]) -> dict[str, Excerpt]:
        """Return the excerpts of a folder's examples by hash; of many documents, only some are read in full."""
        excerpts = self.cache.load_excerpts([entry.file_hash for entry in files])
        documents = [
            (entry, excerpts[entry.file_hash])
            for entry in files
            if entry.file_hash in excerpts and reason_to_read_text(excerpts[entry.file_hash], entry.file.suffix[1:])
        ]
        sample = documents[:: -(-len(documents) // _MAX_DOCUMENTS_PER_FOLDER)] if documents else documents
        for (entry, _), excerpt in zip(sample, self._read_texts(sample), strict=True):
            excerpts[entry.file_hash] = excerpt
        return excerpts

    def _read_texts(
        self, files: Sequence[tuple[SurveyedFile, Excerpt]], report: Callable[[int], None] = lambda _done: None
    ) -> list[Excerpt]:
        """Read files in full and cache their excerpts, some at a time; `report` is called with how many are read."""
        excerpts: list[Excerpt] = []
        for start in range(0, len(files), _READ_TOGETHER):
            report(start)
            excerpts += self._read_and_cache(files[start : start + _READ_TOGETHER])
        return excerpts

    def _read_and_cache(self, files: Sequence[tuple[SurveyedFile, Excerpt]]) -> list[Excerpt]:
        """Read files in full and cache their excerpts, except those that failed for a transient reason."""
        pairs = [(entry.file, excerpt) for entry, excerpt in files]
        excerpts = read_texts(self.jail, self.call, pairs, self.max_document_bytes)
        self.bytes_read += sum(excerpt.bytes_read for excerpt in excerpts)
        to_cache = []
        for (entry, _), excerpt in zip(files, excerpts, strict=True):
            if excerpt.is_transient:
                self.unread.add(entry.file.relative)
            else:
                to_cache.append(CachedFile(entry.file, entry.file_hash, excerpt))
        self.cache.save(to_cache)
        return excerpts

    def _report(self, share: float, message: str) -> None:
        """Report progress: the files before the part at hand, and a share of it."""
        done = self._part.start + int(share * len(self._part))
        report_step(self.call, PlanStep.CLASSIFY, done, self._file_count, message)


def _explain_unread(verdict: Verdict, excerpt: Excerpt) -> Verdict:
    """Return a verdict that says why the text of the file was not read, if it has a reader and the reader failed."""
    if not excerpt.note or reader_for(excerpt.content_type) is None:
        return verdict
    return replace(verdict, reasoning=f"{verdict.reasoning} Its text was not read: {excerpt.note}.".lstrip())


def _excerpt_without_content(file: ScannedFile) -> Excerpt:
    return Excerpt("", 0, 0, "inode/directory" if file.unit is not None else "inode/symlink")
