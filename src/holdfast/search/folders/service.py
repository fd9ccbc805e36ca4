"""Search in the folders of this machine: what the tool calls."""

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
from holdfast.search.folders.model import PROJECT, FolderAnswer, only, within
from holdfast.search.folders.multi_root_lookup import MultiRootLookup, RootScope
from holdfast.search.folders.scan_unread_files import UnreadFileScanner
from holdfast.search.folders.verify_passages import PassageVerifier, VerifiedHits
from holdfast.search.model import Scope, SearchLimits
from holdfast.search.ports import IndexFault
from holdfast.search.retrieve import Retriever, SearchQuery
from holdfast.search.service import hit_limit, validate_query

_SETTLE_SECONDS = 3.0
_REREAD_SECONDS = 2.0
_ATTEMPTS = 3
_SPARE = 2
"""So many times the hits that are wanted are looked for, because some may turn out to be gone."""

_log = logging.getLogger(__name__)


class FolderSearch:
    """Finds passages in the caller's own roots; nothing is scanned or watched before the first search."""

    def __init__(self, workshop: IndexingContext, limits: SearchLimits) -> None:
        self._workshop, self._limits = workshop, limits
        self._lanes = FolderIndexWorkers(workshop)

    def search(self, folders: Folders, call: Call, query: str, path: str = "", limit: int = 0) -> FolderAnswer:
        """Return passages that answer a query, best first, as their files hold them now.

        `path` narrows it to a directory or a file. InvalidQuery for a query that is blank or too long, what the jail
        raises for a path, SearchBackendError when no index can answer.
        """
        validate_query(query)
        most = hit_limit(limit, self._limits)
        places = self._looked_at(folders.jail, call, path)
        checked = VerifiedHits([], {})
        for attempt in range(_ATTEMPTS):
            checked = self._found(folders.jail, call, places, query, most)
            if not checked.changed or attempt == _ATTEMPTS - 1:
                break
            self._reread(checked, call)
        progress = [(place, place.root.state.progress()) for place in places]
        notices = [notice for place, far in progress for notice in far.notices(place.root.path)]
        left_out = [one for place in places for one in place.root.state.left_out(place.span).notices(place.root.path)]
        notices += left_out
        if not left_out and not any(place.root.state.holds(place.span) for place in places):
            notices.append(
                "Nothing there can be searched: files that hold no text are left out, and hidden, ignored and linked ones."
            )
        return FolderAnswer(checked.hits, notices, min(far.meaning for _, far in progress))

    def has_work(self) -> bool:
        """Return whether an index is being made."""
        return self._lanes.has_work()

    def close(self) -> None:
        """End the lanes and close the indexes."""
        self._lanes.close()
        self._workshop.index.close()

    def _looked_at(self, jail: Jail, call: Call, path: str) -> list[RootScope]:
        """Return the places that a path means, after a look at what changed in them, or as much as time allowed."""
        if path:
            root, parts = jail.locate(path)
            below = "".join(f"/{part}" for part in parts)
            span = within(below) if _is_directory(jail, path) else only(below)
            meant = [(root, span)]
        else:
            meant = [(root, within("")) for root in jail.roots]
        asked = [(*self._lanes.ask(jail, root), span) for root, span in meant]
        until = time.monotonic() + _SETTLE_SECONDS
        for found, number, _ in asked:
            found.state.wait(number, until, partial(_tell, call, found))
        return [RootScope(found, span) for found, _, span in asked]

    def _found(self, jail: Jail, call: Call, places: list[RootScope], text: str, most: int) -> VerifiedHits:
        truth = PassageVerifier(jail, self._workshop.index, places, self._workshop.limits)
        unread = UnreadFileScanner(jail, places, text, self._workshop.limits, call.check)
        lookup = MultiRootLookup(self._workshop.index, places, unread)
        embedder = self._workshop.embedder if all(place.root.state.is_meant() for place in places) else None
        overlap = overlap_of(place.root.path for place in places)
        query = SearchQuery("", Scope(PROJECT, within("")), text, most * _SPARE * overlap, None, call.check)
        try:
            found = Retriever(lookup, self._limits.with_more_candidates(overlap), embedder).retrieve(query)
            return truth.check([hit for _, hit in found], most)
        except IndexFault as fault:
            _log.warning("search in folders: %s", fault)
            raise SearchBackendError("the index of these folders cannot answer now; try again") from None

    def _reread(self, checked: VerifiedHits, call: Call) -> None:
        """Let the files that changed be read again, and wait for that a moment."""
        until = time.monotonic() + _REREAD_SECONDS
        for root, paths in checked.changed.items():
            root.state.reread(paths)
        self._lanes.ring()
        for root, paths in checked.changed.items():
            root.state.wait_for(paths, until, call.check)


def _tell(call: Call, root: IndexedRoot) -> None:
    """Say how far a root is, for as long as the call may go on."""
    call.check()
    far = root.state.progress()
    call.progress(far.read, far.total, f"{far.read} of {far.total} files of {root.path} are indexed")


def overlap_of(roots: Iterable[str]) -> int:
    """Return how many roots a file may lie in at most: it is found in each, and shown once."""
    paths = [root.rstrip("/") + "/" for root in roots]
    return max(sum(path.startswith(other) for other in paths) for path in paths)


def _is_directory(jail: Jail, path: str) -> bool:
    try:
        with jail.open_directory(path):
            return True
    except NotDirectory:
        return False
