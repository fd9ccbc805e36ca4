"""Categories for a house without folders."""

import pytest

from holdfast.organiser.classify.starter import STARTERS, find_starter, match_starters, starter_categories
from holdfast.organiser.classify.taxonomy import clean_name, merge_categories
from holdfast.organiser.model import Excerpt, ScannedFile


def best(name: str, text: str = "") -> str:
    found = match_starters(ScannedFile(f"/in/{name}", name), Excerpt(text))
    return found[0].name if found else ""


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Screenshot 2024-05-01 at 10.11.12.png", "Screenshots"),
        ("Bildschirmfoto 2024-05-01.png", "Screenshots"),
        ("IMG_1234.JPG", "Photos"),
        ("PXL_20240501.jpg", "Photos"),
        ("logo.svg", "Images"),
        ("song.flac", "Music"),
        ("holiday.mov", "Video"),
        ("backup.tar.gz", "Archives"),
        ("Firefox.dmg", "Installers"),
        ("budget.xlsx", "Spreadsheets"),
        ("kickoff.pptx", "Slides"),
        ("novel.epub", "Books"),
        ("main.rs", "Code"),
        ("Rechnung_4711.pdf", "Invoices"),
        ("invoice-2024-05.pdf", "Invoices"),
        ("MyResume.docx", "Resumes"),
        ("meeting notes.md", "Notes"),
        ("boarding-pass.pdf", "Travel"),
        ("Screen Shot 2023-12-24 at 10.11.12.png", "Screenshots"),
        ("meeting 2024-05-02.mp4", "Video"),
        ("Keynote speech.mp3", "Music"),
        ("receipt 2024-05.jpg", "Receipts"),
        ("Anna Becker.vcf", "Address Book"),
        ("bookmarks_01.02.24.html", "Web Pages"),
        ("Ten ways to cook rice.html", "Web Pages"),
        ("fix-login.patch", "Code"),
        ("benchy_PLA_0.2mm.gcode", "Design"),
        ("发票.pdf", "Invoices"),
    ],
)
def test_a_name_or_a_type_is_enough(name: str, category: str) -> None:
    assert best(name) == category


def test_the_words_of_a_text_count_when_the_name_says_nothing() -> None:
    assert (
        best("scan0001.txt", "Ingredients: flour, butter, sugar. Directions: heat the oven and bake for 30 minutes.")
        == "Recipes"
    )


@pytest.mark.parametrize(
    "name", ["rezept.txt", "car insurance.pdf", "application.log.txt", "address list.txt", "Bill.txt"]
)
def test_a_word_that_may_mean_something_else_is_not_enough_alone(name: str) -> None:
    assert all(hit.confidence < 0.6 for hit in match_starters(ScannedFile(f"/in/{name}", name), Excerpt("")))


def test_a_word_of_two_meanings_counts_with_the_words_of_the_text() -> None:
    text = "Zutaten: butter, sugar, flour. Ofen, 30 minutes."
    found = match_starters(ScannedFile("/in/rezept.txt", "rezept.txt"), Excerpt(text))[0]
    assert (found.name, found.confidence >= 0.6) == ("Recipes", True)


def test_a_name_that_says_nothing_gives_nothing() -> None:
    assert best("scan0001.pdf") == ""


def test_every_name_is_one_that_any_system_can_bear_and_none_occurs_twice() -> None:
    names = [category.name for category in starter_categories()]
    assert [clean_name(name) for name in names] == names
    assert len({name.casefold() for name in names}) == len(names) == len(STARTERS)


def test_no_two_categories_are_merged_into_one() -> None:
    categories = starter_categories()
    assert merge_categories(categories, len(categories)) == categories


def test_no_type_belongs_to_two_categories() -> None:
    suffixes = [suffix for starter in STARTERS for suffix in starter.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize(
    ("folder", "starter"), [("Invoice", "Invoices"), ("CV", "Resumes"), ("PICTURES", "Photos"), ("Bilder", "Photos")]
)
def test_a_folder_is_known_by_its_common_names(folder: str, starter: str) -> None:
    known = find_starter(folder)
    assert known is not None
    assert known.name == starter


def test_a_folder_with_a_name_of_its_own_is_not_known() -> None:
    assert find_starter("Project Bluebird") is None
