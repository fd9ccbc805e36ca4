"""The tools that find: listings, the tree, search by name and search by content."""

from typing import Literal

from pydantic import Field

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call
from holdfast.folders.finding import listing, tree
from holdfast.folders.finding.grep_report import grep_content as grep
from holdfast.folders.finding.ripgrep import GrepQuery
from holdfast.folders.finding.search_files import search_names
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, tool
from holdfast.tools.threads import Load

_PATH = "Path of the directory to {}."
_MAX_PATTERNS = 100
_CURSOR = "Cursor of the previous answer."


class ListDirectory(Arguments):
    """Arguments of list_directory."""

    path: str = Field(description=_PATH.format("list"))
    cursor: str | None = Field(None, description=_CURSOR)


class ListDirectoryWithSizes(ListDirectory):
    """Arguments of list_directory_with_sizes."""

    sort_by: Literal["name", "size"] = Field("name", alias="sortBy", description="What to sort the entries by.")


class DirectoryTree(Arguments):
    """Arguments of directory_tree."""

    path: str = Field(description=_PATH.format("show"))
    exclude_patterns: list[str] = Field(
        [],
        alias="excludePatterns",
        max_length=_MAX_PATTERNS,
        description="Globs of entries to leave out; a plain name matches at any depth.",
    )
    max_depth: int | None = Field(None, ge=1, description="How many levels to expand.")
    cursor: str | None = Field(None, description=_CURSOR)


class SearchFiles(Arguments):
    """Arguments of search_files."""

    path: str = Field(description=_PATH.format("search"))
    pattern: str = Field(description="Glob of the paths to find: *.py in that directory alone, **/*.py at any depth.")
    exclude_patterns: list[str] = Field(
        [], alias="excludePatterns", max_length=_MAX_PATTERNS, description="Globs of paths to leave out."
    )
    cursor: str | None = Field(None, description=_CURSOR)


class GrepContent(Arguments):
    """Arguments of grep_content."""

    pattern: str = Field(description="Regular expression to look for.")
    search_path: str = Field(".", description="Directory or file to search.")
    case_insensitive: bool = Field(False, description="Whether upper and lower case are the same.")
    context_lines: int = Field(2, ge=0, le=50, description="How many lines to show around each match.")
    glob: str | None = Field(None, description="Search only files of this glob: *.py, src/**, !*.md.")
    max_results: int = Field(200, ge=1, le=5000, description="Most matches to return.")
    section_patterns: list[str] | None = Field(
        None, max_length=_MAX_PATTERNS, description="Regular expressions of lines that begin a section."
    )
    include_ignored: bool = Field(False, description="Whether to search files that .gitignore ignores.")
    cursor: str | None = Field(None, description=_CURSOR)


@tool("list_directory", group=Group.FILES, effect=Effect.READ, title="On disk: list a directory")
def list_directory(app: App, call: Call, args: ListDirectory) -> Answer:
    """On disk: list a directory: [FILE], [DIR] or [LINK] and the name. A name with strange characters is quoted."""
    return Answer.of(listing.list_directory(app.folders_of(call.caller), call, args.path, args.cursor))


@tool(
    "list_directory_with_sizes",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: list a directory with sizes",
    listed=False,
)
def list_directory_with_sizes(app: App, call: Call, args: ListDirectoryWithSizes) -> Answer:
    """On disk: list a directory with the size of each file and totals."""
    folders = app.folders_of(call.caller)
    return Answer.of(listing.list_with_sizes(folders, call, args.path, args.sort_by, args.cursor))


@tool("directory_tree", group=Group.FILES, effect=Effect.READ, title="On disk: show a directory tree", load=Load.HEAVY)
def directory_tree(app: App, call: Call, args: DirectoryTree) -> Answer:
    """On disk: show a directory tree as JSON: name, type and children, the top levels first.

    Leaves out .git and what .gitignore ignores. A directory beyond the budget is "collapsed" with its number of entries.
    """
    text, notice = tree.directory_tree(
        app.folders_of(call.caller),
        call,
        args.path,
        exclude=args.exclude_patterns,
        max_depth=args.max_depth,
        cursor=args.cursor,
    )
    return Answer.of(text, notice)


@tool(
    "search_files",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: find files by name",
    rate=Rate.SEARCH,
    load=Load.HEAVY,
)
def search_files(app: App, call: Call, args: SearchFiles) -> Answer:
    """On disk: find files and directories by name; absolute paths, one a line. For their content use grep_content.

    Leaves out .git and what .gitignore ignores, unless `path` lies in it.
    """
    folders = app.folders_of(call.caller)
    return Answer.of(
        search_names(folders, call, args.path, args.pattern, exclude=args.exclude_patterns, cursor=args.cursor)
    )


@tool(
    "grep_content",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: search file content",
    rate=Rate.SEARCH,
    load=Load.HEAVY,
)
def grep_content(app: App, call: Call, args: GrepContent) -> Answer:
    """On disk: find text in files: `12:` is a match, `12-` context, [sections: 12..40] the end of line 12's section.

    Leaves out binary files, .git and what .gitignore ignores.
    """
    question = GrepQuery(args.pattern, args.case_insensitive, args.context_lines, args.glob, args.include_ignored)
    text = grep(
        app.folders_of(call.caller),
        call,
        args.search_path,
        question,
        max_results=args.max_results,
        section_patterns=args.section_patterns or (),
        cursor=args.cursor,
    )
    return Answer.of(text)
