"""The exact edit that edit_files and propose_and_review take, and their note on a diff that was cut."""

from collections.abc import Iterable

from pydantic import Field

from holdfast.text.edit import Edit
from holdfast.tools.registry import Arguments

DIFF_CUT = "The diff is longer than an answer may be; the rest was left out."


class ExactEdit(Arguments):
    """One replacement of exact text."""

    old_string: str = Field(
        description="Exact text to match; empty to create the file, or OVERWRITE_FILE or APPEND_TO_FILE."
    )
    new_string: str = Field(description="Replacement.")
    expected_replacements: int = Field(1, ge=1, description="Times old_string must occur.")


def to_edits(edits: Iterable[ExactEdit]) -> list[Edit]:
    """Return the edits in the form that the edit engine takes."""
    return [Edit(edit.old_string, edit.new_string, edit.expected_replacements) for edit in edits]
