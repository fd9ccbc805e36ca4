"""What a file's type says of where it belongs: of some a little is enough, of those that hold anything hardly any is."""

import pytest

from holdfast.organiser.classify.name_and_type import NameAndTypeRules
from holdfast.organiser.classify.taxonomy import MAX_EXAMPLES
from holdfast.organiser.model import Category, Example, Excerpt, ScannedFile

GATE = 0.6


def folder(name: str, suffix: str, count: int) -> Category:
    names = [f"{chr(97 + at % 26) * 3}{at}{suffix}" for at in range(count)]
    return Category(name, name, tuple(Example("", one, name) for one in names))


def sure(new: str, *folders: Category) -> float:
    verdict = NameAndTypeRules.learn(folders).verdict(ScannedFile(f"/in/{new}", new), Excerpt("", 1))
    return verdict.confidence if verdict is not None else 0.0


@pytest.mark.parametrize("suffix", [".txt", ".md", ".pdf", ".docx", ".odt", ".html", ".csv", ".json"])
def test_a_type_of_any_subject_never_passes_the_gate_on_few_files(suffix: str) -> None:
    for count in (1, 3, 10, 30):
        confidence = sure(f"zebra{suffix}", folder("Cellar", suffix, count), folder("Attic", ".mp3", 5))
        assert 0 < confidence < GATE, count


@pytest.mark.parametrize("suffix", [".jpg", ".mp3", ".mkv", ".7z", ".otf", ".stl", ".dmg", ".srt"])
def test_a_telling_type_passes_it_on_a_few(suffix: str) -> None:
    assert sure(f"zebra{suffix}", folder("Cellar", suffix, 3), folder("Attic", ".txt", 5)) >= GATE


def test_very_many_files_of_one_type_in_one_of_few_folders_say_enough() -> None:
    many = folder("Cellar", ".pdf", MAX_EXAMPLES)
    assert sure("zebra.pdf", many, folder("Attic", ".mp3", 5)) >= GATE
    assert sure("zebra.pdf", many, folder("Attic", ".mp3", 5), folder("Loft", ".png", 5)) < GATE
    assert sure("zebra.pdf", many, folder("Attic", ".pdf", 15)) < GATE


@pytest.mark.parametrize(
    ("count", "reason"), [(3, "3 of 3 known .txt files lie there"), (1, "the only known .txt file lies there")]
)
def test_the_reason_says_how_little_it_is(count: int, reason: str) -> None:
    found = NameAndTypeRules.learn([folder("Cellar", ".txt", count)]).verdict(
        ScannedFile("/in/wifi.txt", "wifi.txt"), Excerpt("", 1)
    )
    assert found is not None
    assert found.reasoning == f"Cellar: {reason}, which says little."


def test_the_reasons_come_in_the_order_of_the_words_of_the_name() -> None:
    words = ["keel", "rudder", "compass", "anchor", "lantern", "harbour", "winch"]
    known = tuple(Example("", f"{' '.join(sorted(words))} {number}.txt", "Ship") for number in (1, 2))
    name = f"{' '.join(words)}.mp3"
    verdict = NameAndTypeRules.learn([Category("Ship", "Ship", known)]).verdict(
        ScannedFile(f"/in/{name}", name), Excerpt("", 1)
    )
    assert verdict is not None
    assert verdict.evidence.rule == "; ".join(f"names with '{word}' lie there" for word in words)
