"""Finding files and directories by the pattern of their names."""

from collections.abc import Iterator, Sequence

from holdfast.call import Call
from holdfast.folders.finding.glob import Glob, State
from holdfast.folders.finding.walk import EntryType, PathKey, Walk, open_start, path_key
from holdfast.folders.service import Folders
from holdfast.text.budget import Page, decode_cursor, invalid_cursor, more_notice
from holdfast.text.display import display_name

NO_MATCHES = "No matches found."


def search_names(
    folders: Folders, call: Call, path: str, pattern: str, *, exclude: Sequence[str] = (), cursor: str | None = None
) -> str:
    """Return the absolute paths that match, a line each, up to the token budget and the time limit."""
    seconds = folders.settings.search_seconds
    page = Page(folders.settings.max_answer_tokens)
    after = _position_of(cursor)
    with open_start(folders.jail, path, ignore=True) as start:
        walk = Walk(folders.jail, call, start, ignore=True, seconds=seconds)
        prefix = start.path.rstrip("/") + "/"
        last = ""
        for relative in _matching(walk, Glob(pattern), [Glob(text) for text in exclude], after):
            if not page.add(display_name(prefix + relative)):
                return page.text(more_notice({"after": last}))
            last = relative
    if walk.ran_out:
        resume = more_notice({"after": walk.last})
        return page.text(f"[Stopped after {seconds:g} s, {walk.seen} entries looked at.]", resume)
    return page.text() or NO_MATCHES


def _position_of(cursor: str | None) -> PathKey | None:
    if cursor is None:
        return None
    after = decode_cursor(cursor).get("after")
    if not isinstance(after, str):
        raise invalid_cursor()
    return path_key(after)


def _matching(walk: Walk, glob: Glob, exclude: list[Glob], after: PathKey | None) -> Iterator[str]:
    states: dict[str, tuple[State, list[State]]] = {"": (glob.start, [each.start for each in exclude])}
    for folder, entries in walk:
        relative = folder.relative
        state, barred = states[relative]
        name, kind = entries[-1]
        if kind is EntryType.DIRECTORY:
            inside = state.enter(name)
            if inside.is_dead or any(each.matches(name) for each in barred) or _is_over(relative + name, after):
                walk.prune()
            else:
                states[f"{relative}{name}/"] = (inside, [each.enter(name) for each in barred])
        for name in state.select(entries):
            if any(each.matches(name) for each in barred):
                continue
            if after is None or path_key(relative + name) > after:
                yield relative + name


def _is_over(directory: str, after: PathKey | None) -> bool:
    """Return whether everything in a directory comes before the position to go on from."""
    if after is None:
        return False
    here = path_key(directory)
    return here < after and here != after[: len(here)]
