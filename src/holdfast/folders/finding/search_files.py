"""Finds files and directories whose path matches a glob pattern."""

from collections.abc import Iterator, Sequence

from holdfast.call import Call
from holdfast.folders.finding.empty_search import explain_no_names
from holdfast.folders.finding.walk import EntryType, PathKey, Walk, open_start, path_key
from holdfast.folders.service import Folders
from holdfast.text.budget import Page, decode_cursor, invalid_cursor, more_notice
from holdfast.text.display import display_name, quantity
from holdfast.text.glob import Glob, State

NO_MATCHES = "No matches found."


def search_names(
    folders: Folders, call: Call, path: str, pattern: str, *, exclude: Sequence[str] = (), cursor: str | None = None
) -> str:
    """Return the absolute paths that match, a line each, up to the token budget and the time limit."""
    seconds = folders.settings.search_seconds
    page = Page(folders.settings.max_answer_tokens)
    after = _cursor_key(cursor)
    with open_start(folders.jail, path, ignore=True) as start:
        walk = Walk(folders.jail, call, start, ignore=True, seconds=seconds)
        prefix = start.path.rstrip("/") + "/"
        last = ""
        for relative in _matching_paths(walk, Glob(pattern), [Glob(text) for text in exclude], after):
            if not page.add(display_name(prefix + relative)):
                return page.text(more_notice({"after": last}))
            last = relative
    if walk.timed_out:
        resume = more_notice({"after": walk.last})
        return page.text(
            f"[Stopped after {seconds:g} s, {quantity(walk.entry_count, 'entry', 'entries')} looked at.]", resume
        )
    if page.lines or after is not None:
        return page.text() or NO_MATCHES
    hint = explain_no_names(folders, call, path, pattern, exclude)
    return "\n".join(filter(None, (NO_MATCHES, hint)))


def _cursor_key(cursor: str | None) -> PathKey | None:
    if cursor is None:
        return None
    after = decode_cursor(cursor).get("after")
    if not isinstance(after, str):
        raise invalid_cursor()
    return path_key(after)


def _matching_paths(walk: Walk, glob: Glob, exclude: list[Glob], after: PathKey | None) -> Iterator[str]:
    states: dict[str, tuple[State, list[State]]] = {"": (glob.start, [pattern.start for pattern in exclude])}
    for folder, entries in walk:
        relative = folder.relative
        state, excluded = states[relative]
        name, kind = entries[-1]
        if kind is EntryType.DIRECTORY:
            inside = state.enter(name)
            if (
                inside.is_dead
                or any(glob_state.matches(name) for glob_state in excluded)
                or _is_before(relative + name, after)
            ):
                walk.prune()
            else:
                states[f"{relative}{name}/"] = (inside, [glob_state.enter(name) for glob_state in excluded])
        for name in state.select(entries):
            if any(glob_state.matches(name) for glob_state in excluded):
                continue
            if after is None or path_key(relative + name) > after:
                yield relative + name


def _is_before(directory: str, after: PathKey | None) -> bool:
    """Return whether everything in a directory comes before the position to continue from."""
    if after is None:
        return False
    here = path_key(directory)
    return here < after and here != after[: len(here)]
