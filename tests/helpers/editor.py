"""A stand-in for VS Code: a real program that writes down how it was started and then waits, as `code --wait` does."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python}
import json, os, signal, sys, time
log = {log!r}
links = []
for fd in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
    try:
        links.append(os.readlink("/proc/self/fd/" + fd))
    except OSError:
        pass
facts = {{"arguments": sys.argv[1:], "pid": os.getpid(), "open_files": links}}
with open(log + "." + str(os.getpid()), "w") as out:
    json.dump(facts, out)
os.rename(log + "." + str(os.getpid()), log + "." + str(os.getpid()) + ".done")
time.sleep(60)
"""


@dataclass(frozen=True)
class FakeCode:
    """Where the program is, and what it wrote down."""

    program: Path
    log: Path

    def starts(self) -> list[dict[str, Any]]:
        """Return how it was started, each time."""
        return [json.loads(path.read_text()) for path in sorted(self.log.parent.glob(f"{self.log.name}.*.done"))]


def fake_code(folder: Path) -> FakeCode:
    """Make the program in `bin` of a folder."""
    program = folder / "bin" / "code"
    program.parent.mkdir(exist_ok=True)
    log = folder / "code-log"
    program.write_text(_PROGRAM.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    return FakeCode(program, log)
