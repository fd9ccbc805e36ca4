"""Set a checkout up: the virtual environment, the pinned packages, what tests need of npm and of the system.

`setup.py run` is what serving needs, `setup.py dev` what checking needs as well, and both build the web console.
A stamp makes the second run instant, and a lock lets two runs start at once. Standard library only: nothing is
installed when this starts.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
VENV = TOP / os.environ.get("SETUP_VENV", ".venv")
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = TOP / "requirements"
NODE = TOP / "tests" / "node"
WEB = TOP / "web"
BUILD_WEB = TOP / "scripts" / "build_web.py"
SYSTEM_PACKAGES = {
    "git": "git",
    "strace": "strace",
    "promtool": "prometheus",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "chromium-headless-shell": "chromium-headless-shell",
    "systemd-analyze": "systemd",
}
"""Programs that tests run, and the Debian package of each."""


def main() -> None:
    """Do what the one argument names."""
    steps = {
        "run": [set_up_run, set_up_web],
        "web": [set_up_web],
        "dev": [set_up_dev, set_up_node, set_up_web, set_up_system],
        "lock": [set_up_dev, lock],
    }
    step_name = sys.argv[1] if len(sys.argv) == 2 else ""
    if step_name not in steps:
        sys.exit(f"usage: setup.py {'|'.join(steps)}")
    with _lock(TOP / ".cache" / "setup.lock"):
        for step in steps[step_name]:
            step()


def set_up_run() -> None:
    """Install what serving needs."""
    _install("run")


def set_up_dev() -> None:
    """Install what serving and checking need."""
    _install("dev")


def set_up_node() -> None:
    """Install the official clients and checkers with the Node.js of the virtual environment."""
    stamp, key = NODE / "node_modules" / ".stamp", _key(NODE / "package-lock.json", NODE / "package.json")
    if _is_current(stamp, key):
        return
    _say("installing the npm packages of the tests")
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    command = [str(VENV / "bin" / "npm"), "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
    _run([*command, "--loglevel=error"], cwd=NODE, PATH=path)
    stamp.write_text(key)


def set_up_web() -> None:
    """Build the web console when its source has changed, with the Node.js of a wheel."""
    if PYTHON.exists() and _succeeds([str(PYTHON), str(BUILD_WEB), "check"]):
        return
    _install("web")
    _run([str(PYTHON), str(BUILD_WEB)])


def set_up_system() -> None:
    """Install the programs that tests run, when root on Debian; say which are missing otherwise."""
    missing = [package for program, package in SYSTEM_PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return
    if sys.platform != "linux":
        _say(f"tests that need these programs will fail here: {' '.join(missing)}")
        return
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        sys.exit(
            f"These programs are needed by the tests and missing: {' '.join(missing)}. Install them and try again."
        )
    _apt(apt, missing)


def lock() -> None:
    """Compile the pinned and hashed requirements anew, and npm's lock, without any registry address."""
    flags = ["--universal", "--python-version", "3.11", "--generate-hashes", "--upgrade", "--quiet"]
    flags += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    sources = {
        "run": ["pyproject.toml"],
        "image": ["pyproject.toml", "--extra", "otel", "--extra", "postgres", "--extra", "redis"],
        "setup": ["--group", "setup"],
        "web": ["--group", "web"],
        "dev": ["pyproject.toml", "--group", "dev", "--group", "setup"],
    }
    for name, source in sources.items():
        pins = [] if name == "run" else ["--constraint", "requirements/run.txt"]
        _run([*_uv("compile"), *source, *flags, *pins, "--output-file", f"requirements/{name}.txt"])
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    for folder in (NODE, WEB):
        (folder / "package-lock.json").unlink(missing_ok=True)
        _run([str(VENV / "bin" / "npm"), "install", "--package-lock-only", "--ignore-scripts"], cwd=folder, PATH=path)


def _install(level: str) -> None:
    requirements_file = REQUIREMENTS / f"{level}.txt"
    if any(_is_current(VENV / f".{name}.stamp", _key_of(name)) for name in _levels_holding(level)):
        return
    if not PYTHON.exists():
        _make_venv()
    _say(f"installing the pinned packages ({level})")
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet"]
    has_uv = _succeeds([*pip, "--require-hashes", "-r", str(REQUIREMENTS / "setup.txt")])
    install = _uv("install") if has_uv else pip
    _run([*install, "--require-hashes", "-r", str(requirements_file)])
    _run([*install, "--no-deps", *(["--no-build-isolation"] if has_uv else []), "--editable", str(TOP)])
    _compile()
    (VENV / f".{level}.stamp").write_text(_key_of(level))


def _levels_holding(level: str) -> list[str]:
    return ["dev"] if level == "dev" else [level, "dev"]


def _key_of(level: str) -> str:
    return _key(REQUIREMENTS / "setup.txt", REQUIREMENTS / f"{level}.txt", TOP / "pyproject.toml")


def _make_venv() -> None:
    _say(f"making {VENV.name} with Python {sys.version.split()[0]}")
    apt = shutil.which("apt-get")
    try:
        import ensurepip  # noqa: F401  Debian ships it apart from Python, so it may be missing
    except ImportError:
        if apt is None or os.geteuid() != 0:
            sys.exit("This Python has no venv module with pip. On Debian: apt-get install python3-venv.")
        _apt(apt, ["python3-venv"])
    _run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def _uv(command: str) -> list[str]:
    return [str(VENV / "bin" / "uv"), "pip", command, "--quiet", "--python", str(PYTHON)]


def _compile() -> None:
    """Write the bytecode ahead, which halves every start; some machines tell Python never to write it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = [str(path) for path in (VENV / "lib").glob("python*/site-packages")]
    command = [str(PYTHON), "-m", "compileall", "-q", "-q", "-j", "0", *places, str(TOP / "src")]
    subprocess.run(command, env=environment, check=False)


def _apt(apt: str, packages: Sequence[str]) -> None:
    _say(f"installing Debian packages: {' '.join(packages)}")
    _run([apt, "update", "-qq"])
    _run([apt, "install", "-y", "-qq", "--no-install-recommends", *packages], DEBIAN_FRONTEND="noninteractive")


def _run(command: Sequence[str], *, cwd: Path = TOP, **environment: str) -> None:
    if not _succeeds(command, cwd=cwd, **environment):
        sys.exit(f"set-up stopped: this failed: {' '.join(command)}")


def _succeeds(command: Sequence[str], *, cwd: Path = TOP, **environment: str) -> bool:
    ran = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, check=False, stdin=subprocess.DEVNULL)
    return ran.returncode == 0


def _key(*files: Path) -> str:
    digest = hashlib.sha256(sys.version.encode() + str(TOP).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _is_current(stamp: Path, key: str) -> bool:
    return stamp.exists() and stamp.read_text() == key


def _say(text: str) -> None:
    print(f"[set-up] {text}", file=sys.stderr, flush=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
