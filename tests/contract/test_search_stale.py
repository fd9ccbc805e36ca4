"""What a search by words finds while the index is behind: stale passages never stand in the way of live ones."""

import pytest

from holdfast.search.index import Indexer
from holdfast.search.model import SearchLimits
from tests.helpers.databases import Backend, new_caller
from tests.helpers.indexing import drain

GONE = 200


@pytest.mark.req("SE-15")
def test_many_deleted_files_that_fit_better_do_not_hide_a_live_one(backend: Backend) -> None:
    me, store = new_caller(), backend.store()
    for number in range(GONE):
        store.write(me, "p", f"/gone/{number}.txt", "anchor " * 20)
    store.write(me, "p", "/kept.txt", "an anchor among many other words about the harbour and the sea")
    drain(backend.open_queue(), Indexer(backend.open_index(), None), meaning=False)
    store.delete(me, "p", "/gone", recursive=True)
    hits = backend.search(SearchLimits()).search(me, "p", "anchor")
    assert [hit.path for hit in hits] == ["/kept.txt"]
