"""The commands against hostile names and texts: nothing of them steers the terminal, and JSON stays JSON."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.helpers.doors import House
from tests.helpers.organising import INVOICE, RECIPE
from tests.helpers.terminal import output_of
from tests.helpers.trees import Tree, plant

pytestmark = pytest.mark.timeout(240)

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x85\u202eRTL\u2066\u200e\u2028\x7f\x08"
NAME = "lo\x1b[31mose\u202e\x9b1m\u2066\r"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STORED = "invoice of " + HOSTILE + "\rand more"

TREE: Tree = {
    f"In\x1b[32mvoices\u202e{HOSTILE}": {f"i{n}\x1b[0m.txt": INVOICE.format(n) + HOSTILE + "\r" for n in range(5)},
    "Recipes": {f"cake{n}.txt": RECIPE.format(n) for n in range(5)},
    f"{NAME}a.txt": INVOICE.format(77) + HOSTILE,
    f"{NAME}b.txt": RECIPE.format(88) + HOSTILE,
    f"{NAME}c.mp4": "m",
    f"{NAME}qwx": "zz",
    "broken\x1b[7m.pdf": b"%PDF-1.4",
}


class Hostile:
    """A house whose folder has hostile names; every command's output is looked through."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house, self.folder = house, folder

    def __call__(self, *words: str) -> "CompletedProcess[str]":
        """Run a command and see that nothing in its output steers a terminal."""
        ran = self.house.run(*words, timeout=120)
        for said in (ran.stdout, ran.stderr):
            assert not STEERING.search(said), f"{words[:2]}: {said!a}"
        if "--json" in words:
            assert isinstance(json.loads(ran.stdout), dict)
        return ran

    def file(self, end: str) -> str:
        """Return the path of one of the loose files."""
        return f"{self.folder}/{NAME}{end}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    house = House(tmp_path_factory.mktemp("hostile"))
    house.settings("settings: {server: {port: 0}, mcp: {files: {search: {embedder: {kind: none}}}}}\n")
    yield Hostile(house, plant(house.root / "ro\x1b[31mot\u202e\r2", TREE))
    house.run("stop")


@pytest.mark.req("OR-51.d")
def test_no_name_steers_the_terminal_from_a_plan(hostile: Hostile) -> None:
    folder = str(hostile.folder)
    assert hostile("organise", "scan", folder).returncode == 0
    for words in (("show", "--all"), ("list",), ("explain", hostile.file("a.txt")), ("evaluate", folder)):
        assert hostile("organise", *words).returncode == 0, words
        assert hostile("organise", *words, "--json").returncode == 0, words
    assert hostile("organise", "move", "", hostile.file("qwx"), "Od\x1b[31md").returncode in (0, 2)
    code = json.loads(hostile("organise", "show", "--json").stdout)["code"]
    assert hostile("organise", "approve", "", code, "--yes").returncode == 0
    assert hostile("organise", "execute").returncode == 0
    plant(hostile.folder, {f"{NAME}a.txt": "newer", f"{NAME}b.txt": "newer"})
    partly = hostile("organise", "undo")
    assert (partly.returncode, "2 files stayed:" in partly.stdout) == (1, True)
    assert hostile("organise", "undo").returncode == 1


@pytest.mark.req("OR-51.d", "SE-50.j")
def test_no_passage_steers_the_terminal(hostile: Hostile) -> None:
    for more in ((), ("--full",), ("--json",)):
        assert hostile("search", "invoice amount", str(hostile.folder), "--wait", *more).returncode == 0
    source = hostile.folder / f"{NAME}stored"
    source.write_text(STORED)
    assert hostile("files", "put", "-p", "notes", "/e.txt", str(source)).returncode == 0
    for verb in (("search", "invoice"), ("history", "-p", "notes", "/e.txt"), ("ls", "-p", "notes"), ("projects",)):
        assert hostile("files", *verb).returncode == 0, verb
        assert hostile("files", *verb, "--json").returncode == 0, verb
    raw = hostile.house.run_bytes("files", "cat", "-p", "notes", "/e.txt")
    assert raw.stdout.decode() == STORED, "what is not a terminal gets every byte"
    seen = output_of(hostile.house.state, "files", "cat", "-p", "notes", "/e.txt").decode().replace("\r\n", "\n")
    assert seen.startswith(r"invoice of \x1b]0;owned\x07"), seen
    assert not STEERING.search(seen)


@pytest.mark.req("OR-51.d", "OR-51.e")
def test_no_error_steers_the_terminal(hostile: Hostile) -> None:
    missing = f"{hostile.folder}/no\x1b[31m\u202e\r"
    wrong: Sequence[Sequence[str]] = (
        ("organise", "explain", missing),
        ("organise", "scan", missing),
        ("organise", "show", "zz\x1b[31m"),
        ("organise", "no\x1b[31m"),
        ("search", "x", missing),
        ("search", " ", str(hostile.folder)),
        ("files", "cat", "-p", "no\x1b[31m", "/e\x1b[31m\x9b"),
        ("files", "put", "-p", "notes", "/e", missing),
        ("review", "show", "zz\x1b[31m"),
        ("keys", "revoke", "zz\x1b[31m"),
        ("config", "check", "--settings", missing),
    )
    for words in wrong:
        assert hostile(*words).returncode in (1, 2, 13), words


@pytest.mark.req("OR-51.e")
@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("organise", "show", "ffff"), "NOT_FOUND", 1),
        (("organise", "scan", "/nowhere"), "INVALID_ARGUMENT", 2),
        (("files", "cat", "-p", "nowhere", "/a"), "NOT_FOUND", 1),
        (("review", "show", "ffff"), "NOT_FOUND", 1),
        (("search", " ", "/tmp"), "INVALID_QUERY", 2),
    ],
)
def test_with_json_an_error_is_json_on_stdout_and_words_on_stderr(
    hostile: Hostile, words: tuple[str, ...], code: str, status: int
) -> None:
    ran = hostile(*words, "--json")
    error = json.loads(ran.stdout)["error"]
    assert (ran.returncode, error["code"], error["retryable"]) == (status, code, False)
    assert error["message"].split("\n")[0] in ran.stderr
