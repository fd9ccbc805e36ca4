"""Reads and prepares the environment: the state folder, the settings file, allowed directories. Standard library only."""

import os
import sys

STATE_DIR_VARIABLE = "HOLDFAST_STATE_DIR"
SETTINGS_VARIABLE = "HOLDFAST_SETTINGS"

VARIABLES = {
    "HOLDFAST_STATE_DIR": "State folder: journal, keys, socket. Default: the platform's data folder.",
    "HOLDFAST_SETTINGS": "The settings file. Default: settings.yml in the state folder, where there is one.",
    "HOLDFAST_KEY": "Key that `holdfast files` acts with. Default: none, which is the user of this machine.",
    "DATABASE_URL": "Database of the project store. Default: SQLite in the state folder.",
    "REDIS_URL": "Redis for limits and sealed credentials when several servers share them.",
    "ROOT_DIR": "Allowed directories when neither the command line nor the settings name any, separated by ':'.",
    "OPENAI_API_KEY": "Key of the organiser's chat model.",
    "LANGFUSE_PUBLIC_KEY": "Public key of Langfuse.",
    "LANGFUSE_SECRET_KEY": "Secret key of Langfuse.",
    "LANGFUSE_HOST": "Address of Langfuse.",
    "NO_COLOR": "Set to anything, it keeps colours out of the terminal.",
}
"""Every variable that is read, with its meaning. They are for deployment; none of them is a setting."""

SECRET_VARIABLES = frozenset({"HOLDFAST_KEY", "DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "LANGFUSE_SECRET_KEY"})
"""Variables whose value is, or may hold, a password."""


def state_dir() -> str:
    """Return the state folder of this user: HOLDFAST_STATE_DIR, else the platform's data folder."""
    path = os.environ.get(STATE_DIR_VARIABLE)
    if path:
        return os.path.abspath(path)
    data_home = os.environ.get("XDG_DATA_HOME")
    return os.path.join(data_home, "holdfast") if data_home and sys.platform != "darwin" else plain_state_dir()


def plain_state_dir() -> str:
    """Return the state folder of a program that gets none of the variables, such as one that was not started in a shell."""
    return os.path.expanduser(
        "~/Library/Application Support/holdfast" if sys.platform == "darwin" else "~/.local/share/holdfast"
    )


def variable(name: str) -> str | None:
    """Return an environment variable, None when it is unset or empty."""
    return os.environ.get(name) or None


_INHERITED = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR")


def background_environment(folder: str) -> dict[str, str]:
    """Return the environment of a background server: what any program needs, and nothing else of the client that starts it."""
    inherited = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    return {**inherited, STATE_DIR_VARIABLE: folder}


def limit_blas_threads() -> None:
    """Limit the BLAS library of numpy to one thread; call it before numpy is imported.

    Its threads spin while they wait: beside other work, scanning 100,000 vectors took 100 ms of CPU instead of 8.
    A value that the user has set stays.
    """
    for name in ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")


def disable_onnx_telemetry() -> None:
    """Keep onnxruntime from writing a device id below the home folder and from reporting to its makers.

    It reads the variable once, while it is imported, so call this before. A value that the user has set is overwritten:
    that this program reports to nobody is a promise.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def unknown_variables() -> list[str]:
    """Return the variables that begin with HOLDFAST_ and are not known, such as misspelt ones."""
    return sorted(name for name in os.environ if name.startswith("HOLDFAST_") and name not in VARIABLES)


_ROUTES = "/proc/net/route"


def default_gateways() -> list[str]:
    """Return the addresses of this machine's default routes, none where the kernel does not tell them so."""
    try:
        fd = os.open(_ROUTES, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        rows = [line.split() for line in os.read(fd, 65_536).decode().splitlines()[1:]]
    finally:
        os.close(fd)
    return [
        ".".join(str(byte) for byte in int(row[2], 16).to_bytes(4, sys.byteorder))
        for row in rows
        if len(row) > 2 and row[1] == "00000000" and row[2] != "00000000"
    ]


def state_database() -> str:
    """Return the path of the state database in the state folder."""
    return os.path.join(state_dir(), "state.db")


def root_dirs() -> list[str]:
    """Return the directories of ROOT_DIR, none when it is unset."""
    return [name for name in (variable("ROOT_DIR") or "").split(os.pathsep) if name]
