"""What files said that a plan left in doubt, as far as they are still the ones that were read: no text outlives its file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import HoldfastError, NotDirectory, NotFound
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail
from holdfast.organiser.model import Excerpt, UncertainFile

_GONE = "It is gone since the plan was made."
_CHANGED = "It changed since the plan was made: a new plan will judge it."


def said_now(
    jail: Jail, folder: str, doubts: Sequence[UncertainFile], excerpts: Mapping[str, Excerpt]
) -> Iterator[tuple[UncertainFile, str]]:
    """Give each doubt with its file's text; of a file that changed or is gone, that alone is said."""
    for doubt in doubts:
        fate = _fate(jail, f"{folder.rstrip('/')}/{doubt.relative}", doubt)
        if fate:
            yield replace(doubt, category="", confidence=0.0, reasoning=fate), ""
        else:
            yield doubt, excerpts[doubt.file_hash].text if doubt.file_hash in excerpts else ""


def _fate(jail: Jail, path: str, doubt: UncertainFile) -> str:
    """Return what became of a file, nothing when it is as it was."""
    try:
        with jail.place(path, follow=False) as place:
            status = place.status
    except (NotFound, NotDirectory):
        return _GONE
    except HoldfastError as error:
        return f"It cannot be looked at any more: {error.message}"
    if status is None:
        return _GONE
    look = FileVersion.from_stat(status).scan_text
    return _CHANGED if doubt.file_hash and look != doubt.look else ""
