"""The environment places a deployment and sets nothing else."""

import sys
from pathlib import Path

import pytest

from holdfast.config import environment
from holdfast.config.load import load


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_the_state_folder_is_named_or_the_platforms_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert environment.state_dir() == str(tmp_path / "holdfast")

    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path / "mine"))
    assert environment.state_dir() == str(tmp_path / "mine")


def test_the_state_database_lies_in_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1/holdfast")

    assert environment.state_database() == str(tmp_path / "state.db")


def test_root_dir_may_name_several(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.root_dirs() == []
    monkeypatch.setenv("ROOT_DIR", "/a:/b")
    assert environment.root_dirs() == ["/a", "/b"]


def test_a_misspelt_variable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SETTNGS", "x")

    assert environment.unknown_variables() == ["HOLDFAST_SETTNGS"]


def test_no_variable_changes_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path))
    before = load().settings
    for name in (
        "PORT",
        "HOLDFAST_PORT",
        "SETTINGS__SERVER__PORT",
        "settings.mcp.files.max_file_bytes",
        "MAX_FILE_BYTES",
    ):
        monkeypatch.setenv(name, "1")

    assert load().settings == before


def test_the_default_gateways_are_those_of_the_kernels_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def row(interface: str, destination: bytes, gateway: bytes) -> str:
        words = [f"{int.from_bytes(address, sys.byteorder):08X}" for address in (destination, gateway)]
        return f"{interface}\t{words[0]}\t{words[1]}\t0003\t0\t0\t0\t00000000\t0\t0\t0"

    nowhere = bytes(4)
    rows = [
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
        row("eth0", nowhere, bytes([172, 17, 0, 1])),
        row("eth0", bytes([172, 17, 0, 0]), nowhere),
        row("tun0", nowhere, nowhere),
    ]
    (tmp_path / "route").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(environment, "_ROUTES", str(tmp_path / "route"))
    assert environment.default_gateways() == ["172.17.0.1"]
    monkeypatch.setattr(environment, "_ROUTES", str(tmp_path / "missing"))
    assert environment.default_gateways() == []
