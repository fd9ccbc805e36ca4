"""Showing a review in the programs of the person, all at once; one that fails never fails the review."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.review.ports import Presenter

_log = logging.getLogger(__name__)


class Presenters:
    """Every program that shows reviews on this machine."""

    def __init__(self, programs: Sequence[Presenter]) -> None:
        self._programs = tuple(programs)

    def show(self, review_id: str, current: str, future: str) -> None:
        """Open the two files of a review everywhere."""
        self._each([partial(program.show, review_id, current, future) for program in self._programs])

    def close(self, review_id: str) -> None:
        """Say everywhere that a review is decided."""
        self._each([partial(program.close, review_id) for program in self._programs])

    def end(self) -> None:
        """Let go of everything."""
        self._each([program.end for program in self._programs])

    def _each(self, steps: Sequence[Callable[[], None]]) -> None:
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 -- the other ways to the person remain
                _log.warning("a review could not be shown or closed: %s", type(error).__name__)
