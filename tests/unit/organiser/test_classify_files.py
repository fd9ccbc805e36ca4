"""Which verdicts of a run are cached."""

from collections.abc import Callable, Sequence

from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import Category, Excerpt, ModelCall, ScannedFile, Verdict
from holdfast.organiser.planning.categories import CategorySet
from holdfast.organiser.planning.classify_files import ClassificationRun
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import Survey, SurveyedFile
from tests.helpers.messy import Messy

CATEGORIES = CategorySet((Category("Letters", "Letters"),), frozenset({"Letters"}), {})


class UnsureClassifier:
    """Is sure of nothing, so the whole text of every file is read."""

    sends_to = ""
    decider = "unsure"

    def classify(
        self,
        files: Sequence[tuple[ScannedFile, Excerpt]],
        taxonomy: Sequence[Category],
        check: Callable[[], None],
        on_model_call: Callable[[ModelCall], None],
    ) -> list[Verdict]:
        return [Verdict("Letters", 0.1, reasoning="Who knows.") for _ in files]


def surveyed_files(messy: Messy) -> list[SurveyedFile]:
    survey = Survey(messy.jail, messy.call, ".", ScanOptions(), messy.cache)
    return [entry for batch in survey for entry in batch.files]


def test_a_verdict_on_a_file_that_could_not_be_read_a_second_time_is_not_cached(messy: Messy) -> None:
    messy.write("kept.txt", "words of a file that stays\n")
    replaced = messy.write("replaced.txt", "words of a file that is replaced\n")
    files = surveyed_files(messy)
    replaced.rename(messy.root / "old.txt")
    messy.write("replaced.txt", "words of another file\n")
    run = ClassificationRun(
        messy.jail, messy.call, messy.cache, UnsureClassifier(), UnsureClassifier(), 0.5, 1000, lambda _: None
    )
    classified = {entry.file.name: entry for entry in run.classify(files, CATEGORIES, [])}
    assert run.unread == {"replaced.txt"}
    assert "Its text was not read: it was replaced" in classified["replaced.txt"].verdict.reasoning
    key = decider_key("unsure", CATEGORIES.categories)
    hashes = [entry.file_hash for entry in files]
    assert set(messy.cache.load_verdicts(hashes, key)) == {classified["kept.txt"].file_hash}
