"""Says where files belong: from memory where the same decider has judged them, else by reading and the classifier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.organiser.classify.confidence import final_confidence
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import KEEP, MIN_CHARS, Category, Example, Excerpt, ModelCall, ScannedFile, Verdict
from holdfast.organiser.planning.categories import CategorySet
from holdfast.organiser.planning.confidence_gate import ClassifiedFile
from holdfast.organiser.ports import CachedFile, Classifier, ClassifyFault, FileCache
from holdfast.organiser.scan.excerpts import reader_of, why_deep
from holdfast.organiser.scan.read import deepen
from holdfast.organiser.scan.survey import SurveyedFile

PORTION = 4_000
"""Files whose texts are held at once."""

_DEEP_EXAMPLES = 12
"""Documents of one folder whose text is taken out to learn from."""


@dataclass(slots=True)
class ClassificationRun:
    """One run over the files of a folder; `asked`, the hashes that the classifier judged, and `bytes_read` grow.

    `told` hears of each request to a model elsewhere. `unread` are the files whose readers failed this time: neither
    that nor a verdict on them is remembered, nor, when they are examples, any verdict that was not asked for elsewhere.
    """

    jail: Jail
    call: Call
    cache: FileCache
    classifier: Classifier
    fallback: Classifier
    deep_below: float
    max_document_bytes: int
    told: Callable[[ModelCall], None]
    asked: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    bytes_read: int = 0
    remark: str = ""
    _learned: list[Category] | None = field(default=None)
    _is_learned_in_part: bool = field(default=False)

    def judged(
        self, files: Sequence[SurveyedFile], order: CategorySet, lessons: Sequence[Example], *, anew: bool = False
    ) -> list[ClassifiedFile]:
        """Return the verdict on each file, in the same order; `anew` asks the classifier even where it was asked before."""
        key = decider_key(self.classifier.decider, order.categories)
        told = {lesson.file_hash: lesson for lesson in lessons}
        result: list[ClassifiedFile] = []
        for at in range(0, len(files), PORTION):
            portion = files[at : at + PORTION]
            self.call.progress(at, len(files), "ClassificationRun where files belong")
            result += self._portion(portion, order, lessons, told, "" if anew else key)
        return result

    def _portion(
        self,
        files: Sequence[SurveyedFile],
        order: CategorySet,
        lessons: Sequence[Example],
        told: Mapping[str, Example],
        key: str,
    ) -> list[ClassifiedFile]:
        self.call.check()
        hashes = [one.file_hash for one in files if one.file_hash]
        verdicts = self.cache.verdicts(hashes, key) if key else {}
        places = order.places
        verdicts = {hash_: verdict for hash_, verdict in verdicts.items() if verdict.category in {*places, KEEP}}
        asked = [one for one in files if one.file_hash not in verdicts and _lesson(one, told, places) is None]
        answers = iter(self._asked(asked, order, lessons) if asked else ())
        judged = []
        for one in files:
            verdict = _lesson(one, told, places) or verdicts.get(one.file_hash) or next(answers)
            final = final_confidence(verdict.category, one.found.name, verdict.confidence)
            judged.append(ClassifiedFile(one.found, one.file_hash, replace(verdict, confidence=final)))
        return judged

    def _asked(self, files: Sequence[SurveyedFile], order: CategorySet, lessons: Sequence[Example]) -> list[Verdict]:
        self.asked.update(one.file_hash for one in files)
        taxonomy = self._taxonomy(order, lessons)
        excerpts = self._texts(files)
        verdicts = self._classified(files, excerpts, order, taxonomy)
        more = [
            at
            for at, (one, excerpt) in enumerate(zip(files, excerpts, strict=True))
            if one.file_hash and why_deep(excerpt, one.found.suffix[1:], verdicts[at], self.deep_below)
        ]
        deeper = self._deepened([(files[at], excerpts[at]) for at in more])
        if any(found.text != excerpts[at].text for at, found in zip(more, deeper, strict=True)):
            for at, found in zip(more, deeper, strict=True):
                excerpts[at] = found
            verdicts = self._classified(files, excerpts, order, taxonomy)
        verdicts = [_noted(verdict, excerpt) for verdict, excerpt in zip(verdicts, excerpts, strict=True)]
        if self.classifier.sends_to or not self._is_learned_in_part:
            self.cache.remember(
                [
                    CachedFile(one.found, one.file_hash, None, verdict)
                    for one, excerpt, verdict in zip(files, excerpts, verdicts, strict=True)
                    if one.file_hash and not excerpt.is_transient
                ]
            )
        return verdicts

    def _classified(
        self,
        files: Sequence[SurveyedFile],
        excerpts: Sequence[Excerpt],
        order: CategorySet,
        taxonomy: Sequence[Category],
    ) -> list[Verdict]:
        """Ask the classifier: about texts, and apart from them about files that have only a name and a type."""
        verdicts: dict[int, Verdict] = {}
        spoken = {at for at, excerpt in enumerate(excerpts) if len(excerpt.text) >= MIN_CHARS}
        for chosen, among in ((spoken, order.for_texts(taxonomy)), (set(range(len(files))) - spoken, taxonomy)):
            asked = sorted(chosen)
            pairs = [(files[at].found, excerpts[at]) for at in asked]
            answers = self._answers(pairs, among, order) if pairs else []
            verdicts |= dict(zip(asked, answers, strict=True))
        return [verdicts[at] for at in range(len(files))]

    def _answers(
        self, pairs: Sequence[tuple[ScannedFile, Excerpt]], taxonomy: Sequence[Category], order: CategorySet
    ) -> list[Verdict]:
        """Return a verdict for each file, by the classifier or, for what it could not judge, by the one that cannot fail."""
        key = decider_key(self.classifier.decider, order.categories)
        judged: Sequence[Verdict | None]
        try:
            judged = self.classifier.decide(pairs, taxonomy, self.call.check, self.told)
        except ClassifyFault as fault:
            judged = fault.verdicts
            self.remark = f"{self.classifier.sends_to} failed ({fault}); files were judged on this machine instead."
        else:
            if self.classifier.sends_to:
                self.remark = f"Names and excerpts of files were sent to {self.classifier.sends_to}."
        missing = [pair for pair, verdict in zip(pairs, judged, strict=True) if verdict is None]
        instead = iter(self.fallback.decide(missing, taxonomy, self.call.check, self.told) if missing else ())
        own = decider_key(self.fallback.decider, order.categories)
        return [replace(one, decider=key) if one else replace(next(instead), decider=own) for one in judged]

    def _taxonomy(self, order: CategorySet, lessons: Sequence[Example]) -> list[Category]:
        if self._learned is None:
            speaking = [one for files in order.speaking.values() for one in files]
            self.call.progress(0, len(speaking), "Learning from the folders")
            texts: dict[str, Excerpt] = {}
            for files in order.speaking.values():
                self.call.check()
                texts |= self._example_texts(files)
            self._learned = order.with_examples(texts, lessons)
            self._is_learned_in_part = bool(self.unread)
        return self._learned

    def _example_texts(self, files: Sequence[SurveyedFile]) -> dict[str, Excerpt]:
        known = self.cache.excerpts([one.file_hash for one in files])
        deep = [
            (one, known[one.file_hash])
            for one in files
            if one.file_hash in known and why_deep(known[one.file_hash], one.found.suffix[1:])
        ]
        chosen = deep[:: -(-len(deep) // _DEEP_EXAMPLES)] if deep else deep
        for (one, _), excerpt in zip(chosen, self._deepened(chosen), strict=True):
            known[one.file_hash] = excerpt
        return known

    def _texts(self, files: Sequence[SurveyedFile]) -> list[Excerpt]:
        """Return what files say, read deeper where their ends call for it."""
        known = self.cache.excerpts([one.file_hash for one in files if one.file_hash])
        excerpts = [one.excerpt or known.get(one.file_hash) or _nameless(one.found) for one in files]
        more = [
            at
            for at, (one, excerpt) in enumerate(zip(files, excerpts, strict=True))
            if one.file_hash and why_deep(excerpt, one.found.suffix[1:])
        ]
        for at, found in zip(more, self._deepened([(files[at], excerpts[at]) for at in more]), strict=True):
            excerpts[at] = found
        return excerpts

    def _deepened(self, files: Sequence[tuple[SurveyedFile, Excerpt]]) -> list[Excerpt]:
        """Read the text of files and remember what they are to be known by."""
        pairs = [(one.found, excerpt) for one, excerpt in files]
        deeper = deepen(self.jail, self.call, pairs, self.max_document_bytes) if pairs else []
        self.bytes_read += sum(excerpt.bytes_read for excerpt in deeper)
        read = [(one, excerpt) for (one, _), excerpt in zip(files, deeper, strict=True)]
        self.unread.update(one.found.relative for one, excerpt in read if excerpt.is_transient)
        known = [CachedFile(one.found, one.file_hash, excerpt) for one, excerpt in read if not excerpt.is_transient]
        self.cache.remember(known)
        return deeper


def _lesson(one: SurveyedFile, told: Mapping[str, Example], places: Mapping[str, str]) -> Verdict | None:
    lesson = told.get(one.file_hash) if one.file_hash else None
    if lesson is None or lesson.category not in {*places, KEEP}:
        return None
    return Verdict(lesson.category, 1.0, reasoning="You decided so before.", decider="person")


def _noted(verdict: Verdict, excerpt: Excerpt) -> Verdict:
    """Return a verdict that says why the file's text had no part in it, where it should have had one."""
    if not excerpt.note or reader_of(excerpt.content_type) is None:
        return verdict
    return replace(verdict, reasoning=f"{verdict.reasoning} Its text was not read: {excerpt.note}.".lstrip())


def _nameless(found: ScannedFile) -> Excerpt:
    """Return what is known of an entry without content: nothing but its name."""
    return Excerpt("", 0, 0, "inode/directory" if found.unit is not None else "inode/symlink")
