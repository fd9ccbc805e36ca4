"""Searches the caller's folders by words and meaning: as text for agents, as data for the person."""

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.auth.rates import Rate
from holdfast.call import Call
from holdfast.search.folders.model import FolderAnswer, FolderHit
from holdfast.text.display import display_name
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, tool
from holdfast.tools.threads import Load

NO_MATCHES = "No matches found."


class SearchFolders(Arguments):
    """Arguments of search_folders."""

    query: str = Field(description="Words or a question to look for.")
    path: str = Field("", description="Directory or file to search in; by default all allowed directories.")
    limit: int = Field(5, description="Most hits to return, up to 20.")


class PassageAnswer(BaseModel):
    """One hit; a web page has no line."""

    path: str
    line: int | None = None
    text: str
    score: float


class PassagesAnswer(BaseModel):
    """Hits, best first, notices about them, and how much of the index is ready, in percent."""

    hits: list[PassageAnswer]
    notices: list[str]
    ready: int


@tool(
    "search_folders",
    group=Group.SEARCH,
    effect=Effect.READ,
    title="On disk: search by meaning",
    rate=Rate.SEARCH,
    load=Load.HEAVY,
)
def search_folders(app: App, call: Call, args: SearchFolders) -> Answer:
    """On disk: find passages by words and meaning, in documents too: path:line (score). For exact text use grep_content."""
    answer = _search(app, call, args)
    hits = [_hit_text(hit) for hit in answer.hits] or [NO_MATCHES]
    return Answer.of(*hits, *(f"[{notice}]" for notice in answer.notices))


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
    """Find what search_folders finds, as data."""
    answer = _search(app, call, args)
    hits = [PassageAnswer(path=hit.path, line=hit.line, text=hit.text, score=hit.score) for hit in answer.hits]
    data = PassagesAnswer(hits=hits, notices=list(answer.notices), ready=answer.ready)
    return Answer.of("1 passage." if len(hits) == 1 else f"{len(hits)} passages.", data=data)


def _search(app: App, call: Call, args: SearchFolders) -> FolderAnswer:
    return app.folder_search.search(app.folders_of(call.caller), call, args.query, args.path, args.limit)


def _hit_text(hit: FolderHit) -> str:
    where = display_name(hit.path) if hit.line is None else f"{display_name(hit.path)}:{hit.line}"
    return f"{where} ({hit.score:.2f})\n{hit.text}"
