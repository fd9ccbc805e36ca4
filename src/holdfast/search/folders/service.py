"""Searches the folders of this machine: the service that the tool calls."""

import logging
import time
from collections.abc import Iterable
from functools import partial

from holdfast.call import Call
from holdfast.errors import NotDirectory, SearchBackendError
from holdfast.folders.access.jail import Jail
from holdfast.folders.service import Folders
from holdfast.search.folders.index_workers import FolderIndexWorkers
from holdfast.search.folders.indexed_root import IndexedRoot, IndexingContext
from holdfast.search.folders.model import PROJECT, FolderAnswer, span_below, span_of_file
from holdfast.search.folders.multi_root_lookup import MultiRootLookup, RootScope
from holdfast.search.folders.scan_unread_files import UnreadFileScanner
from holdfast.search.folders.verify_passages import PassageVerifier, VerifiedHits
from holdfast.search.model import Scope, SearchLimits
from holdfast.search.ports import IndexFault
from holdfast.search.retrieve import Retriever, SearchQuery
from holdfast.search.service import hit_limit, validate_query

MAX_SCAN_SECONDS = 3.0
"""How long a search waits for the scan that it requests."""

MAX_REREAD_SECONDS = 2.0
"""How long a search waits for changed files to be read again."""

_ATTEMPTS = 3
_SPARE_FACTOR = 2
"""How many times more hits than wanted are retrieved, because some may turn out to be outdated."""

_log = logging.getLogger(__name__)


class FolderSearch:
    """Finds passages in the caller's own roots; nothing is scanned or watched before the first search."""

    def __init__(self, context: IndexingContext, limits: SearchLimits) -> None:
        self._context, self._limits = context, limits
        self._workers = FolderIndexWorkers(context)

    def search(self, folders: Folders, call: Call, query: str, path: str = "", limit: int = 0) -> FolderAnswer:
        """Return passages that answer a query, best first, as their files hold them at this moment.

        `path` restricts the search to a directory or a file. InvalidQuery for a query that is blank or too long, what
        the jail raises for a path, SearchBackendError when no index can answer.
        """
        validate_query(query)
        max_hits = hit_limit(limit, self._limits)
        scopes = self._scan_scopes(folders.jail, call, path)
        verified = self._find(folders.jail, call, scopes, query, max_hits)
        for _ in range(_ATTEMPTS - 1):
            if not verified.changed:
                break
            self._reread(verified, call)
            verified = self._find(folders.jail, call, scopes, query, max_hits)
        progress = [(scope.root.path, scope.root.state.progress()) for scope in scopes]
        notices = [notice for root, of_root in progress for notice in of_root.notices(root)]
        unsearched = [
            notice
            for scope in scopes
            for notice in scope.root.state.count_unsearched(scope.span).notices(scope.root.path)
        ]
        notices += unsearched
        if not unsearched and not any(scope.root.state.may_have_text(scope.span) for scope in scopes):
            notices.append(
                "Nothing there can be searched: files without text, hidden, ignored and linked files are left out."
            )
        return FolderAnswer(verified.hits, notices, min(of_root.meaning_percent for _, of_root in progress))

    def has_work(self) -> bool:
        """Return whether an index is incomplete."""
        return self._workers.has_work()

    def close(self) -> None:
        """Stop the threads and close the indexes."""
        self._workers.close()
        self._context.index.close()

    def _scan_scopes(self, jail: Jail, call: Call, path: str) -> list[RootScope]:
        """Return what to search for a path, after a scan for changes, as far as that was done in time."""
        if path:
            root, parts = jail.locate(path)
            below_root = "".join(f"/{part}" for part in parts)
            spans = [(root, span_below(below_root) if _is_directory(jail, path) else span_of_file(below_root))]
        else:
            spans = [(root, span_below("")) for root in jail.roots]
        requests = [(*self._workers.request_scan(jail, root), span) for root, span in spans]
        deadline = time.monotonic() + MAX_SCAN_SECONDS
        for indexed_root, request, _ in requests:
            indexed_root.state.wait_for_scan(request, deadline, partial(_report_progress, call, indexed_root))
        return [RootScope(indexed_root, span) for indexed_root, _, span in requests]

    def _find(self, jail: Jail, call: Call, scopes: list[RootScope], text: str, max_hits: int) -> VerifiedHits:
        context = self._context
        verifier = PassageVerifier(jail, context.index, scopes, context.limits)
        scanner = UnreadFileScanner(jail, scopes, text, context.limits, call.check)
        lookup = MultiRootLookup(context.index, scopes, scanner.load)
        embedder = context.embedder if all(scope.root.state.had_most_vectors() for scope in scopes) else None
        depth = nesting_depth(scope.root.path for scope in scopes)
        retriever = Retriever(lookup, self._limits.with_more_candidates(depth), embedder)
        max_retrieved = max_hits * _SPARE_FACTOR * depth
        query = SearchQuery("", Scope(PROJECT, span_below("")), text, max_retrieved, None, call.check)
        try:
            return verifier.verify([hit for _, hit in retriever.retrieve(query)], max_hits)
        except IndexFault as fault:
            _log.warning("search in folders: %s", fault)
            raise SearchBackendError("the index of these folders cannot answer now; try again") from None

    def _reread(self, verified: VerifiedHits, call: Call) -> None:
        """Have the files that changed read again, and wait a moment for that."""
        deadline = time.monotonic() + MAX_REREAD_SECONDS
        for root, paths in verified.changed.items():
            root.state.queue_texts(paths)
        self._workers.wake()
        for root, paths in verified.changed.items():
            root.state.wait_until_read(paths, deadline, call.check)


def nesting_depth(roots: Iterable[str]) -> int:
    """Return how many of the roots a file may be in at most: it is found in each of them, and shown once."""
    paths = [root.rstrip("/") + "/" for root in roots]
    return max(sum(path.startswith(ancestor) for ancestor in paths) for path in paths)


def _report_progress(call: Call, root: IndexedRoot) -> None:
    """Report how many files of a root are indexed; raises when the call is cancelled."""
    call.check()
    progress = root.state.progress()
    call.progress(
        progress.read, progress.total, f"{progress.read} of {progress.total} files of {root.path} are indexed"
    )


def _is_directory(jail: Jail, path: str) -> bool:
    try:
        with jail.open_directory(path):
            return True
    except NotDirectory:
        return False
