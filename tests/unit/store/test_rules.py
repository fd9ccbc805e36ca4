"""Jobs owed, stamps, identities of requests, entries."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.errors import InvalidArgument, PermissionDenied
from holdfast.store.listing import effective_limit, entries_from_files
from holdfast.store.model import FileSummary, IndexJob, Operation, ProjectState, StoreLimits, next_stamp, tenant_of
from holdfast.store.mutations import after_delete, after_rename, after_write, identify_request
from holdfast.store.paths import Move

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_write_owes_one_upsert_and_a_delete_one_job_per_file() -> None:
    assert after_write("/a") == [IndexJob("/a", Operation.UPSERT)]
    assert after_delete(["/a", "/b"]) == [IndexJob("/a", Operation.DELETE), IndexJob("/b", Operation.DELETE)]


def test_a_rename_owes_a_delete_for_each_source_and_an_upsert_for_each_target() -> None:
    assert after_rename([Move("/a", "/b")]) == [IndexJob("/a", Operation.DELETE), IndexJob("/b", Operation.UPSERT)]


def test_a_path_that_one_file_leaves_and_another_takes_is_upserted() -> None:
    jobs = after_rename([Move("/d/d/x", "/d/x"), Move("/d/d/d/x", "/d/d/x")])
    assert IndexJob("/d/d/x", Operation.UPSERT) in jobs
    assert len({job.path for job in jobs}) == len(jobs)


def test_time_moves_forward_even_when_the_clock_does_not() -> None:
    later = NOW + timedelta(hours=1)
    assert next_stamp(ProjectState(), NOW).at == NOW
    assert next_stamp(ProjectState(7, updated_at=NOW), later).at == later
    for clock in (NOW, NOW - timedelta(days=1)):
        stamp = next_stamp(ProjectState(7, updated_at=NOW), clock)
        assert (stamp.version, stamp.at) == (8, NOW + timedelta(microseconds=1))


def test_nobody_has_no_tenant() -> None:
    for nobody in (None, AuthContext("", "someone")):
        with pytest.raises(PermissionDenied):
            tenant_of(nobody)
    assert tenant_of(LOCAL_USER) == "local"


def test_the_same_request_has_the_same_identity_and_another_has_another() -> None:
    first, again, other = (
        identify_request("k", "write", "/a", "x"),
        identify_request("k", "write", "/a", "x"),
        identify_request("k", "write", "/a", "y"),
    )
    assert first == again
    assert first != other
    assert identify_request(None, "write") is None


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "\ud800"])
def test_a_key_that_cannot_be_kept_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgument):
        identify_request(key, "write")


def test_limits_are_the_default_for_nothing_and_never_over_the_most() -> None:
    limits = StoreLimits()
    assert [effective_limit(asked, limits) for asked in (0, -5, 2, 1024, 5000)] == [256, 256, 2, 1024, 1024]


def test_a_row_of_files_stands_for_its_directories_too() -> None:
    lines = [FileSummary(path, 1, NOW, NOW) for path in ("/d/a/b/c", "/d/x")]
    assert sorted(entries_from_files("/d", 3, lines)) == ["/d/a", "/d/a/b", "/d/x"]
