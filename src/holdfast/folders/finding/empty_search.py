"""Says why a search that found nothing may have been asked too narrowly: a short second look, which gives up quietly."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.call import Call
from holdfast.errors import HoldfastError, TimedOut
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.finding.grep import GlobFilter, Grep
from holdfast.folders.finding.ripgrep import GrepQuery
from holdfast.folders.finding.walk import EntryType, Walk, WalkStart, open_start
from holdfast.folders.service import Folders
from holdfast.text.decode import SAMPLE_BYTES
from holdfast.text.display import display_name
from holdfast.text.glob import Glob, State
from holdfast.text.media_types import binary_type, document_format

_SECONDS = 0.5
_DOCUMENTS = (".pdf", ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm")


def explain_no_names(folders: Folders, call: Call, path: str, pattern: str, exclude: Sequence[str]) -> str:
    """Return what a pattern finds further down, or among ignored files; empty when it finds nothing there either."""
    if not pattern:
        return "[An empty pattern matches nothing. **/* finds every file.]"
    if pattern.startswith("/"):
        return "[A pattern is matched against paths from the searched directory, so it does not begin with '/'.]"
    if pattern.startswith("!"):
        return ""
    if not pattern.startswith("**"):
        deeper = f"**/{pattern.removeprefix('./')}"
        match = _find_name(folders, call, path, deeper, exclude, ignore=True)
        if match is not None:
            return f"[{pattern} matches in the searched directory alone. {deeper} finds {display_name(match)}.]"
    match = _find_name(folders, call, path, pattern, exclude, ignore=False)
    if match is None:
        return ""
    return f"[{display_name(match)} matches and is left out because .gitignore ignores it; list_directory shows it.]"


def explain_no_content(folders: Folders, call: Call, path: str, query: GrepQuery) -> str:
    """Return whether ignored files match, and that documents were not searched; empty when neither is so."""
    try:
        with open_start(folders.jail, path, ignore=False) as start:
            ignored = "" if query.include_ignored else _find_in_ignored(folders, call, start, query)
            return "\n".join(filter(None, (ignored, _find_document(folders, call, start, query.glob))))
    except HoldfastError:
        call.check()
        return ""


def explain_file_without_match(fd: int, name: str) -> str:
    """Return why a content search cannot find anything in a file that is no text; empty for text."""
    first = read_fully(fd, 0, SAMPLE_BYTES)
    if document_format(first, name) is not None:
        return (
            f"[{display_name(name)} is a document, whose text this does not search: search_folders does, and "
            "read_text_file shows it.]"
        )
    kind = binary_type(first, name)
    return f"[{display_name(name)} is no text ({kind}), so it is not searched.]" if kind else ""


def _find_name(
    folders: Folders, call: Call, path: str, pattern: str, exclude: Sequence[str], *, ignore: bool
) -> str | None:
    """Return the first path that matches, from the searched directory; None when there is none or it takes too long."""
    excluded = [Glob(text) for text in exclude]
    try:
        with open_start(folders.jail, path, ignore=ignore) as start:
            states: dict[str, State] = {"": Glob(pattern).start}
            walk = Walk(folders.jail, _without_progress(call), start, ignore=ignore, seconds=_SECONDS)
            for folder, entries in walk:
                state = states[folder.relative]
                for name in state.select(entries):
                    if not any(glob.matches(folder.relative + name) for glob in excluded):
                        return folder.relative + name
                name, kind = entries[-1]
                if kind is EntryType.DIRECTORY:
                    inside = state.enter(name)
                    if inside.is_dead or any(glob.matches(folder.relative + name) for glob in excluded):
                        walk.prune()
                    else:
                        states[f"{folder.relative}{name}/"] = inside
    except HoldfastError:
        call.check()
    return None


def _find_in_ignored(folders: Folders, call: Call, start: WalkStart, query: GrepQuery) -> str:
    search = Grep(folders, _without_progress(call).within(_SECONDS), replace(query, include_ignored=True), 1, None)
    try:
        files = search.search_directory(start).files
    except TimedOut:
        call.check()
        return ""
    if not files:
        return ""
    return f"[Ignored files match, such as {display_name(files[0].relative)}: include_ignored searches them.]"


def _find_document(folders: Folders, call: Call, start: WalkStart, glob: str | None) -> str:
    admitted = GlobFilter(glob)
    walk = Walk(folders.jail, _without_progress(call), start, ignore=True, seconds=_SECONDS)
    for folder, entries in walk:
        for name, kind in entries:
            relative = folder.relative + name
            if kind is EntryType.FILE and name.lower().endswith(_DOCUMENTS) and admitted.includes(relative):
                return (
                    f"[Documents such as {display_name(relative)} are not searched: search_folders finds text in them, and "
                    "read_text_file shows it.]"
                )
    return ""


def _without_progress(call: Call) -> Call:
    """Return the call for the second look: the search itself has reported its progress, which must only grow."""
    return replace(call, progress=lambda _done, _total, _message: None)
