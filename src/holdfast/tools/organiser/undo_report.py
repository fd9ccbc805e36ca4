"""What an undo of many moves answers: how many files came back, and which stayed, with the reason."""

from collections.abc import Iterator

from holdfast.changes.model import UndoResult
from holdfast.text.display import display_name, escape_invisible
from holdfast.text.surrogates import replace_lone_surrogates
from holdfast.tools.organiser.answers import relative
from holdfast.tools.organiser.shapes import SkippedEntry, UndoneMoves

_MOST_NAMED = 20


def undone_moves(undone: UndoResult) -> UndoneMoves:
    """Return what came of an undo, paths from the folder of its plan."""
    folder = undone.plan.folder or ""
    return UndoneMoves(
        change_id=undone.change_id,
        came_back=undone.back,
        stayed=len(undone.stayed),
        problems=[
            SkippedEntry(path=relative(item.src_path, folder), why=replace_lone_surrogates(item.error_msg or ""))
            for item in undone.stayed[:_MOST_NAMED]
        ],
    )


def stayed_lines(found: UndoneMoves) -> Iterator[str]:
    """Give a line for each file that stayed, as many as are named, and how to go on."""
    if not found.stayed:
        return
    yield f"{found.stayed} stayed where {'it is' if found.stayed == 1 else 'they are'}:"
    for one in found.problems:
        yield f"{display_name(one.path)}: {escape_invisible(one.why)}"
    if found.stayed > len(found.problems):
        yield f"and {found.stayed - len(found.problems)} more"
    yield "Undo it again once the way is free."


def counted(files: int) -> str:
    """Return how many files are back, in words."""
    return "1 file is back" if files == 1 else f"{files} files are back"
