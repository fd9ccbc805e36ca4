"""Searches the caller's folders by words and meaning, as text for agents."""

from pydantic import Field

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call
from holdfast.search.folders.model import FolderHit
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
    answer = app.folder_search.search(app.folders_of(call.caller), call, args.query, args.path, args.limit)
    hits = [_hit_text(hit) for hit in answer.hits] or [NO_MATCHES]
    return Answer.of(*hits, *(f"[{notice}]" for notice in answer.notices))


def _hit_text(hit: FolderHit) -> str:
    where = display_name(hit.path) if hit.line is None else f"{display_name(hit.path)}:{hit.line}"
    return f"{where} ({hit.score:.2f})\n{hit.text}"
