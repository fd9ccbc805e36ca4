"""First files for folders that have none."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy

from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.classify.confidence_model import BY_NAME_ALONE
from holdfast.organiser.classify.seeds import has_enough_words
from holdfast.organiser.classify.starter import starter_categories
from holdfast.organiser.model import Category, Excerpt, ScannedFile
from holdfast.secret import Secret
from tests.helpers.household import KINDS, taxonomy, unfiled

NAMES = {"Fiscal": "Invoices", "Kitchen stuff": "Recipes", "Ailments": "Medical", "From aunt Agatha": "Letters"}


class Meaning:
    """A model that knows what the names mean."""

    model = "meaning"

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[list[float]]:
        self.asked += len(texts)
        return [[float(_fits(text, name, kind)) for name, kind in NAMES.items()] for text in texts]


def _fits(text: str, name: str, kind: str) -> int:
    return 5 * text.startswith(name) + sum(word in text for word in KINDS[kind])


def test_a_model_finds_the_first_files_of_folders_with_names_of_their_own() -> None:
    files = [file for kind in NAMES.values() for file in unfiled(kind, 15)]
    model = Meaning()
    verdicts = Cascade(sentences=model).classify(files, [Category(name, name) for name in NAMES])
    wanted = [name for name in NAMES for _ in range(15)]
    assert numpy.mean([one.category == name for one, name in zip(verdicts, wanted, strict=True)]) > 0.9
    assert model.asked <= len(NAMES) + 96


def test_a_person_sees_what_is_filed_by_a_name_alone() -> None:
    files = [file for kind in NAMES.values() for file in unfiled(kind, 15)]
    verdicts = Cascade(sentences=Meaning()).classify(files, [Category(name, name) for name in NAMES])
    assert max(one.confidence for one in verdicts) <= BY_NAME_ALONE


class Opinionated:
    """A model to which every text means something."""

    model = "opinionated"

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[list[float]]:
        return [[float(hash_ % 7), float(hash_ % 11), float(hash_ % 13)] for hash_ in map(_number, texts)]


def _number(text: str) -> int:
    return sum(text.encode())


STRANGERS = (
    "Our cat has a long striped tail and sleeps on the warm radiator all day; at night he hunts mice behind the mill. His "
    "ancestors came with sailors across the ocean, where fishermen fed them herring and children built them little houses.",
    "White develops the bishop early and puts pressure on the knight that defends the central pawn. Black answers with the "
    "rook pawn, retreats are met by expansion on the queen side, and after castling both players fight for an open file.",
    "I dreamt of a whale who could play the violin while walking on the roof of the town hall in winter. Snow fell upwards, "
    "bells rang under water and a tall woman with green hair sold umbrellas made of paper to a sleeping tram conductor.",
)


def test_a_folder_with_a_name_of_its_own_brings_no_file_into_a_proposed_one_without_its_words() -> None:
    files = [(ScannedFile(f"/in/{at}.txt", f"{at}.txt"), Excerpt(text)) for at, text in enumerate(STRANGERS)]
    verdicts = Cascade(sentences=Opinionated()).classify(files, [Category("Zorblax", "Zorblax"), *starter_categories()])
    assert max(one.confidence for one in verdicts) <= BY_NAME_ALONE


def test_an_empty_folder_takes_nothing_from_folders_with_files() -> None:
    files = [file for kind in ("Invoices", "Letters") for file in unfiled(kind, 15)]
    folders = [*taxonomy(5, ("Invoices", "Letters")), Category("Recipes", "Recipes"), Category("Project Bluebird", "B")]
    verdicts = Cascade().classify(files, folders)
    assert [one.category for one in verdicts] == ["Invoices"] * 15 + ["Letters"] * 15


def test_an_empty_folder_with_a_common_name_gets_its_first_files() -> None:
    files = [file for kind in ("Invoices", "Recipes") for file in unfiled(kind, 15)]
    verdicts = Cascade().classify(files, [*taxonomy(5, ("Invoices", "Letters")), Category("Recipes", "Recipes")])
    assert [one.category for one in verdicts] == ["Invoices"] * 15 + ["Recipes"] * 15


DOWNLOADS = {
    "logo.svg": '<svg xmlns="http://www.w3.org/2000/svg"><rect width="10" height="10"/></svg>',
    "paper.pdf": "Abstract The dominant sequence transduction models are based on recurrent networks References arXiv 1706.03762",
    "paper2.pdf": "Abstract We propose a new architecture arXiv introduction related work experiments references",
    "boarding.pdf": "Boarding pass Lufthansa LH1234 FRA LIS Gate B24 Seat 14C Passenger",
    "trip.pdf": "Flight itinerary booking reference AB12CD passenger departure arrival",
    "letter.docx": "Dear hiring manager, I am writing to apply for the position of engineer. My experience and skills fit.",
    "contract.docx": "Service Agreement made between the client and the contractor. Termination, liability, governing law.",
    "x.csv": "id,name,amount\n1,a,2\n2,b,3\n" * 20,
}


def test_a_short_text_with_no_word_of_a_folder_is_not_drawn_there_by_chance() -> None:
    files = [(ScannedFile(f"/in/{name}", name), Excerpt(text)) for name, text in DOWNLOADS.items()]
    verdicts = dict(zip(DOWNLOADS, Cascade().classify(files, starter_categories()), strict=True))
    assert verdicts["logo.svg"].category == "Images"
    assert verdicts["boarding.pdf"].category == verdicts["trip.pdf"].category == "Travel"
    assert verdicts["letter.docx"].category == "Letters"


def test_a_file_speaks_for_a_folder_by_one_of_its_words_or_by_many_words() -> None:
    recipes = Category("Recipes", "Recipes")
    assert has_enough_words(Counter(["oven", "blue"]), recipes)
    assert not has_enough_words(Counter(["svg", "blue"]), recipes)
    assert has_enough_words(Counter(map(str, range(40))), recipes)
