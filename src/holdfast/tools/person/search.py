"""The person's searches in folders, as data: passages by words and meaning, files by name, lines by their text."""

import re
from collections.abc import Iterator

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.errors import NotDirectory
from holdfast.folders.finding.grep import Grep, GrepResult
from holdfast.folders.finding.ripgrep import GrepQuery
from holdfast.folders.finding.walk import EntryType, Walk, open_start
from holdfast.folders.service import Folders
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import quantity
from holdfast.text.path_address import address_of
from holdfast.tools.answer import Answer
from holdfast.tools.folders.search import SearchFolders
from holdfast.tools.person.roots import folders_at, folders_of_person
from holdfast.tools.person.shapes import (
    FindLines,
    FindNames,
    FoundLine,
    FoundLines,
    FoundNames,
    FoundPath,
    PassageAnswer,
    PassagesAnswer,
)
from holdfast.tools.registry import Effect, Group, tool
from holdfast.tools.threads import Load

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")


@tool(
    "find_passages",
    group=Group.SEARCH,
    effect=Effect.READ,
    title="Find passages",
    output=PassagesAnswer,
    load=Load.HEAVY,
    audience=CallerKind.PERSON,
)
def find_passages(app: App, call: Call, args: SearchFolders) -> Answer:
    """Find what search_folders finds, as data; a call without directories of its own searches all that are known."""
    folders = app.folders_of(call.caller) if call.caller.roots else folders_of_person(app, call)
    answer = app.folder_search.search(folders, call, args.query, args.path, args.limit)
    hits = [PassageAnswer(path=hit.path, line=hit.line, text=hit.text, score=hit.score) for hit in answer.hits]
    data = PassagesAnswer(hits=hits, notices=list(answer.notices), ready=answer.ready)
    return Answer.of("1 passage." if len(hits) == 1 else f"{len(hits)} passages.", data=data)


@tool(
    "find_names",
    group=Group.SEARCH,
    effect=Effect.READ,
    title="Find files by name",
    output=FoundNames,
    load=Load.HEAVY,
    audience=CallerKind.PERSON,
)
def find_names(app: App, call: Call, args: FindNames) -> Answer:
    """Find files and directories whose name holds a text, in any case of letters; leaves out what .gitignore ignores."""
    hits: list[FoundPath] = []
    is_whole = True
    for folders, path in _places(app, call, args.path):
        with open_start(folders.jail, path, ignore=True) as start:
            walk = Walk(folders.jail, call, start, ignore=True, seconds=folders.settings.search_seconds)
            for relative, kind in _names_with(walk, args.text.casefold()):
                if len(hits) == args.limit:
                    is_whole = False
                    break
                full = f"{start.path.rstrip('/')}/{relative}"
                name = replace_lone_surrogates(relative.rpartition("/")[2])
                hits.append(FoundPath(path=address_of(full), name=name, type=kind.value))
            is_whole &= not walk.timed_out
    return Answer.of(f"{quantity(len(hits), 'name')}.", data=FoundNames(hits=hits, is_whole=is_whole))


@tool(
    "find_lines",
    group=Group.SEARCH,
    effect=Effect.READ,
    title="Find lines by text",
    output=FoundLines,
    load=Load.HEAVY,
    audience=CallerKind.PERSON,
)
def find_lines(app: App, call: Call, args: FindLines) -> Answer:
    """Find lines that hold a text or match a regular expression; leaves out binary files and what .gitignore ignores."""
    pattern = args.text if args.is_pattern else _SPECIAL.sub(r"\\\g<0>", args.text)
    query = GrepQuery(pattern, not args.match_case, context_lines=0)
    hits: list[FoundLine] = []
    is_whole = True
    for folders, path in _places(app, call, args.path):
        room = args.limit - len(hits)
        if room <= 0:
            is_whole = False
            break
        result, prefix = _grep(folders, call, path, query, room)
        is_whole &= not (result.is_cut or result.timed_out or result.crashed)
        lines = [(file.relative, line) for file in result.files for line in file.lines if line.is_match]
        hits += [
            FoundLine(path=address_of(prefix + relative), line=line.number, text=line.text)
            for relative, line in lines[:room]
        ]
        is_whole &= len(lines) <= room
    return Answer.of(f"{quantity(len(hits), 'line')}.", data=FoundLines(hits=hits, is_whole=is_whole))


def _places(app: App, call: Call, address: str) -> list[tuple[Folders, str]]:
    """Return where to search: the path that was given, or every known directory that lies in no other."""
    if address:
        folders, (path,) = folders_at(app, call, address)
        return [(folders, path)]
    folders = folders_of_person(app, call)
    return [(folders, root) for root in folders.jail.allowed_paths]


def _names_with(walk: Walk, part: str) -> Iterator[tuple[str, EntryType]]:
    for folder, entries in walk:
        for name, kind in entries:
            if part in replace_lone_surrogates(name).casefold():
                yield folder.relative + name, kind


def _grep(folders: Folders, call: Call, path: str, query: GrepQuery, max_lines: int) -> tuple[GrepResult, str]:
    """Return the matches, and what stands before each of their paths."""
    grep = Grep(folders, call, query, max_lines + 1, None)
    try:
        with open_start(folders.jail, path, ignore=True) as start:
            return grep.search_directory(start), f"{start.path.rstrip('/')}/"
    except NotDirectory:
        with folders.jail.open_file(path) as file:
            folder, _, name = path.rpartition("/")
            return grep.search_file(file.fd, name), f"{folder}/"
