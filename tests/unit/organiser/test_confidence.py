"""How sure a verdict is: the arithmetic that holds for every classifier, and the curves."""

import numpy
import pytest

from holdfast.organiser.classify.confidence import Curve, final_confidence, fit_curve
from holdfast.organiser.model import KEEP


@pytest.mark.req("OR-20.a", "OR-20.b", "OR-20.c")
@pytest.mark.parametrize(
    ("category", "file_name", "given", "final"),
    [
        ("Finance", "letter.pdf", 0.5, 0.5),
        ("Misc", "letter.pdf", 1.0, 0.8),
        ("other", "letter.pdf", 0.5, 0.3),
        ("Finance", "finance.pdf", 0.5, 0.7),
        ("Finance", "2024_FINANCE-report.pdf", 0.5, 0.7),
        ("Bank Statements", "bank_statements_may.pdf", 0.5, 0.7),
        ("Misc", "misc notes.txt", 0.5, 0.5),
        ("Finance", "finance.pdf", 0.95, 1.0),
        ("Other", "letter.pdf", 0.1, 0.0),
        (KEEP, "letter.pdf", 0.1, 1.0),
        ("Finance", "letter.pdf", 7.0, 1.0),
        ("Finance", "letter.pdf", -3.0, 0.0),
    ],
)
def test_the_final_confidence_follows_the_rules(category: str, file_name: str, given: float, final: float) -> None:
    assert final_confidence(category, file_name, given) == pytest.approx(final)


@pytest.mark.req("OR-20.b")
@pytest.mark.parametrize("file_name", ["cartoon_invoice.pdf", "smart.txt", "arts.txt", "start art2.txt"])
def test_a_category_inside_another_word_gains_nothing(file_name: str) -> None:
    assert final_confidence("Art", file_name, 0.5) == 0.5


@pytest.mark.req("OR-20.b")
@pytest.mark.parametrize("category", ["", " ", "--"])
def test_an_empty_category_gains_nothing(category: str) -> None:
    assert final_confidence(category, "a -- b.txt", 0.5) == 0.5


def test_a_category_in_another_script_is_found_as_a_word() -> None:
    assert final_confidence("Счета", "счета май.txt", 0.5) == pytest.approx(0.7)


def test_a_curve_without_outcomes_is_the_prior() -> None:
    prior = Curve(2.0, 0.5, 0.4)
    assert fit_curve(prior, [], []).at(0.3) == pytest.approx(prior.at(0.3))


def test_many_outcomes_outweigh_the_prior() -> None:
    values = [0.1] * 200 + [0.9] * 200
    outcomes = [at % 2 == 0 for at in range(200)] + [at % 20 != 0 for at in range(200)]
    curve = fit_curve(Curve(2.0, 0.5), values, outcomes)
    assert curve.at(0.1) == pytest.approx(0.5, abs=0.05)
    assert curve.at(0.9) == pytest.approx(0.95, abs=0.03)


def test_a_curve_never_falls() -> None:
    curve = fit_curve(Curve(1.0, 0.0), [0.0] * 50 + [1.0] * 50, [True] * 50 + [False] * 50)
    assert curve.at(1.0) >= curve.at(0.0)


@pytest.mark.parametrize("right", [3, 5, 7])
def test_a_curve_does_not_run_away_where_many_were_wrong(right: int) -> None:
    values = [0.05 * at for at in range(60)]
    outcomes = [at * 7 % 10 < right for at in range(60)]
    curve = fit_curve(Curve(2.5, 0.8, 0.4), values, outcomes)
    assert numpy.mean([curve.at(value) for value in values]) == pytest.approx(right / 10, abs=0.1)
