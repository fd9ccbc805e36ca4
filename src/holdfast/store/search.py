"""Find text by its words, read straight from the live files; nothing deleted, foreign or stale can be found."""

from collections.abc import Callable, Iterator

from holdfast.errors import InvalidQuery, SearchBackendError
from holdfast.store.content import is_inside
from holdfast.store.desk import Desk
from holdfast.store.model import Hit, Limits
from holdfast.store.paths import Span, project_name, starting_with
from holdfast.store.ports import Reading

ALL_PROJECTS = "*"
PASSAGE_BYTES = 1500


def search(
    desk: Desk,
    tenant: str,
    project: str,
    query: str,
    path_prefix: str = "",
    limit: int = 0,
    check: Callable[[], None] = lambda: None,
) -> list[Hit]:
    """Return passages with the query's words, best first; `check` is called between files and may raise.

    `project` "*" means all of the caller's projects. InvalidQuery for a blank query.
    """
    if project != ALL_PROJECTS:
        project = project_name(project)
    words = words_of(query)
    if not desk.limits.search_enabled:
        raise SearchBackendError("search is switched off (settings.mcp.files.search.enabled)")
    most = hit_limit(limit, desk.limits)
    with desk.database.reading(tenant) as reading:
        names = [one.project for one in reading.projects()] if project == ALL_PROJECTS else [project]
        hits = list(_hits(reading, names, starting_with(path_prefix), words, check))
    hits.sort(key=lambda hit: (-hit.score, hit.project, hit.path))
    return hits[:most]


def words_of(query: str) -> list[bytes]:
    """Return the distinct words of a query in small letters; InvalidQuery when there are none."""
    try:
        words = query.encode().lower().split()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"query is not valid Unicode text: a lone surrogate at character {error.start}") from None
    if not words:
        raise InvalidQuery("query must hold at least one word")
    return list(dict.fromkeys(words))


def hit_limit(limit: int, limits: Limits) -> int:
    """Return how many hits are shown: the default for 0 or less, never more than the most."""
    return min(limit if limit > 0 else limits.search_limit_default, limits.search_limit_max)


def _hits(
    reading: Reading, names: list[str], span: Span, words: list[bytes], check: Callable[[], None]
) -> Iterator[Hit]:
    for name in names:
        for path, content in reading.contents(name, span):
            check()
            found = passage(content, words)
            if found is not None:
                start, end, score = found
                whole = start == 0 and end == len(content)
                yield Hit(name, path, start, end, content[start:end].decode(), score, whole)


def passage(content: bytes, words: list[bytes]) -> tuple[int, int, float] | None:
    """Return the range around the first word found and the share of words found, None when there is none."""
    small = content.lower()
    places = [at for at in (small.find(word) for word in words) if at >= 0]
    if not places:
        return None
    start, end = _around(content, min(places))
    return start, end, len(places) / len(words)


def _around(content: bytes, at: int) -> tuple[int, int]:
    """Return whole lines, or at least whole characters, around a position."""
    if len(content) <= PASSAGE_BYTES:
        return 0, len(content)
    line = content.rfind(b"\n", 0, at) + 1
    start = line if at - line < PASSAGE_BYTES // 2 else at
    end = min(start + PASSAGE_BYTES, len(content))
    while end < len(content) and is_inside(content[end]):
        end -= 1
    cut = content.rfind(b"\n", at, end)
    return start, cut + 1 if end < len(content) and cut > at else end
