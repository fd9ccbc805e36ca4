"""The list of places that files may go."""

import pytest

from holdfast.errors import InvalidArgument
from holdfast.organiser.classify.taxonomy import (
    MAX_EXAMPLES,
    apply_corrections,
    are_synonyms,
    categories_from_examples,
    clean_name,
    decider_key,
    example_folder,
    match_category,
    merge_categories,
)
from holdfast.organiser.model import KEEP, Category, Example


def example(name: str, category: str, text: str = "") -> Example:
    return Example(f"hash of {name}", name, category, text)


@pytest.mark.req("OR-22.a")
@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("Invoices", "Invoices"),
        ("  Invoices. ", "Invoices"),
        ("Work/Invoices", "Work Invoices"),
        ("a\\b:c*d", "a b c d"),
        ("In\x00voi\x1bces", "Invoices"),
        ("\u202eInvoices\u202c", "Invoices"),
        ("In\u200bvoices", "Invoices"),
        ("Two\nlines", "Two lines"),
        ("Re\u0301sume\u0301s", "Résumés"),
        ("发票", "发票"),
        (".hidden", "hidden"),
    ],
)
def test_a_category_is_made_fit_for_any_system(given: str, clean: str) -> None:
    assert clean_name(given) == clean


@pytest.mark.req("OR-22.a")
@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        ".",
        "..",
        "../x",
        "a/../../x",
        "..\\x",
        "///",
        "CON",
        "nul.txt",
        "Com1",
        "LPT9 .x",
        "x" * 101,
        "発" * 40,
        "---",
    ],
)
def test_a_category_that_no_folder_can_bear_is_refused(given: str) -> None:
    with pytest.raises(InvalidArgument):
        clean_name(given)


@pytest.mark.req("OR-22.b")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Invoice", "Invoices"),
        ("invoices", "INVOICES"),
        ("Category", "Categories"),
        ("Images Graphics", "Graphics Images files"),
        ("Resumes", "CV"),
        ("Recieps", "Recieps"),
        ("Receipts", "Reciepts"),
        ("Pictures", "Picturs"),
        ("Bills", "Invoices"),
    ],
)
def test_two_names_that_say_the_same_are_synonyms(one: str, other: str) -> None:
    assert are_synonyms(one, other)
    assert are_synonyms(other, one)


@pytest.mark.req("OR-22.b")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Art", "Arts and crafts"),
        ("Cars", "Cards"),
        ("Music", "Video"),
        ("2023", "2024"),
        ("Work", "Home"),
        ("Taxes 2022", "Taxes 2023"),
        ("Project A", "Project B"),
        ("Phase1", "Phase2"),
    ],
)
def test_two_names_that_differ_are_not(one: str, other: str) -> None:
    assert not are_synonyms(one, other)


@pytest.mark.req("OR-22.b")
def test_proposed_synonyms_become_one_and_the_list_is_capped() -> None:
    names = ["Invoices", "Invoice", "Bills", "Photos", "Recipes", "Contracts"]
    kept = merge_categories([Category(name, name) for name in names], max_categories=3)
    assert [category.name for category in kept] == ["Invoices", "Photos", "Recipes"]


@pytest.mark.req("OR-22.b")
def test_a_proposed_name_joins_the_folder_that_is_there() -> None:
    there = Category("CVs", "Work/CVs", (example("a.txt", "CVs"),))
    assert merge_categories([Category("Resumes", "Resumes"), there]) == [there]


def test_two_folders_that_are_there_stay_two() -> None:
    two = [Category(name, name, (example(f"{name}.txt", name),)) for name in ("Invoice", "Invoices")]
    assert merge_categories(two) == two


@pytest.mark.req("OR-25.a")
@pytest.mark.parametrize("answer", ["../../etc", "System", "", "Invoices/../x", "IGNORE PREVIOUS INSTRUCTIONS"])
def test_an_answer_that_is_not_in_the_list_means_nothing(answer: str) -> None:
    assert match_category(answer, [Category("Invoices", "Invoices")]) is None


@pytest.mark.req("OR-25.a")
def test_an_answer_is_taken_by_its_meaning_but_only_from_the_list() -> None:
    categories = [Category("Invoices", "Invoices"), Category("Photos", "Photos")]
    assert match_category(" invoices ", categories) == "Invoices"
    assert match_category("Bills", categories) == "Invoices"
    assert match_category("keep_current_location", categories) == KEEP


def test_folders_of_dates_speak_for_the_folder_above() -> None:
    assert example_folder("Invoices/2024") == "Invoices"
    assert example_folder("Invoices/2024/05") == "Invoices"
    assert example_folder("Photos/2024-05-01") == "Photos"
    assert example_folder("2024") == "2024"
    assert example_folder("Work/Invoices") == "Work/Invoices"


def test_evenly_spread_files_speak_for_a_large_folder() -> None:
    files = [example(f"{number:04}.txt", "Many") for number in range(1_000)]
    (many,) = categories_from_examples(files)
    assert len(many.examples) == MAX_EXAMPLES
    assert many.examples[0] == files[0]
    assert many.examples[-1].name > "0900.txt"


@pytest.mark.req("OR-23.a")
def test_a_lesson_counts_where_it_was_put_and_nowhere_else() -> None:
    wrong = Example("h1", "a.txt", "Invoices", "text")
    categories = [Category("Invoices", "Invoices", (wrong,)), Category("Receipts", "Receipts")]
    lesson = Example("h1", "a.txt", "Receipts", "text")
    invoices, receipts = apply_corrections(categories, [lesson])
    assert invoices.examples == ()
    assert receipts.examples == (lesson,)


@pytest.mark.req("OR-23.a")
def test_the_newest_lesson_about_a_content_wins() -> None:
    categories = [Category("A", "A"), Category("B", "B")]
    first, then = Example("h1", "x.txt", "A"), Example("h1", "renamed.txt", "B")
    assert [len(category.examples) for category in apply_corrections(categories, [first, then])] == [0, 1]


@pytest.mark.req("OR-02")
def test_the_key_of_verdicts_follows_names_and_not_examples() -> None:
    bare, full = Category("A", "A"), Category("A", "A", (example("a.txt", "A"),))
    assert decider_key("x", [bare]) == decider_key("x", [full])
    assert decider_key("x", [bare]) != decider_key("x", [bare, Category("B", "B")])
    assert decider_key("x", [bare]) != decider_key("y", [bare])
