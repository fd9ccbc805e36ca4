"""The house rules that no linter knows, each a function from source text to what is wrong in it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

MAX_LINES = 400
MAX_FUNCTION_LINES_P95 = 40
VAGUE_NAMES = frozenset({"common", "helper", "helpers", "misc", "shared", "util", "utils"})
SKILLS_OF_THE_IMPURE = frozenset(
    {
        "anyio",
        "asyncio",
        "httpx2",
        "logging",
        "os",
        "pathlib",
        "random",
        "shutil",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
    }
)
UNCLEAR_NAMES = frozenset(
    {
        "asked",
        "drawn",
        "found",
        "gone",
        "heard",
        "held",
        "judged",
        "kept",
        "meant",
        "one",
        "owed",
        "said",
        "seen",
        "told",
        "with",
    }
)
"""Participles and placeholders that say nothing of the value they name."""
PARTICIPLES = frozenset(
    {
        "begun",
        "chomped",
        "chosen",
        "crowded",
        "given",
        "made",
        "mine",
        "named",
        "noticed",
        "opened",
        "peeked",
        "picked",
        "settled",
        "shown",
        "starved",
        "surveyed",
        "taken",
        "todo",
        "tried",
        "wanted",
        "wired",
    }
)
"""Further ones; a single test may use them for a line or two."""

PATH_METHODS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
THREAD_HANDOVERS = frozenset({"ProcessPoolExecutor", "ThreadPoolExecutor", "run_in_executor", "run_sync", "to_thread"})
SOURCE_PATH = re.compile(r"`(?:src/holdfast/)?((?:[a-z_]+/)*[a-z_]+\.(?:py|sql))`")
TABLE_ROW = re.compile(r"^\| `(?P<module>[^`]+)` \| (?P<line>.*) \|$", re.MULTILINE)


def modules(package: Path) -> list[tuple[str, Path]]:
    """Return every module of a package by its path from the package's folder, in order."""
    return [(path.relative_to(package).as_posix(), path) for path in sorted(package.rglob("*.py"))]


def first_line(source: str) -> str:
    """Return the first line of a module's docstring, empty when there is none."""
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def docstring_problems(source: str) -> Iterator[str]:
    """A module says in one sentence what it is for."""
    line = first_line(source)
    if not line:
        yield "has no docstring"
    elif not line.rstrip(":").endswith((".", "?", '".')):
        yield f"its first line is no sentence: {line!r}"


def length_problems(source: str) -> Iterator[str]:
    """A file does one thing."""
    lines = source.count("\n")
    if lines > MAX_LINES:
        yield f"has {lines} lines, over {MAX_LINES}"


def name_problems(module: str) -> Iterator[str]:
    """A name says what is inside."""
    for part in Path(module).with_suffix("").parts:
        if part in VAGUE_NAMES:
            yield f"is called {part!r}"


def word_problems(source: str, names: frozenset[str] = UNCLEAR_NAMES) -> Iterator[str]:
    """A function, class, parameter, variable or attribute is named after what it is."""
    for node in ast.walk(ast.parse(source)):
        name = ""
        if not isinstance(node, ast.stmt | ast.expr | ast.arg):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        if name.strip("_").lower() in names:
            yield f"names something {name!r} in line {node.lineno}"


def participle_problems(source: str) -> Iterator[str]:
    """A value is named by a noun, not by what was done to it."""
    return word_problems(source, PARTICIPLES)


def open_problems(source: str) -> Iterator[str]:
    """Files beneath a root are opened as descriptors, so what takes a path is not used; a package may read its own files."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield f"calls open() in line {node.lineno}"
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in PATH_METHODS
            and not _is_resource(node.func.value)
        ):
            yield f"calls {node.func.attr}() in line {node.lineno}"


def _is_resource(expression: ast.expr) -> bool:
    return ast.unparse(expression).startswith(("files(", "resources.files("))


def environment_problems(source: str) -> Iterator[str]:
    """Only `config` reads the environment; a confined child may clear its own."""
    tree = ast.parse(source)
    cleared = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "clear"}
    for node in ast.walk(tree):
        if id(node) in cleared:
            continue
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "getenvb"}:
            yield f"reads the environment in line {node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            for name in node.names:
                if name.name in {"environ", "environb", "getenv", "getenvb"}:
                    yield f"imports os.{name.name} in line {node.lineno}"


def onnxruntime_problems(source: str) -> Iterator[str]:
    """Only `load_onnxruntime` imports onnxruntime, because it first turns the telemetry of that library off."""
    tree = ast.parse(source)
    allowed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "load_onnxruntime"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in allowed or not isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            continue
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names += [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
        if any(name.partition(".")[0] == "onnxruntime" for name in names):
            yield f"imports onnxruntime in line {node.lineno}"


def thread_problems(source: str) -> Iterator[str]:
    """Blocking work of a tool runs in the dispatcher's threads, so nothing else hands work to a pool."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        names = [node.attr] if isinstance(node, ast.Attribute) else []
        names += [name.name for name in node.names] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name in THREAD_HANDOVERS:
                yield f"uses {name} in line {getattr(node, 'lineno', 0)}"


def purity_problems(source: str) -> Iterator[str]:
    """A module that says it is pure imports nothing that has a clock, a disk or a socket, not even in a function."""
    if not first_line(source).startswith("Pure:"):
        return
    for node in ast.walk(ast.parse(source)):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name.partition(".")[0] in SKILLS_OF_THE_IMPURE:
                yield f"says it is pure and imports {name}"


def table_problems(document: str, package: Path) -> Iterator[str]:
    """The modules page has every module with the first line of its docstring, and no other."""
    written = {match["module"]: match["line"] for match in TABLE_ROW.finditer(document)}
    real = {module: first_line(path.read_text()) for module, path in modules(package)}
    for module in sorted(real.keys() | written.keys()):
        if module not in written:
            yield f"{module} is missing in the table"
        elif module not in real:
            yield f"{module} is in the table and does not exist"
        elif written[module] != real[module].replace("|", "\\|"):
            yield f"{module} is described otherwise in the table"


def class_problems(package: Path) -> Iterator[str]:
    """A class name is defined once in the whole package, so that a reader who meets it knows which one it is."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, path in modules(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    for name, modules_with_it in sorted(places.items()):
        if len(modules_with_it) > 1:
            yield f"{name} is defined in {' and in '.join(modules_with_it)}"


def function_lengths(package: Path) -> list[int]:
    """Return the number of lines of every function, shortest first."""
    return sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for _, path in modules(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def path_problems(document: str, package: Path) -> Iterator[str]:
    """A module, statement file or folder of the source that a page names is there."""
    for name in sorted(set(SOURCE_PATH.findall(document))):
        if not any((place / name).exists() for place in (package, *_rooms(package), package.parents[1])):
            yield f"{name} does not exist"


def _rooms(package: Path) -> list[Path]:
    return [path for path in package.rglob("*") if path.is_dir()]
