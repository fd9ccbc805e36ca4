"""Searches the project store: the service that tools call."""

import logging
import time
from collections.abc import Callable
from datetime import datetime

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.errors import InvalidQuery, SearchBackendError
from holdfast.observe.metrics import Metrics
from holdfast.search.model import ALL_PROJECTS, Hit, Scope, SearchLimits
from holdfast.search.ports import Embedder, Index, IndexFault, Reranker
from holdfast.search.retrieve import PreviousModel, Retriever, SearchCounts, SearchQuery
from holdfast.secret import Secret
from holdfast.store.model import tenant_of
from holdfast.store.paths import check_project, span_with_prefix

MAX_QUERY_CHARS = 4000

_log = logging.getLogger(__name__)


class Search:
    """Finds passages in the caller's own stored files.

    The previous embedder, if there is one, serves the chunks that have no vector of the present one yet.
    """

    def __init__(
        self,
        index: Index,
        limits: SearchLimits,
        embedder: Embedder | None = None,
        previous_embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        local_key: Secret | None = None,
        now: Callable[[], datetime] = utc_clock,
        metrics: Metrics | None = None,
    ) -> None:
        previous = PreviousModel(previous_embedder, embedder) if previous_embedder and embedder else None
        self._index = index
        self._limits = limits
        self._counts = SearchCounts(metrics)
        self._retriever = Retriever(index, limits, embedder, previous, reranker, self._counts)
        self._local_key = local_key
        self._now = now

    def counts(self) -> dict[str, int]:
        """Return how many searches there were, and in how many of them a part failed, by name."""
        return self._counts.as_json()

    def search(
        self,
        auth: AuthContext | None,
        project: str,
        query: str,
        path_prefix: str = "",
        limit: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> list[Hit]:
        """Return passages that answer a query, best first; `check` is called now and then, and raises to cancel.

        `project` "*" means all of the caller's projects. InvalidQuery for a query that is blank or too long,
        SearchBackendError when search is switched off or cannot answer.
        """
        tenant = tenant_of(auth)
        scope = Scope(None if project == ALL_PROJECTS else check_project(project), span_with_prefix(path_prefix))
        validate_query(query)
        if not self._limits.enabled:
            raise SearchBackendError("search is switched off (settings.mcp.files.search.enabled)")
        search_query = SearchQuery(tenant, scope, query, hit_limit(limit, self._limits), self._model_key(auth), check)
        self._counts.add("searches")
        began = time.perf_counter()
        try:
            hits = self._retriever.retrieve(search_query)
        except IndexFault as fault:
            _log.warning("search: %s", fault)
            raise SearchBackendError("search cannot answer now; try again") from None
        finally:
            self._counts.metrics.search_ended((time.perf_counter() - began) * 1000)
        self._mark_served(tenant, [chunk_id for chunk_id, _ in hits if chunk_id >= 0])
        return [hit for _, hit in hits]

    def _model_key(self, auth: AuthContext | None) -> Secret | None:
        """Return the caller's own key for models; the user of this machine has it in the settings."""
        if auth is None:
            return None
        return auth.model_key or (self._local_key if auth.is_local else None)

    def _mark_served(self, tenant: str, chunk_ids: list[int]) -> None:
        """Store when the chunks were served; a failure does not fail the search."""
        if not chunk_ids:
            return
        try:
            self._index.mark_served(tenant, chunk_ids, self._now())
        except IndexFault as fault:
            self._counts.add_failure("served_at_failed", fault)


def validate_query(query: str) -> None:
    """Raise InvalidQuery when a query is blank, too long or has a lone surrogate."""
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"query must be at most {MAX_QUERY_CHARS} characters long: it has {len(query)}")
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"query is not valid Unicode text: a lone surrogate at character {error.start}") from None
    if not query.strip():
        raise InvalidQuery("query must hold at least one word")


def hit_limit(limit: int, limits: SearchLimits) -> int:
    """Return how many hits to return at most: the default for 0 or less, and never more than the settings allow."""
    return min(limit if limit > 0 else limits.limit_default, limits.limit_max)
