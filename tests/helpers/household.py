"""Made-up documents of a household: each kind has words of its own among words that all share."""

import random

from holdfast.organiser.model import Category, Example, Excerpt, ScannedFile

COMMON = (
    "the of and to in for with on at from by this that is was are will our your please date name page number".split()
)
KINDS = {
    "Invoices": "invoice vat amount due payable net gross supplier purchase order item quantity bank transfer iban".split(),
    "Recipes": "flour butter sugar oven bake stir minutes cup teaspoon salt onion garlic simmer dough boil".split(),
    "Medical": "patient diagnosis blood pressure doctor clinic dose tablet symptoms treatment surgery allergy scan".split(),
    "Letters": "dear sincerely regards aunt uncle holiday weather garden visit miss love thank wishes birthday".split(),
}
STRANGE = "orbit telescope galaxy lens mirror comet eclipse nebula aperture photon redshift pulsar quasar dwarf".split()


def text_of(kind: str, number: int, words: int = 90) -> str:
    """Return one document; the same kind and number always give the same."""
    chance = random.Random(f"{kind} {number}")
    own = STRANGE if kind == "Strange" else KINDS[kind]
    own_words = chance.sample(own, 9)
    words_of_text = [chance.choice(own_words) if chance.random() < 0.4 else chance.choice(COMMON) for _ in range(words)]
    return " ".join(words_of_text) + "."


def examples(kind: str, count: int, start: int = 0) -> tuple[Example, ...]:
    """Return known files of a kind."""
    return tuple(
        Example(f"{kind}{number}", f"{kind.lower()[:-1]}{number}.txt", kind, text_of(kind, number), "text/plain")
        for number in range(start, start + count)
    )


def taxonomy(count: int, kinds: tuple[str, ...] = tuple(KINDS)) -> list[Category]:
    """Return a folder for each kind, with so many known files."""
    return [Category(kind, kind, examples(kind, count)) for kind in kinds]


def unfiled(kind: str, count: int, start: int = 1_000) -> list[tuple[ScannedFile, Excerpt]]:
    """Return files of a kind whose names say nothing."""
    return [
        (
            ScannedFile(f"/in/{kind}{number}", f"scan{number}.txt"),
            Excerpt(text_of(kind, number), content_type="text/plain"),
        )
        for number in range(start, start + count)
    ]
