"""How a file or folder came to what it is: the changes of its path, and of the paths that it was moved here from."""

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.changes.model import Change, ItemStatus, Op, Plan, is_beneath
from holdfast.changes.selection import ChangeFilter
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.history.shapes import AllChangesAnswer, ListedFacts
from holdfast.tools.person.roots import folders_at
from holdfast.tools.person.shapes import HistoryOf
from holdfast.tools.registry import Effect, Group, tool

_PAGE_ROWS = 50
_MAX_MOVES = 100


@tool(
    "history_of",
    group=Group.FILES,
    effect=Effect.READ,
    title="History of a file or folder",
    output=AllChangesAnswer,
    audience=CallerKind.PERSON,
)
def history_of(app: App, call: Call, args: HistoryOf) -> Answer:
    """List the changes of a file, or of a folder and all in it, newest first; before a move, those of where it was."""
    _, (path,) = folders_at(app, call, args.path)
    older_than = app.changes.history.find(args.older_than).seq if args.older_than else None
    changes = _trace_changes(app, call, path.rstrip("/"), args.limit + 1, older_than)
    page = [ListedFacts.of(change) for change in changes[: args.limit]]
    data = AllChangesAnswer(changes=page, has_more=len(changes) > args.limit)
    return Answer.of(f"{quantity(len(page), 'change')}.", data=data)


def _trace_changes(app: App, call: Call, path: str, limit: int, older_than: int | None) -> list[Change]:
    """Return the changes of a path; from the change that moved it here on, those of where it came from."""
    changes: list[Change] = []
    history, before, moves, skipping = app.changes.history, None, 0, older_than
    while len(changes) < limit and moves < _MAX_MOVES:
        call.check()
        above = tuple(path[:at] for at, char in enumerate(path) if char == "/" and at)
        page = history.find_changes(ChangeFilter(directory=path, or_moved_to=above), _PAGE_ROWS, before)
        source = None
        for change in page:
            before = change.seq
            if skipping is None or change.seq < skipping:
                changes.append(change)
            source = _source_of(history.plans([change]), path)
            if source is not None or len(changes) == limit:
                break
        if source is not None:
            path, moves = source, moves + 1
        elif len(page) < _PAGE_ROWS:
            break
    return changes


def _source_of(plans: list[Plan], path: str) -> str | None:
    """Return where a change moved a path from, None when it moved nothing here or was undone."""
    for plan in plans:
        for item in plan.items:
            dest = item.dest_path
            if item.op is Op.MOVE and item.status is ItemStatus.DONE and dest and is_beneath(path, [dest]):
                return item.src_path + path[len(dest) :]
    return None
