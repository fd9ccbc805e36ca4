"""The jail: every way out that is known, tried against both ways of resolving."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import (
    AccessDenied,
    HoldfastError,
    InvalidPath,
    IsDirectory,
    NotDirectory,
    NotFound,
    PermissionDenied,
)
from holdfast.folders.access import jail as jail_module
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from tests.helpers.trees import plant


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Give a root `a` beside a sibling with the same prefix, a secret, a second root and a state folder."""
    plant(
        tmp_path,
        {
            "a": {"b": {"f.txt": "inside", "deep": {"g.txt": "deep"}}, "top.txt": "top"},
            "a-secret": {"s.txt": "SECRET"},
            "second": {"t.txt": "second"},
            "state": {"agent.token": "TOKEN", "sub": {"x": "x"}},
        },
    )
    links: dict[str, str | Path] = {
        "abs_in": tmp_path / "a" / "b",
        "abs_second": tmp_path / "second" / "t.txt",
        "rel_in": "b/f.txt",
        "rel_dir": "b",
        "up_in": "b/deep/../f.txt",
        "chain": "rel_in",
        "out_abs": tmp_path / "a-secret",
        "out_rel": "../a-secret/s.txt",
        "leaves_and_returns": "../a/b/f.txt",
        "dangling_out": tmp_path / "a-secret" / "new.txt",
        "dangling_in": "b/new.txt",
        "loop": "loop",
        "proc": "/proc/self/root",
        "fd": "/proc/self/fd",
    }
    for name, target in links.items():
        (tmp_path / "a" / name).symlink_to(target)
    os.mkfifo(tmp_path / "a" / "fifo")
    return tmp_path


@pytest.fixture(params=["openat2", "walk"])
def jail(house: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jail]:
    """Give a jail over `a` and `second`, once with the kernel's resolution and once with ours."""
    if request.param == "walk":
        monkeypatch.setattr(jail_module, "has_openat2", lambda: False)
    roots = open_roots([str(house / "a"), str(house / "second")], "/", str(house / "state"))
    yield Jail(roots, [identity_of((house / "state").stat())])
    close_roots(roots)


def read(jail: Jail, path: str) -> str:
    with jail.open_file(path) as opened:
        return os.read(opened.fd, 100).decode()


def refusal(jail: Jail, path: str) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught, jail.open_file(path):
        pass
    return caught.value


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("b/f.txt", "inside"),
        ("./b//f.txt", "inside"),
        ("b/../b/f.txt", "inside"),
        ("b/deep/../../top.txt", "top"),
        ("rel_in", "inside"),
        ("rel_dir/f.txt", "inside"),
        ("up_in", "inside"),
        ("chain", "inside"),
        ("abs_in/f.txt", "inside"),
        ("abs_in/deep/g.txt", "deep"),
        ("abs_second", "second"),
    ],
)
def test_what_stays_inside_is_read(jail: Jail, path: str, content: str) -> None:
    assert read(jail, path) == content


def test_absolute_paths_into_any_root_are_read(jail: Jail, house: Path) -> None:
    assert read(jail, str(house / "a" / "top.txt")) == "top"
    assert read(jail, str(house / "second" / "t.txt")) == "second"


@pytest.mark.parametrize(
    "path",
    [
        "../a-secret/s.txt",
        "..",
        "b/../../a-secret/s.txt",
        "b/deep/../../../a-secret/s.txt",
        "out_abs/s.txt",
        "out_abs",
        "out_rel",
        "leaves_and_returns",
        "dangling_out",
        "loop",
        "proc/etc/passwd",
        "fd/0",
        "/etc/passwd",
        "/",
        "/proc/self/environ",
        "/dev/fd/0",
    ],
)
def test_what_leaves_is_denied_in_one_sentence(jail: Jail, path: str) -> None:
    error = refusal(jail, path)
    assert isinstance(error, AccessDenied)
    assert error.message == f"Access denied: {path} is outside allowed directories"


def test_a_sibling_with_the_same_prefix_is_outside(jail: Jail, house: Path) -> None:
    for path in (f"{house}/a-secret/s.txt", f"{house}/a/../a-secret/s.txt", f"{house}/A/top.txt", str(house)):
        assert isinstance(refusal(jail, path), AccessDenied)


def test_a_denial_does_not_tell_whether_the_target_exists(jail: Jail, house: Path) -> None:
    there = refusal(jail, f"{house}/a-secret/s.txt").message.replace("s.txt", "*")
    missing = refusal(jail, f"{house}/a-secret/no.txt").message.replace("no.txt", "*")
    assert there == missing


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", NotFound),
        ("missing/x", NotFound),
        ("dangling_in", NotFound),
        ("b/f.txt/x", NotDirectory),
        ("b", IsDirectory),
        ("", IsDirectory),
        (".", IsDirectory),
        ("fifo", PermissionDenied),
        ("nul\0", InvalidPath),
        ("\ud800", InvalidPath),
        ("x" * 256, InvalidPath),
        ("x/" * 2100, InvalidPath),
    ],
)
def test_what_cannot_be_read_says_why(jail: Jail, path: str, kind: type[HoldfastError]) -> None:
    assert type(refusal(jail, path)) is kind


def test_sockets_and_devices_are_refused_at_once(jail: Jail, house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.socket(socket.AF_UNIX)
    with monkeypatch.context() as inside:
        inside.chdir(house / "a")
        listener.bind("sock")
    listener.close()
    assert isinstance(refusal(jail, "sock"), PermissionDenied)
    if os.geteuid() == 0:
        os.mknod(house / "a" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        assert isinstance(refusal(jail, "null"), PermissionDenied)


def test_a_place_is_the_target_of_a_link_or_the_link_itself(jail: Jail, house: Path) -> None:
    with jail.place("chain", follow=True) as place:
        assert (place.path, place.status is not None) == (f"{house}/a/b/f.txt", True)
    with jail.place("chain", follow=False) as place:
        assert place.path == f"{house}/a/chain"
        assert place.status is not None
        assert stat.S_ISLNK(place.status.st_mode)
    with jail.place("dangling_in", follow=True) as place:
        assert (place.path, place.status) == (f"{house}/a/b/new.txt", None)


@pytest.mark.parametrize("path", ["dangling_out", "out_abs/new", "../new", "loop"])
def test_no_place_is_outside(jail: Jail, path: str) -> None:
    with pytest.raises(AccessDenied), jail.place(path, follow=True):
        pass


@pytest.mark.parametrize("path", ["", ".", "b/.."])
def test_a_root_has_no_place(jail: Jail, path: str) -> None:
    with pytest.raises(InvalidPath), jail.place(path, follow=True):
        pass


def test_spellings_of_one_place_share_their_lock(jail: Jail, house: Path) -> None:
    keys = set()
    for path in ("b/f.txt", "rel_in", "abs_in/f.txt", "b/deep/../f.txt", f"{house}/a/b/f.txt"):
        with jail.place(path, follow=True) as place:
            keys.add(place.lock_key)
    assert len(keys) == 1


@pytest.mark.parametrize(
    "path", ["state", "state/agent.token", "state/sub/x", "state/../a/top.txt", "a/into_state/sub/x"]
)
def test_the_state_folder_is_invisible_beneath_a_root(house: Path, path: str) -> None:
    (house / "a" / "into_state").symlink_to("../state")
    roots = open_roots([str(house)], "/", str(house / "state"))
    jail = Jail(roots, [identity_of((house / "state").stat())])
    assert isinstance(refusal(jail, path), NotFound)
    with pytest.raises(NotFound), jail.open_directory(path):
        pass
    close_roots(roots)


def test_nothing_leaks_a_descriptor(jail: Jail) -> None:
    def attempt(path: str) -> None:
        for follow in (True, False):
            try:
                with jail.place(path, follow=follow):
                    pass
                with jail.open_file(path):
                    pass
            except HoldfastError:
                pass

    paths = ["b/f.txt", "chain", "abs_in/f.txt", "loop", "out_rel", "b/../../x", "missing/x", "fifo", "b", "", "b/.."]
    for path in paths:
        attempt(path)
    before = len(os.listdir("/proc/self/fd"))
    for path in paths * 5:
        attempt(path)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "name",
    [
        ".holdfast-quarantine",
        ".HOLDFAST-Quarantine",
        ".holdfa\u017ft-quarantine",
        ".holdfast\u200c-quarantine",
        "\ufeff.holdfast-quarantine",
    ],
)
def test_the_quarantine_is_not_there_however_a_file_system_may_read_its_name(jail: Jail, name: str) -> None:
    for path in (name, f"b/{name}/x"):
        with pytest.raises(NotFound):
            jail.parse(path)
