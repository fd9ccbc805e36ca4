"""A long random life of reviews, with restarts in it, beside a model of what a person agreed to."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.errors import Conflict, HoldfastError
from holdfast.review.model import Choice, Review, UserAction
from holdfast.text.merge import merge
from tests.unit.review.desk import Desk, opened_desk

STEPS = 120
NAMES = ("a.txt", "b.txt", "c.txt")
LINES = 24


@dataclass
class Known:
    """What the model knows of one review."""

    review: Review
    name: str
    base: str | None
    text: str
    action: UserAction = UserAction.PENDING


@dataclass
class Model:
    """What every file must hold, and where every review must stand."""

    rng: random.Random
    files: dict[str, str] = field(default_factory=dict)
    reviews: list[Known] = field(default_factory=list)

    def open(self, *actions: UserAction) -> Known | None:
        found = [one for one in self.reviews if one.action in actions]
        return self.rng.choice(found) if found else None


class Walk:
    def __init__(self, desk: Desk, model: Model) -> None:
        self.desk = desk
        self.model = model

    def step(self) -> None:
        chosen = self.model.rng.choice(
            [
                self.propose,
                self.propose,
                self.decide,
                self.decide,
                self.propose_again,
                self.commit,
                self.commit,
                self.meddle,
            ]
        )
        chosen()
        self.check()

    def changed(self, text: str) -> tuple[str, str]:
        """Return one line of a text and another one for it."""
        lines = [line for line in text.split("\n") if line and text.count(f"{line}\n") == 1]
        return self.model.rng.choice(lines), f"x{self.model.rng.randrange(10**9):09d}"

    def propose(self) -> None:
        name = self.model.rng.choice(NAMES)
        base = self.model.files.get(name)
        old, new = ("", f"new {self.model.rng.random()}\n") if base is None else self.changed(base)
        review = self.desk.propose(name, (old, new))
        self.model.reviews.append(Known(review, name, base, new if base is None else base.replace(old, new)))

    def decide(self) -> None:
        one = self.model.open(UserAction.PENDING, UserAction.REVIEW)
        if one is None:
            return
        decision = self.model.rng.choice(list(Choice))
        if decision is Choice.REJECT:
            self.desk.decide(one.review, decision, reason="no")
            one.action = UserAction.REJECT
            return
        if self.model.rng.random() < 0.5:
            old, new = self.changed(one.text)
            one.text = one.text.replace(old, new)
        self.desk.decide(one.review, decision, text=one.text.encode())
        one.action = UserAction.APPROVE if decision is Choice.APPROVE else UserAction.REVIEW

    def propose_again(self) -> None:
        one = self.model.open(UserAction.REVIEW)
        if one is None:
            return
        old, new = self.changed(one.text)
        self.desk.propose_again(one.review, one.name, (old, new))
        one.text, one.action = one.text.replace(old, new), UserAction.PENDING

    def commit(self) -> None:
        one = self.model.rng.choice(self.model.reviews) if self.model.reviews else None
        if one is None:
            return
        wanted = self.wanted(one)
        try:
            self.desk.commit(one.review, one.name)
        except HoldfastError as error:
            assert isinstance(error, Conflict)
            assert wanted is None
            return
        assert wanted is not None, "it was written, and nobody had agreed to that"
        self.model.files[one.name] = wanted
        self.model.reviews.remove(one)

    def wanted(self, one: Known) -> str | None:
        """Return what a commit must leave, None when it must refuse."""
        present = self.model.files.get(one.name)
        if one.action is not UserAction.APPROVE:
            return None
        if present in (one.base, one.text):
            return one.text
        return None if present is None or one.base is None else merge(one.base, one.text, present)

    def meddle(self) -> None:
        """Change a file as another program does."""
        name = self.model.rng.choice(NAMES)
        present = self.model.files.get(name)
        if present is None:
            return
        old, new = self.changed(present)
        self.model.files[name] = present.replace(old, new)
        (self.desk.root / name).write_text(self.model.files[name])

    def check(self) -> None:
        on_disk = {path.name: path.read_text() for path in self.desk.root.iterdir()}
        assert on_disk == self.model.files
        still_open = {one.review.id: one.action for one in self.model.reviews if one.action is not UserAction.REJECT}
        assert {one.id: one.action for one in self.desk.reviews.person.list_open()} == still_open
        sessions = {one.review.session for one in self.model.reviews if one.review.id in still_open}
        assert set(self.desk.sessions()) == sessions


@pytest.mark.parametrize("seed", range(3))
def test_only_what_a_person_agreed_to_is_ever_written(root: Path, tmp_path: Path, seed: int) -> None:
    model = Model(random.Random(seed))
    model.files = {name: "".join(f"{name} {n:02d}\n" for n in range(LINES)) for name in NAMES[:2]}
    for name, text in model.files.items():
        (root / name).write_text(text)
    left = STEPS
    while left > 0:
        with opened_desk(root, tmp_path / "state") as desk:
            walk = Walk(desk, model)
            walk.check()
            for _ in range(model.rng.randrange(1, 30)):
                walk.step()
                left -= 1
