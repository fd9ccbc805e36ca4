"""Builds sdist and wheel, and shows that the wheel works on a machine with Python and nothing else.

The sdist is built from the checkout, the wheel from the unpacked sdist with neither Node.js nor a compiler on PATH. A
fresh virtual environment gets the wheel and its pinned dependencies, from wheels alone; there one call of each group of
tools is made through the official client, over stdio and over HTTP. Then what was installed is measured, with each extra.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
MAX_WHEEL_BYTES = 5_000_000
COMPILERS = ("cc", "gcc", "clang", "c++", "rustc", "cargo", "go", "node", "npm")


def main() -> None:
    """Build, install, call, measure; exits at the first thing that is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python of the fresh virtual environment")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave the sdist and the wheel there")
    parser.add_argument("--no-extras", action="store_true", help="do not install and measure each extra")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as name:
        work = Path(name)
        bare = bare_path(work / "bin")
        sdist, wheel = build(work, bare)
        check_wheel(wheel)
        python = install(work / "fresh", options.python, f"{wheel}", bare)
        base = sizes(work / "fresh")
        print(f"installed without extras: {len(base)} packages, {megabytes(sum(base.values()))} of files")
        say(run([str(python.parent / "holdfast"), "--version"], bare))
        say(run([str(python), str(TOP / "scripts" / "release_probe.py")], bare))
        for extra in [] if options.no_extras else extras():
            install(work / extra, options.python, f"{wheel}[{extra}]", bare)
            more = sizes(work / extra)
            print(
                f"extra {extra}: {len(more) - len(base)} more packages, {megabytes(sum(more.values()) - sum(base.values()))}"
            )
            shutil.rmtree(work / extra)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for file in (sdist, wheel):
                shutil.copy(file, options.keep)


def bare_path(folder: Path) -> dict[str, str]:
    """Return an environment whose PATH has the everyday programs, and no compiler, no Node.js and nothing of this checkout."""
    folder.mkdir()
    for program in ("sh", "env", "uname", "git", "tar"):
        place = shutil.which(program)
        if place:
            (folder / program).symlink_to(place)
    inherited = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "HOME"))}
    environment = {**inherited, "PATH": str(folder), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
    there = [name for name in COMPILERS if shutil.which(name, path=environment["PATH"])]
    if there:
        sys.exit(f"not a clean machine: {there}")
    return environment


def build(work: Path, bare: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the sdist of this checkout, and the wheel that was made from it."""
    dist = work / "dist"
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(dist)], os.environ, cwd=TOP)
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    source = work / sdist.name.removesuffix(".tar.gz")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)], bare, cwd=source)
    (wheel,) = dist.glob("*.whl")
    print(f"sdist {megabytes(sdist.stat().st_size)}, wheel {megabytes(wheel.stat().st_size)}")
    return sdist, wheel


def check_wheel(wheel: Path) -> None:
    """See that the wheel is small, for every platform, has the console and its commit, and nothing of the checkout's tests."""
    names = zipfile.ZipFile(wheel).namelist()
    faults = []
    if wheel.stat().st_size >= MAX_WHEEL_BYTES:
        faults.append(f"it has {wheel.stat().st_size} bytes, over {MAX_WHEEL_BYTES}")
    if not wheel.name.endswith("-py3-none-any.whl"):
        faults.append(f"it is for one platform: {wheel.name}")
    faults += [
        f"{name} is missing"
        for name in ("holdfast/commit.txt", "holdfast/console/static/index.html", "holdfast/py.typed")
        if name not in names
    ]
    faults += [
        f"{name} does not belong there"
        for name in names
        if name.split("/")[0] != "holdfast" and ".dist-info/" not in name
    ]
    if faults:
        sys.exit("\n".join(["The wheel:", *faults]))


def install(folder: Path, python: str, requirement: str, bare: Mapping[str, str]) -> Path:
    """Return the Python of a new environment with a requirement, its dependencies pinned and from wheels alone."""
    run([python, "-m", "venv", "--without-pip", str(folder)], bare)
    fresh = folder / "bin" / "python"
    pins = ["--constraint", str(TOP / "requirements" / "dev.txt")]
    run(
        [
            str(BIN / "uv"),
            "pip",
            "install",
            "--quiet",
            "--python",
            str(fresh),
            "--only-binary",
            ":all:",
            *pins,
            requirement,
        ],
        bare,
    )
    return fresh


def sizes(environment: Path) -> dict[str, int]:
    """Return the bytes of each installed package, without bytecode."""
    (packages,) = environment.glob("lib/python*/site-packages")
    by_package: dict[str, int] = {}
    for info in packages.glob("*.dist-info"):
        files = [line.partition(",")[0] for line in (info / "RECORD").read_text().splitlines()]
        by_package[info.name.partition("-")[0]] = sum(
            path.stat().st_size for name in files if not name.endswith(".pyc") and (path := packages / name).is_file()
        )
    return by_package


def extras() -> list[str]:
    """Return the names of the extras."""
    return sorted(tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def run(command: list[str], environment: Mapping[str, str], cwd: Path | None = None) -> str:
    """Return what a command printed; exits with it when the command fails."""
    ran = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"this failed: {' '.join(command)}\n{ran.stdout}{ran.stderr}")
    return ran.stdout.strip()


def say(text: str) -> None:
    """Print what a step said."""
    print(text, flush=True)


def megabytes(count: int) -> str:
    """Return a size in MB."""
    return f"{count / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
