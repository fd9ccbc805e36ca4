"""The person's tools of the project store, on each database: large directories by page, saves by hash, what was deleted."""

import hashlib
from typing import Any

import pytest

from tests.helpers.console import Page, page_of
from tests.helpers.person import Person
from tests.helpers.stores import Deployment, Files

pytestmark = pytest.mark.timeout(90)


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.fixture
def person(place: Deployment) -> Person:
    """Give the person of the deployment."""
    return Person(place.house.state)


def browse(person: Person, files: Files, path: str = "", **more: Any) -> dict[str, Any]:
    return person.call("browse_project", project=files.project, path=path, **more)


def names(page: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in page["entries"]]


@pytest.mark.req("SV-40.d")
def test_a_directory_of_a_project_is_paged_and_filtered_with_its_true_total(person: Person, files: Files) -> None:
    files.write(*(f"/f{number:02}" for number in range(30)), "/a/x", "/a-b", "/Zoo/deep/y")

    page = browse(person, files, limit=4)
    assert names(page) == ["a", "Zoo", "a-b", "f00"]
    assert [entry["type"] for entry in page["entries"]] == ["directory", "directory", "file", "file"]
    assert (page["total"], page["has_more"]) == (33, True)
    assert names(browse(person, files, offset=31)) == ["f28", "f29"]
    filtered = browse(person, files, filter="F1", limit=3)
    assert (names(filtered), filtered["total"]) == (["f10", "f11", "f12"], 10)
    assert names(browse(person, files, "/Zoo")) == ["deep"]

    files("file_delete", path="/f00").ok()
    files("file_rename", from_path="/Zoo/deep/y", to_path="/b/y").ok()
    assert names(browse(person, files, limit=4)) == ["a", "b", "a-b", "f01"]
    assert person.refused("browse_project", project=files.project, path="/Zoo")["code"] == "NOT_FOUND"
    assert browse(person, Files(files.agent, f"{files.project}-none"))["total"] == 0


@pytest.mark.req("SV-40.d")
def test_a_save_replaces_the_file_that_was_opened_and_no_other(person: Person, files: Files) -> None:
    where = {"project": files.project, "path": "/notes.md"}
    created = person.call("save_stored_file", **where, text="one")
    opened = person.call("open_stored_file", **where)
    assert (opened["text"], opened["hash"]) == ("one", created["hash"])

    saved = person.call("save_stored_file", **where, text="two ünï", expected_hash=opened["hash"])
    assert saved["hash"] == digest("two ünï")
    files.replace("/notes.md", "theirs")

    conflict = person.refused("save_stored_file", **where, text="mine", expected_hash=saved["hash"])
    assert (conflict["code"], conflict["present_hash"]) == ("CONFLICT", digest("theirs"))
    assert person.refused("save_stored_file", **where, text="mine")["code"] == "CONFLICT"
    files("file_delete", path="/notes.md").ok()
    gone = person.refused("save_stored_file", **where, text="mine", expected_hash=digest("theirs"))
    assert (gone["code"], "present_hash" in gone) == ("CONFLICT", False)


@pytest.mark.req("SV-40.d")
def test_earlier_versions_are_opened_by_their_number_and_the_same_text_makes_none(person: Person, files: Files) -> None:
    where = {"project": files.project, "path": "/v"}
    first = person.call("save_stored_file", **where, text="one")
    second = person.call("save_stored_file", **where, text="two", expected_hash=first["hash"])
    person.call("save_stored_file", **where, text="two", expected_hash=second["hash"])

    (version,) = files.data("file_history", path="/v")["versions"]
    old = person.call("open_stored_file", **where, version=version["version"])
    assert (old["text"], old["hash"], old["version"]) == ("one", first["hash"], version["version"])
    assert person.refused("open_stored_file", **where, version=99)["code"] == "NOT_FOUND"


@pytest.mark.req("SV-40.d")
def test_a_deletion_takes_what_was_counted_and_comes_back_whole(person: Person, files: Files) -> None:
    files.write("/d/1", "/d/2", "/d/deep/3", "/other")
    where = {"project": files.project, "path": "/d"}
    counted = person.call("preview_stored_delete", **where)
    assert (counted["files"], counted["size_bytes"]) == (3, len("/d/1/d/2/d/deep/3"))
    files.write("/d/4")
    assert person.refused("delete_stored", **where, expected_files=3)["code"] == "CONFLICT"
    assert len(files.paths()) == 5

    deleted = person.call("delete_stored", **where, expected_files=4)["paths"]
    assert sorted(deleted) == ["/d/1", "/d/2", "/d/4", "/d/deep/3"]
    assert files.paths() == ["/other"]
    files.replace("/d/2", "newer")

    back = person.call("restore_stored", project=files.project, paths=[*deleted, "/never"])
    assert back["restored"] == 3
    assert {each["path"]: each["code"] for each in back["stayed"]} == {"/d/2": "ALREADY_EXISTS", "/never": "NOT_FOUND"}
    assert (files.text("/d/2"), files.text("/d/deep/3")) == ("newer", "/d/deep/3")


@pytest.mark.req("SV-40.d")
def test_a_tenant_browses_and_saves_what_is_its_own_alone(place: Deployment, files: Files) -> None:
    files.write("/of-the-person")
    url = place.house.url
    pages: list[Page] = [page_of(url, {"api_key": f"{files.project}-tenant-{at}"}) for at in range(2)]
    project = {"project": files.project}

    pages[0].data("save_stored_file", **project, path="/mine", text="secret")
    assert names(pages[0].data("browse_project", **project)) == ["mine"]
    assert names(pages[1].data("browse_project", **project)) == []
    assert pages[1].post("open_stored_file", **project, path="/mine").status_code == 404
    assert pages[1].post("delete_stored", **project, path="/mine", expected_files=1).status_code == 404
    assert pages[0].data("open_stored_file", **project, path="/mine")["text"] == "secret"
