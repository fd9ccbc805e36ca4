"""Files that lie in folders, as examples."""

import json

from click.testing import CliRunner

from holdfast.cli.commands.organise.evaluate import evaluate_command
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import read_examples
from tests.helpers.documents import pdf
from tests.helpers.household import KINDS, text_of
from tests.helpers.messy import Messy


def fill(messy: Messy, count: int, *kinds: str) -> None:
    for kind in kinds:
        for number in range(count):
            messy.write(f"{kind}/{number}.txt", text_of(kind, number))


def test_files_in_folders_are_examples_and_loose_ones_are_not(messy: Messy) -> None:
    messy.write("loose.txt", "nowhere yet")
    messy.write("Letters/2023/a.txt", "Dear aunt")
    messy.write("Letters/2024/b.txt", "Dear uncle")
    known = read_examples(messy.jail, messy.call, ".", ScanOptions(), 1_000_000)
    assert [(one.name, one.category, one.text) for one in known] == [
        ("a.txt", "Letters", "Dear aunt"),
        ("b.txt", "Letters", "Dear uncle"),
    ]
    assert len({one.file_hash for one in known}) == 2


def test_the_text_of_a_document_is_read(messy: Messy) -> None:
    messy.write("Papers/a.pdf", pdf("The answer lies within"))
    (known,) = read_examples(messy.jail, messy.call, ".", ScanOptions(), 1_000_000)
    assert "The answer lies within" in known.text


def test_of_a_large_folder_an_even_part_is_read(messy: Messy) -> None:
    for number in range(30):
        messy.write(f"Many/{number:02}.txt", f"text {number}")
    known = read_examples(messy.jail, messy.call, ".", ScanOptions(), 1_000_000, max_per_folder=10)
    assert [one.name for one in known] == [f"{number:02}.txt" for number in range(0, 30, 3)]


def test_evaluate_says_how_well_each_folder_is_told(messy: Messy) -> None:
    fill(messy, 8, *KINDS)
    before = sorted(path.name for path in messy.root.rglob("*"))
    result = CliRunner().invoke(evaluate_command, [str(messy.root)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Recipes" in result.output
    assert "of 32 files would be filed into their own folder" in result.output
    assert sorted(path.name for path in messy.root.rglob("*")) == before


def test_evaluate_prints_json(messy: Messy) -> None:
    fill(messy, 8, "Invoices", "Letters")
    result = CliRunner().invoke(evaluate_command, [str(messy.root), "--json", "--gate", "0.7"], catch_exceptions=False)
    report = json.loads(result.output)
    assert report["gate"] == 0.7
    assert report["files"] == 16
    assert {folder["name"] for folder in report["folders"]} == {"Invoices", "Letters"}


def test_evaluate_needs_two_folders(messy: Messy) -> None:
    fill(messy, 3, "Letters")
    result = CliRunner().invoke(evaluate_command, [str(messy.root)])
    assert "two folders" in str(result.exception)
