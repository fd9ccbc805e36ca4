"""Search in the project store: what tools call."""

import logging
from collections.abc import Callable
from datetime import datetime

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.errors import InvalidQuery, SearchBackendError
from holdfast.search.model import ALL_PROJECTS, Hit, Scope, SearchLimits
from holdfast.search.ports import Embedder, Index, IndexFault, Reranker
from holdfast.search.previous_model import Earlier
from holdfast.search.retrieve import Figures, Query, Retriever, retrieve
from holdfast.secret import Secret
from holdfast.store.model import tenant_of
from holdfast.store.paths import check_project, span_with_prefix

MAX_QUERY_CHARS = 4000

_log = logging.getLogger(__name__)


def _unchecked() -> None:
    return None


class Search:
    """Finds passages in the caller's own stored files.

    An earlier embedder answers, as long as it is needed, for what the present one has not come to.
    """

    def __init__(
        self,
        index: Index,
        limits: SearchLimits,
        embedder: Embedder | None = None,
        earlier: Embedder | None = None,
        reranker: Reranker | None = None,
        local_key: Secret | None = None,
        now: Callable[[], datetime] = utc_clock,
    ) -> None:
        before = Earlier(earlier, embedder) if earlier and embedder else None
        self._index = index
        self._retriever = Retriever(index, limits, embedder, before, reranker)
        self._local_key = local_key
        self._now = now

    @property
    def figures(self) -> Figures:
        """Return what happened to searches so far."""
        return self._retriever.figures

    def search(
        self,
        auth: AuthContext | None,
        project: str,
        query: str,
        path_prefix: str = "",
        limit: int = 0,
        check: Callable[[], None] = _unchecked,
    ) -> list[Hit]:
        """Return passages that answer a query, best first; `check` is called now and then, and may raise.

        `project` "*" means all of the caller's projects. InvalidQuery for a query that is blank or too long,
        SearchBackendError when search is off or cannot answer.
        """
        tenant = tenant_of(auth)
        scope = Scope(None if project == ALL_PROJECTS else check_project(project), span_with_prefix(path_prefix))
        text = checked_query(query)
        limits = self._retriever.limits
        if not limits.enabled:
            raise SearchBackendError("search is switched off (settings.mcp.files.search.enabled)")
        most = hit_limit(limit, limits)
        self.figures.count("searches")
        try:
            found = retrieve(self._retriever, Query(tenant, scope, text, most, self._key_of(auth), check))
        except IndexFault as fault:
            _log.warning("search: %s", fault)
            raise SearchBackendError("search cannot answer now; try again") from None
        self._touch(tenant, [number for number, _ in found if number >= 0])
        return [hit for _, hit in found]

    def _key_of(self, auth: AuthContext | None) -> Secret | None:
        """Return the caller's own key for models; the user of this machine has it in the settings."""
        if auth is None:
            return None
        return auth.model_key or (self._local_key if auth.is_local else None)

    def _touch(self, tenant: str, chunk_ids: list[int]) -> None:
        if not chunk_ids:
            return
        try:
            self._index.touch(tenant, chunk_ids, self._now())
        except IndexFault as fault:
            self.figures.count("touch_failures")
            _log.warning("search: the time of serving was not kept: %s", fault)


def checked_query(query: str) -> str:
    """Return the query; InvalidQuery when it is blank, too long or no text."""
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"query must be at most {MAX_QUERY_CHARS} characters long: it has {len(query)}")
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"query is not valid Unicode text: a lone surrogate at character {error.start}") from None
    if not query.strip():
        raise InvalidQuery("query must hold at least one word")
    return query


def hit_limit(limit: int, limits: SearchLimits) -> int:
    """Return how many hits are shown: the default for 0 or less, never more than the most."""
    return min(limit if limit > 0 else limits.limit_default, limits.limit_max)
