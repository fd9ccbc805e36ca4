"""Where most files at hand are of one kind, they are filed when their folder knows that kind, and left when none does."""

import numpy
import pytest

from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.model import Category, Excerpt, ScannedFile, Verdict
from tests.helpers.hash_seed import call_with_other_hash_seed
from tests.helpers.household import KINDS, taxonomy, unfiled

GATE = 0.6
MANY = 60


def decided(folders: list[Category], crowd: str) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on a crowd of one kind, and on two files of every other one."""
    others = [file for kind in KINDS if kind != crowd for file in unfiled(kind, 2)]
    files: list[tuple[ScannedFile, Excerpt]] = [*unfiled(crowd, MANY), *others]
    verdicts = Cascade().classify(files, folders)
    return verdicts[:MANY], verdicts[MANY:]


def share(verdicts: list[Verdict], category: str) -> float:
    return float(numpy.mean([one.category == category and one.confidence >= GATE for one in verdicts]))


@pytest.mark.req("OR-21.a")
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_crowd_whose_folder_knows_its_kind_is_filed(kind: str) -> None:
    crowd, others = decided(taxonomy(5), kind)
    assert share(crowd, kind) > 0.9
    assert [one.category for one in others] == [other for other in KINDS if other != kind for _ in range(2)]


@pytest.mark.req("OR-24.a")
def test_a_crowd_that_no_folder_knows_stays() -> None:
    crowd, _ = decided(taxonomy(5), "Strange")
    assert numpy.mean([one.confidence >= GATE for one in crowd]) < 0.05


def test_the_same_files_get_the_same_verdicts_in_another_process() -> None:
    assert call_with_other_hash_seed(decided, taxonomy(5), "Recipes") == decided(taxonomy(5), "Recipes")
