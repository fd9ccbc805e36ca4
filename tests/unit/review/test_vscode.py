"""The editor as a real program: what it is started with, byte for byte, and how it is let go."""

import json
import os
from pathlib import Path

import pytest

from holdfast.adapters.vscode import VscodePresenter
from tests.helpers.doors import is_alive, until
from tests.helpers.editor import fake_code

NAMES = [
    "a b.txt",
    "'quoted\".txt",
    "$(touch hacked).txt",
    "`touch hacked`.txt",
    "-rf",
    "--wait",
    "new\nline",
    "*;&|<>.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_reaches_the_program_as_it_is(tmp_path: Path, name: str) -> None:
    code = fake_code(tmp_path)
    current, future = tmp_path / f"current_{name}", tmp_path / f"future_{name}"
    presenter = VscodePresenter([str(code.program)])
    presenter.show("r", str(current), str(future))
    (started,) = until("the program ran", code.starts)
    assert started["arguments"] == ["--wait", "--diff", str(current), str(future)]
    presenter.end()
    assert not (tmp_path / "hacked").exists()
    assert not Path("hacked").exists()


def test_options_of_the_command_come_first(tmp_path: Path) -> None:
    code = fake_code(tmp_path)
    presenter = VscodePresenter([str(code.program), "--new-window"])
    presenter.show("r", "/x/current_a", "/x/future_a")
    (started,) = until("the program ran", code.starts)
    assert started["arguments"] == ["--new-window", "--wait", "--diff", "/x/current_a", "/x/future_a"]
    presenter.end()


def test_a_relative_path_is_never_handed_over(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absolute"):
        VscodePresenter(["true"]).show("r", "--help", "future_a")


def test_a_review_that_is_shown_is_not_opened_twice_and_ends_when_it_is_decided(tmp_path: Path) -> None:
    code = fake_code(tmp_path)
    presenter = VscodePresenter([str(code.program)])
    presenter.show("r", "/x/current_a", "/x/future_a")
    (started,) = until("the program ran", code.starts)
    presenter.show("r", "/x/current_a", "/x/future_a")
    presenter.close("r")
    until("the program ended", lambda: not is_alive(started["pid"]))
    presenter.close("r")
    assert len(code.starts()) == 1


def test_a_program_that_is_missing_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    presenter = VscodePresenter([str(tmp_path / "missing")])
    with pytest.raises(FileNotFoundError):
        presenter.show("r", "/x/current_a", "/x/future_a")
    presenter.end()


def test_the_program_gets_no_descriptor_of_ours(tmp_path: Path) -> None:
    code = fake_code(tmp_path)
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        presenter = VscodePresenter([str(code.program)])
        presenter.show("r", "/x/current_a", "/x/future_a")
        (started,) = until("the program ran", code.starts)
        assert str(tmp_path) not in json.dumps(started["open_files"])
        presenter.end()
    finally:
        os.close(held)
