"""Builds the image of the Dockerfile without any registry, runs it as its user on a read-only root, and uses it.

The base is made of Debian's packages by mmdebstrap, the image by buildah from the Dockerfile itself, so what is tried here is what
is shipped. One tool of each group is called by the official client, the server is stopped and started again, and nothing may be
lost. As root on Linux: `make container`. What cannot be had is said, and nothing is skipped.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.doors import free_port, until
from tests.helpers.remote import RemoteAgent

TOP = Path(__file__).resolve().parents[1]
CACHE = TOP / ".cache" / "container"
BASE, IMAGE = "localhost/holdfast-base", "localhost/holdfast-proof"
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
MIRROR = "http://deb.debian.org/debian"
PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
ROOT_HOME = os.path.expanduser("~root")
SOURCES = (
    "/etc/pip.conf",
    f"{ROOT_HOME}/.config/pip/pip.conf",
    "/etc/ssl/certs",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)
"""How this machine finds packages and whom it believes; the build is lent the same, and the image keeps none of it."""
_ROOT = r"""
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/data/target"
mount --bind "$3" "$1/data/state"
mount -o remount,bind,ro "$1"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for name in null zero random urandom; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
root=$1 folder=$4 user=$5
shift 5
exec chroot "$root" setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs --bounding-set -all \
    --inh-caps -all env -i -C "$folder" "$@"
"""


class Image:
    """A built image: its root directory, and what it says of how it runs."""

    def __init__(self, root: Path, config: dict[str, Any]) -> None:
        self.root = root
        self.config = config

    def command(self, volumes: Path, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs a program of the image as its user, on its root made read-only."""
        target, state = volumes / "target", volumes / "state"
        front = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM", "--propagation", "private"]
        start = ["bash", "-c", _ROOT, "bash", str(self.root), str(target), str(state), self.config["WorkingDir"]]
        return [*front, *start, self.config["User"], *self.config["Env"], *arguments]


def main() -> None:
    """Build, run, use, restart; exits with what went wrong."""
    if os.geteuid() != 0 or sys.platform != "linux":
        sys.exit("The proof builds an image from nothing and mounts its root: it needs root on Linux.")
    install_programs()
    started_at = time.monotonic()
    build()
    say(f"built in {time.monotonic() - started_at:.0f} s")
    with mounted() as image, tempfile.TemporaryDirectory(prefix="holdfast-proof-") as folder:
        volumes = make_volumes(Path(folder), image)
        check_root(image, volumes)
        with serving(image, volumes) as url:
            check_health(image, volumes)
            use_each_group(url, volumes)
        with serving(image, volumes) as url:
            find_everything_again(url, volumes)
    say("the image was built, ran as its user on a read-only root, and lost nothing in a restart")


def install_programs() -> None:
    """Install what builds, from Debian's packages."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)


def build() -> None:
    """Make the base unless it is there, and build the Dockerfile on it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    base = CACHE / "base.tar"
    if not base.exists():
        say(f"making a base of Debian {SUITE}")
        partial = CACHE / "partial.tar"
        sources = f"deb {MIRROR} {SUITE} main"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(partial), sources)
        partial.rename(base)
    (CACHE / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
    buildah("build", "--quiet", "--tag", BASE, str(CACHE))
    say("building the Dockerfile")
    mounts = [part for source, place in _mounts().items() for part in ("-v", f"{source}:{place}:ro")]
    buildah("build", "--network", "host", "--build-arg", f"BASE={BASE}", *mounts, "--tag", IMAGE, str(TOP))


def _mounts() -> dict[str, str]:
    """Return what the build is lent: configuration of pip, uv and npm, certificates, folders of packages."""
    mounts = {path: path for path in (*SOURCES, *_package_folders()) if os.path.exists(path)}
    own = {
        "uv.toml": ("/etc/uv/uv.toml", "native-tls = true\n"),
        "npmrc": (f"{ROOT_HOME}/.npmrc", f"cafile={CERTIFICATES}\naudit=false\nfund=false\n"),
    }
    for name, (place, text) in own.items():
        (CACHE / name).write_text(text)
        mounts[str(CACHE / name)] = place
    return mounts


def _package_folders() -> list[str]:
    """Return the folders of packages that pip's configuration on this machine names, none on most machines."""
    pip = [sys.executable, "-m", "pip", "config", "list"]
    text = subprocess.run(pip, capture_output=True, text=True, check=False).stdout
    words = re.split(r"['\s]", text.replace("file://", " ").replace("\\n", " "))
    tops = {"/".join(word.split("/")[:3]) for word in words if word.startswith("/")}
    return sorted(path for path in tops if os.path.isdir(path) and not path.startswith(("/etc", ROOT_HOME)))


@contextmanager
def mounted() -> Iterator[Image]:
    """Give the image's root, mounted."""
    container = buildah("from", "--pull-never", IMAGE)
    try:
        root = Path(buildah("mount", container))
        inspected = json.loads(buildah("inspect", "--type", "image", IMAGE))
        config = {**inspected["Docker"]["config"], "Env": inspected["Docker"]["config"]["Env"]}
        size = subprocess.run(["du", "-sm", str(root)], capture_output=True, text=True, check=True).stdout.split()[0]
        say(f"the image has {size} MB, its base of Debian included; it runs as {config['User']}")
        yield Image(root, config)
    finally:
        buildah("rm", container)


def make_volumes(folder: Path, image: Image) -> Path:
    """Make the two volumes as an engine does: with the owner and the mode that the image gives them."""
    for name in ("target", "state"):
        inside = image.root / "data" / name
        volume = folder / name
        volume.mkdir()
        volume.chmod(inside.stat().st_mode & 0o777)
        os.chown(volume, inside.stat().st_uid, inside.stat().st_gid)
    folder.chmod(0o755)
    (folder / "target" / "plan.md").write_text("The release is on the first of May.\n")
    os.chown(folder / "target" / "plan.md", 1000, 1000)
    return folder


def check_root(image: Image, volumes: Path) -> None:
    """See that the user is nobody special, that nothing but volumes and /tmp can be written, and that commands work."""
    script = "import os; print(os.getuid(), os.getgid(), os.access('/', os.W_OK), os.access('/opt/holdfast', os.W_OK))"
    who = inside(image, volumes, "python3", "-c", script)
    expect(who.stdout.split() == ["1000", "1000", "False", "False"], f"user and root: {who.stdout} {who.stderr}")
    expect(inside(image, volumes, "sh", "-c", "touch /x").returncode != 0, "the root can be written")
    capabilities = inside(
        image, volumes, "grep", "-E", "^(CapEff|CapBnd|NoNewPrivs)", "/proc/self/status"
    ).stdout.split()
    expect(capabilities[1::2] == ["0" * 16, "0" * 16, "1"], f"capabilities: {capabilities}")
    version = inside(image, volumes, *image.config["Entrypoint"], "--version")
    expect(version.returncode == 0, f"--version: {version.stderr}")
    say(f"any other command can be given: {version.stdout.strip()}")
    compiled = list((image.root / "opt/holdfast").rglob("holdfast/__pycache__/*.pyc"))
    expect(bool(compiled), "there is no bytecode")


def check_health(image: Image, volumes: Path) -> None:
    """See that the image's own check says healthy."""
    kind, *command = image.config["Healthcheck"]["Test"]
    expect(kind == "CMD", f"the check is no command: {kind}")
    ran = inside(image, volumes, *command)
    expect(ran.returncode == 0, f"the health check: {ran.stdout} {ran.stderr}")


@contextmanager
def serving(image: Image, volumes: Path) -> Iterator[str]:
    """Run the image's default command, on a port of its own, until the block ends; it must end within its grace."""
    port = free_port()
    arguments = [*image.config["Entrypoint"], *image.config["Cmd"], "--port", str(port)]
    with (volumes / "log").open("ab") as log:
        process = subprocess.Popen(image.command(volumes, arguments), stdout=log, stderr=log)
    facts = volumes / "state" / "server.json"

    def is_up() -> bool:
        expect(process.poll() is None, f"the server ended: {(volumes / 'log').read_text()}")
        return facts.exists() and json.loads(facts.read_text())["port"] == port

    try:
        until("the server is up", is_up, 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        begun_at = time.monotonic()
        stop = inside(image, volumes, *image.config["Entrypoint"], "stop")
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            sys.exit(f"The server did not end: {stop.stdout} {stop.stderr}")
        say(f"ended in {time.monotonic() - begun_at:.1f} s")


def use_each_group(url: str, volumes: Path) -> None:
    """Call one tool of each group as the agent does."""
    store = {"project": "notes", "path": "/a.md", "content": "The lease ends in March.\n"}
    steps = [{"id": "a", "tool": "list_directory", "arguments": {"path": "."}}]
    with RemoteAgent(url, token_of(volumes)) as agent:
        calls = {
            "core": agent.call("mcp_pipe", steps=steps),
            "files": agent.call("write_file", path="new.md", content="by the agent\n"),
            "search": agent.call("search_folders", query="when is the release"),
            "store": agent.call("file_write", **store),
            "organise": agent.call("create_organization_plan", path="."),
            "review": agent.call("list_reviews"),
        }
        for group, answer in calls.items():
            expect(not answer.is_error, f"{group}: {answer.text}")
            say(f"{group}: {answer.text.strip().splitlines()[0][:90]}")
    expect((volumes / "target" / "new.md").read_text() == "by the agent\n", "the file is not on the volume")


def find_everything_again(url: str, volumes: Path) -> None:
    """See that what was done before the restart is there, and can be undone."""
    with RemoteAgent(url, token_of(volumes)) as agent:
        stored = agent.call("file_read", project="notes", path="/a.md").ok().text
        expect("lease ends in March" in stored, f"the stored file: {stored}")
        changes = agent.call("list_changes").ok().text
        expect("new.md" in changes, f"the history: {changes}")
        hits = agent.call("file_search", project="notes", query="lease").ok().text
        expect("/a.md" in hits, f"the search: {hits}")


def token_of(volumes: Path) -> str:
    """Return the agent's token, from the volume of the state."""
    return (volumes / "state" / "agent.token").read_text().strip()


def inside(image: Image, volumes: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one program of the image to its end."""
    return subprocess.run(image.command(volumes, arguments), capture_output=True, text=True, check=False, timeout=60)


def buildah(*arguments: str) -> str:
    """Run buildah without a daemon and without namespaces that this machine may not have; return what it printed."""
    words = list(arguments)
    if words[0] == "build":
        words[1:1] = ["--isolation", "chroot", "--format", "docker", "--layers"]
    ran = subprocess.run(["buildah", *words], stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        sys.exit(f"This failed: buildah {' '.join(words)}")
    return ran.stdout.strip()


def run(*command: str) -> None:
    """Run a command to its end; exits when it fails."""
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"This failed: {' '.join(command)}")


def expect(holds: bool, text: str) -> None:
    """Exit unless it holds."""
    if not holds:
        sys.exit(f"[proof] failed: {text}")


def say(text: str) -> None:
    """Print one line of the proof."""
    print(f"[proof] {text}", flush=True)


if __name__ == "__main__":
    main()
