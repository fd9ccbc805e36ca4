"""How good filing would be, measured before anything moves."""

import numpy
import pytest

from holdfast.organiser.classify.cascade import evaluate_folders
from holdfast.organiser.classify.evaluate import calibration_error
from holdfast.organiser.model import Category
from tests.helpers.household import examples, taxonomy


def test_folders_that_differ_are_filed_well() -> None:
    report = evaluate_folders(taxonomy(12), gate=0.6)
    assert report.files == 48
    assert report.accuracy > 0.9
    assert report.precision > 0.95
    assert report.coverage > 0.8
    assert [folder.name for folder in report.folders] == ["Invoices", "Recipes", "Medical", "Letters"]
    assert all(folder.precision > 0.8 and not folder.review_only for folder in report.folders)


def test_a_folder_that_takes_from_another_is_for_review_only() -> None:
    alike = [
        Category(name, name, examples("Recipes", 10, at * 20)) for at, name in enumerate(("Baking", "Cooking", "Meals"))
    ]
    report = evaluate_folders([*taxonomy(10, ("Invoices", "Letters")), *alike], gate=0.6)
    review_only = {folder.name for folder in report.folders if folder.review_only}
    assert review_only
    assert review_only <= {"Baking", "Cooking", "Meals"}
    assert report.precision > report.accuracy


def test_a_folder_with_one_file_cannot_be_judged() -> None:
    report = evaluate_folders([*taxonomy(8, ("Invoices", "Letters")), *taxonomy(1, ("Recipes",))], gate=0.6)
    assert report.files == 16
    assert report.folders[-1].files == 0


def test_no_folders_give_an_empty_report() -> None:
    report = evaluate_folders([], gate=0.6)
    assert (report.files, report.folders) == (0, ())


@pytest.mark.parametrize(
    ("confidences", "outcomes", "error"),
    [
        ([], [], 0.0),
        ([1.0, 1.0], [True, True], 0.0),
        ([0.85] * 20, [True] * 17 + [False] * 3, 0.0),
        ([0.95] * 10, [True] * 5 + [False] * 5, 0.45),
    ],
)
def test_the_calibration_error_is_the_distance_between_promise_and_outcome(
    confidences: list[float], outcomes: list[bool], error: float
) -> None:
    assert calibration_error(confidences, outcomes) == pytest.approx(error, abs=1e-6)


def test_what_is_promised_is_kept() -> None:
    report = evaluate_folders(taxonomy(25), gate=0.6)
    assert report.calibration_error < 0.08
    assert numpy.isfinite(report.calibration_error)
