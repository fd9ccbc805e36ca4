"""A plan whose files go to another disk: copied, compared, published, and the source kept until it cannot be undone."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.changes.disk import files
from holdfast.changes.disk.files import hash_bytes
from holdfast.changes.model import Op
from holdfast.folders.access.path_syntax import QUARANTINE
from tests.helpers.agent import Agent
from tests.helpers.trees import harvest, plant
from tests.unit.changes.world import killed, moves, opened_world, seen


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Path]:
    """Give an empty folder on another device."""
    folder = Path("/dev/shm") / f"holdfast-{os.getpid()}-{tmp_path.name}"
    folder.mkdir()
    assert folder.stat().st_dev != tmp_path.stat().st_dev
    yield folder
    shutil.rmtree(folder)


@pytest.mark.req("OR-40.c")
def test_a_file_crosses_devices_with_everything_it_has_and_its_source_is_kept_out_of_sight(
    root: Path, other: Path, tmp_path: Path
) -> None:
    path = root / "a.sh"
    path.write_bytes(os.urandom(2_500_000))
    path.chmod(0o751)
    os.utime(path, ns=(5, 1_234_567_890_123_456_789))
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    data, before = path.read_bytes(), path.stat()
    with opened_world([root, other], tmp_path / "state") as world:
        plan = world.run_plan({"a.sh": str(other / "d/b.sh")})
        moved = (other / "d/b.sh").stat()
        assert moves(plan) == ["DONE"]
        assert (seen(root), (other / "d/b.sh").read_bytes()) == ({}, data)
        assert (moved.st_mode, moved.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
        assert (moved.st_uid, moved.st_gid) == (before.st_uid, before.st_gid)
        (aside,) = (item.quarantine_path for item in plan.items if item.op is Op.MOVE)
        assert aside is not None
        assert Path(aside).read_bytes() == data
        assert str(tmp_path / "state") in aside
        world.undo(plan.id)
        assert path.read_bytes() == data
        assert seen(other) == {}
        assert stat_mode(other / QUARANTINE) == 0o700


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.req("OR-40.c")
def test_extended_attributes_cross_devices(root: Path, other: Path, tmp_path: Path) -> None:
    plant(root, {"a": "1", "d": {"b": "2"}})
    for name in ("a", "d", "d/b"):
        os.setxattr(root / name, "user.note", name.encode())
    with opened_world([root, other], tmp_path / "state") as world:
        world.run_plan({"a": str(other / "a"), "d": str(other / "d")})
    kept = {name: os.getxattr(other / name, "user.note").decode() for name in ("a", "d", "d/b")}
    assert kept == {"a": "a", "d": "d", "d/b": "d/b"}


@pytest.mark.req("OR-40.d")
@pytest.mark.parametrize("act", ["sync_file", "sync_directory", "publish", "quarantine_source"])
def test_a_failed_act_voids_the_copy_and_leaves_the_source(
    root: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    plant(root, {"a": "1" * 100_000})
    (other / "d").mkdir()
    with opened_world([root, other], tmp_path / "state") as world:
        plan = world.approve(world.plan({"a": str(other / "d/a")}))
        real = getattr(files, act)
        faults = iter([OSError(5, "Input/output error")])

        def failing(*args: object) -> object:
            fault = next(faults, None)
            if fault is not None:
                raise fault
            return real(*args)

        monkeypatch.setattr(files, act, failing)
        if act == "sync_file":
            monkeypatch.setattr("holdfast.changes.disk.tree.sync_file", failing)
        done = world.execute(plan)
        assert (done.status, moves(done)) == ("FAILED", ["ERROR"])
        assert (seen(root), seen(other)) == ({"a": b"1" * 100_000}, {})
        assert world.execute(plan).status == "EXECUTED"
        assert (seen(root), seen(other)) == ({}, {"d/a": b"1" * 100_000})


@pytest.mark.req("OR-40.e")
def test_what_was_set_aside_cannot_be_seen_and_goes_after_the_undo_window(
    root: Path, other: Path, ended_state: Path
) -> None:
    plant(other, {"a.txt": "needle", "b.txt": "needle too"})
    with opened_world([root, other], ended_state) as world:
        world.run_plan({str(other / "a.txt"): "a.txt"})
        assert [path.name for path in (other / QUARANTINE).iterdir()] != []
    with Agent([other], ended_state) as agent:
        for tool, arguments in (
            ("list_directory", {"path": "."}),
            ("directory_tree", {"path": "."}),
            ("search_files", {"path": ".", "pattern": "**"}),
            ("grep_content", {"pattern": "needle"}),
            ("get_file_info", {"path": "."}),
        ):
            text = agent.call_with(tool, arguments).ok().text
            assert "quarantine" not in text
            assert "needle" not in text.replace("needle too", "").replace('"needle"', "")
        for name in (QUARANTINE, f"{QUARANTINE}/x", QUARANTINE.upper()):
            assert agent.call("list_directory", path=name).code == "NOT_FOUND"
            assert agent.call("create_directory", path=name).is_error
            assert agent.call("write_file", path=f"{name}/x", content="x").is_error
            assert agent.call("delete_file", path=name, recursive=True).is_error
    with opened_world([root, other], ended_state) as world:
        world.changes._quarantine.purge(world.changes._journal.plans, "9999")
        assert not (other / QUARANTINE).exists()
    assert (harvest(root), harvest(other)) == ({"a.txt": b"needle"}, {"b.txt": b"needle too"})


@pytest.mark.req("OR-41")
@pytest.mark.parametrize(
    ("act", "count", "when"),
    [
        ("sync_file", 2, "before"),
        ("publish", 3, "before"),
        ("publish", 3, "after"),
        ("quarantine_source", 4, "before"),
        ("quarantine_source", 4, "after"),
        ("advance", 3, "before"),
    ],
)
def test_a_killed_move_to_another_device_loses_nothing_and_is_completed(
    root: Path, other: Path, tmp_path: Path, act: str, count: int, when: str
) -> None:
    plant(root, {**{f"f{n}": f"{n}" * 5_000 for n in range(6)}, "tree": {"x": "1", "y": {"z": "2"}}})
    content = {hash_bytes(data) for data in harvest(root).values()}
    wanted = {name: str(other / "d" / name) for name in [*(f"f{n}" for n in range(6)), "tree"]}
    with opened_world([root, other], tmp_path / "state") as world:
        plan = world.approve(world.plan(wanted))
    killed(tmp_path / "state", plan, "execute", act, count, when, root, other)
    assert content <= {hash_bytes(data) for data in [*harvest(root).values(), *harvest(other).values()]} | {
        hash_bytes(path.read_bytes()) for path in (tmp_path / "state/quarantine").rglob("*") if path.is_file()
    }
    with opened_world([root, other], tmp_path / "state") as world:
        assert not [name for name in harvest(other) if ".tmp" in name]
        assert world.execute(plan).status == "EXECUTED"
        assert seen(root) == {}
        assert {hash_bytes(data) for data in seen(other).values()} == content
        world.undo(plan.id)
        assert {hash_bytes(data) for data in seen(root).values()} == content
        assert seen(other) == {}
