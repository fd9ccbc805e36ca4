"""Reviews without a server: real files, a real database, and a caller with one root."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.adapters.sqlite.state.reviews import SqliteReviews, reviews_beside
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.changes.service import Changes
from holdfast.config.settings import FolderSettings, JournalSettings, ReviewSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.service import Folders
from holdfast.review.model import Channel, Choice, Decision, Review
from holdfast.review.ports import Presenter
from holdfast.review.service import Reviews
from holdfast.review.sessions import Sessions
from holdfast.text.edit import Edit


class Desk:
    """One state folder with its reviews, and one folder that an agent works in."""

    def __init__(self, root: Path, state: Path, book: SqliteReviews, changes: Changes, reviews: Reviews) -> None:
        self.root = root
        self.state = state
        self.book = book
        self.changes = changes
        self.reviews = reviews
        self._roots = open_roots([str(root)], "/", str(state))
        self.folders = Folders(Jail(self._roots, hidden=[identity_of(os.stat(state))]), FolderSettings())

    def call(self) -> Call:
        return Call(Caller(LOCAL_USER, roots=(str(self.root),)))

    def propose(self, path: str, *edits: tuple[str, str]) -> Review:
        return self.reviews.agent.propose(self.folders, self.call(), path, [Edit(*edit) for edit in edits])

    def propose_again(self, review: Review, path: str, *edits: tuple[str, str]) -> Review:
        given = [Edit(*edit) for edit in edits]
        return self.reviews.agent.propose_again(self.folders, self.call(), self.session(review), path, given)

    def session(self, review: Review) -> str:
        return self.reviews.agent.session_path(review.session)

    def find(self, review: Review, path: str) -> Review:
        return self.reviews.agent.find(self.folders, self.session(review), path)

    def decide(self, review: Review, choice: Choice, **more: Any) -> Review:
        shown = self.reviews.person.show(review.id).review
        decision = Decision(choice, more.pop("channel", Channel.TERMINAL), shown.shown_hash, **more)
        return self.reviews.person.decide(review.id, decision)

    def commit(self, review: Review, path: str) -> str:
        return self.reviews.agent.commit(self.folders, self.call(), self.session(review), path).merged_diff

    def sessions(self) -> list[str]:
        return sorted(os.listdir(self.state / "reviews"))

    def future(self, review: Review) -> Path:
        (found,) = (self.state / "reviews" / review.session).glob("future_*")
        return found

    def close(self) -> None:
        self.reviews.close()
        self.changes.close()
        close_roots(self._roots)


@contextmanager
def opened_desk(
    root: Path, state: Path, settings: ReviewSettings | None = None, presenters: Sequence[Presenter] = ()
) -> Iterator[Desk]:
    """Give what a server would have after its start."""
    state.mkdir(mode=0o700, exist_ok=True)
    journal = open_journal(str(state))
    changes = Changes(journal, str(state), JournalSettings())
    changes.recover()
    book = reviews_beside(journal)
    reviews = Reviews(book, changes, Sessions(str(state)), settings or ReviewSettings(), presenters)
    reviews.recover()
    desk = Desk(root, state, book, changes, reviews)
    try:
        yield desk
    finally:
        desk.close()


def at_once(*steps: Any) -> list[Any]:
    """Run all steps at the same moment; give what each returned or raised."""
    barrier = threading.Barrier(len(steps))
    found: list[Any] = [None] * len(steps)

    def run(number: int) -> None:
        barrier.wait()
        try:
            found[number] = steps[number]()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(steps))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def fail(*_arguments: object, **_more: object) -> None:
    """Stand in for a step that a crash prevented."""
    raise RuntimeError("a crash")
