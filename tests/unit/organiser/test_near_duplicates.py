"""Files that all but repeat a known one are recognised, however many of their kind lie about."""

import pytest

from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.classify.near_duplicates import NEAR_DUPLICATE
from holdfast.organiser.classify.starter import starter_categories
from holdfast.organiser.model import Category, Example, Excerpt, ScannedFile, Verdict

BILL = "ACME bill {0}: subtotal, vat and amount due for widgets number {0}, payable by remittance to our iban, many thanks.\n"
CAKE = "Cake {0}: stir flour, butter, sugar and eggs, then bake for {0} minutes in the oven and serve it with cream.\n"
POEM = "The moon was a ghostly galleon tossed upon cloudy seas, the road was a ribbon of moonlight over the moor.\n"


def folder(name: str, text: str, count: int = 5) -> Category:
    files = range(100, 100 + count)
    return Category(name, name, tuple(Example(f"{name}{at}", f"{at}.txt", name, text.format(at)) for at in files))


def judged(taxonomy: list[Category], **texts: str) -> dict[str, Verdict]:
    files = [(ScannedFile(f"/in/{name}.txt", f"{name}.txt"), Excerpt(text)) for name, text in texts.items()]
    return dict(zip(texts, Cascade().classify(files, [*taxonomy, *starter_categories()]), strict=True))


def test_the_next_file_of_a_kind_goes_to_the_only_folder_that_has_it() -> None:
    found = judged([folder("Acme", BILL)], paper7=BILL.format(7), paper8=BILL.format(8), poem=POEM)
    assert [(found[name].category, found[name].confidence >= NEAR_DUPLICATE) for name in ("paper7", "paper8")] == [
        ("Acme", True)
    ] * 2
    assert found["poem"].confidence < 0.6


@pytest.mark.req("OR-21.a")
def test_a_crowd_of_one_kind_does_not_hide_that_its_files_are_known() -> None:
    crowd = {f"paper{at}": BILL.format(at) for at in range(40)}
    found = judged([folder("Acme", BILL), folder("Baking", CAKE)], **crowd, tart=CAKE.format(7), poem=POEM)
    assert all(found[name].category == "Acme" and found[name].confidence >= NEAR_DUPLICATE for name in crowd)
    assert found["tart"].category == "Baking"
    assert found["tart"].confidence >= NEAR_DUPLICATE
    assert found["poem"].confidence < 0.6


def test_it_says_which_file_it_repeats() -> None:
    crowd = {f"paper{at}": BILL.format(at) for at in range(40)}
    found = judged([folder("Acme", BILL), folder("Baking", CAKE)], **crowd)
    assert found["paper3"].reasoning == "It has almost the same words as 104.txt, in Acme."


def test_what_two_folders_have_alike_is_for_a_person_to_tell_apart() -> None:
    crowd = {f"paper{at}": BILL.format(at) for at in range(40)}
    found = judged([folder("Acme 2022", BILL), folder("Acme 2023", BILL), folder("Baking", CAKE)], **crowd)
    assert not any("almost the same words" in verdict.reasoning for verdict in found.values())


def test_words_do_not_tell_one_year_from_another() -> None:
    crowd = {f"paper{at}": BILL.format(at) for at in range(40)}
    found = judged([folder("Acme 2022", BILL), folder("Baking", CAKE)], **crowd)
    assert not any("almost the same words" in verdict.reasoning for verdict in found.values())


def test_what_every_folder_says_makes_no_files_alike() -> None:
    letter = (
        "To whom it may concern, we have the honour to write to you again about {0}, and remain with our best wishes.\n"
    )
    taxonomy = [
        folder("Garden", letter.format("roses, tulips, hedges, lawns")),
        folder("Boats", letter.format("sails, keels")),
    ]
    crowd = {f"paper{at}": letter.format(f"dentist, molar, crown number {at}") for at in range(40)}
    found = judged(taxonomy, **crowd)
    assert not any("almost the same words" in verdict.reasoning for verdict in found.values())
