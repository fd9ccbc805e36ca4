"""Calls a function in another process, in which sets of strings have another order than in this one."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_PROGRAM = """
import pickle, sys
function, arguments = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(function(*arguments)))
"""


def call_with_other_hash_seed(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function of a module returns in a new process with another PYTHONHASHSEED."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=pickle.dumps((function, arguments)),
        env=environment,
        stdout=subprocess.PIPE,
        timeout=100,
        check=True,
    )
    result: T = pickle.loads(done.stdout)
    return result
