"""Power cuts: three real ext4 file systems whose images are copied at the moment of the kill.

What the copy holds is what the platter would hold: all that was synced, and nothing that only memory knew. Each device
commits on its own, so every cut is judged several times: with nothing more written than was synced, and with one of the
devices having written out everything while the others had not.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.torture.changes_campaign import MEMORY, MISSED, Job, Result, check_tracer, with_faults
from tests.torture.changes_driver import Ground, Report, judge_recovery, reference, under_fire
from tests.torture.changes_judge import Moment, Run
from tests.torture.changes_mounts import clone, forget_loops, is_private, looped, mounted, sync_device
from tests.torture.changes_scenarios import SCENARIOS
from tests.torture.changes_strace import CHANGING, Point, strike, trace

DEVICES = ("one", "two", "state")
RENUMBERED = "renumbered"
VARIANTS: tuple[tuple[str, ...], ...] = ((), ("one",), ("two",), ("state",), ("one", "two", RENUMBERED))
"""Which devices had written out everything when the power went, and whether they have other numbers afterwards."""

_POOL_BYTES = 2 << 30
_IMAGE_BYTES = 24 << 20
_OPTIONS = "commit=3000,noauto_da_alloc"
_FIRST_LOOP = 100
_LOOPS = 2 * len(DEVICES) + 1


def check_power() -> None:
    """Say plainly what is missing for this part, if anything is."""
    check_tracer()
    if os.geteuid() != 0:
        raise SystemExit("power cuts need root: they mount file systems")
    for program, package in (("mkfs.xfs", "xfsprogs"), ("mkfs.ext4", "e2fsprogs")):
        if shutil.which(program) is None:
            raise SystemExit(f"power cuts need {program} (Debian package: {package})")
    if not Path("/dev/loop-control").exists():
        raise SystemExit("power cuts need loop devices, and this machine has none")


class Machine:
    """A computer with three disks: it can be switched on with any set of images, and loses power at a kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = folder / "pool"
        self._loop = _FIRST_LOOP + (os.getpid() % 4_096) * _LOOPS
        mount = folder / "mnt"
        self.mounts = {name: mount / name for name in DEVICES}
        first, second, state = (self.mounts[name] / "files" for name in DEVICES)
        self.ground = Ground(first, second, state, has_long_log=True)

    @contextmanager
    def built(self) -> Iterator["Machine"]:
        """Make the pool that images can be cloned in, and an empty image of each disk."""
        pool = self.folder / "pool.img"
        _make(pool, _POOL_BYTES, "mkfs.xfs", "-q", "-m", "reflink=1")
        with looped(pool, self._loop) as device, mounted(device, self.images, "xfs"):
            _make(self.images / "new", _IMAGE_BYTES, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0")
            yield self
        forget_loops(range(self._loop, self._loop + _LOOPS))

    @contextmanager
    def on(self, images: dict[str, Path], *, renumbered: bool = False) -> Iterator[Ground]:
        """Switch on with these images; the file systems replay their journals. Disks may get other device numbers."""
        first = self._loop + (len(DEVICES) if renumbered else 0)
        with ExitStack() as stack:
            for number, name in enumerate(DEVICES, start=1):
                device = stack.enter_context(looped(images[name], first + number))
                stack.enter_context(mounted(device, self.mounts[name], "ext4", _OPTIONS))
            yield self.ground

    def sync(self) -> None:
        """Write everything out."""
        for name in DEVICES:
            sync_device(self.mounts[name])

    def fresh(self, label: str) -> dict[str, Path]:
        """Return empty disks."""
        return {name: self.cloned(self.images / "new", f"{label}-{name}") for name in DEVICES}

    def cloned(self, image: Path, label: str) -> Path:
        """Return a copy of an image as it is now."""
        clone(image, self.images / label)
        return self.images / label

    def cut(self, live: dict[str, Path]) -> dict[tuple[str, bool], Path]:
        """Return what each disk holds at this moment, and what it would hold had it written everything out."""
        disks = {(name, False): self.cloned(live[name], f"cut-{name}") for name in DEVICES}
        for name in DEVICES:
            sync_device(self.mounts[name])
            disks[name, True] = self.cloned(live[name], f"late-{name}")
        return disks


def _make(image: Path, size_bytes: int, *command: str) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    subprocess.run([*command, str(image)], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _switched_on() -> Iterator[Machine]:
    if not is_private():
        raise SystemExit("power cuts need a mount namespace, and this process may not make one")
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, Machine(Path(folder)).built() as machine:
        yield machine


def points_of(job: Job) -> list[Point]:
    """Run a scenario once undisturbed and return every point at which a cut may find another disk than before."""
    scenario = SCENARIOS[job.scenario]
    with _switched_on() as machine:
        with machine.on(machine.fresh("reference")) as ground:
            moments = reference(scenario, ground)
        with machine.on(machine.fresh("live")) as ground:
            points = trace(under_fire(scenario, ground, moments, Report(), job.mutant), machine.folder / "trace")
    return [point for point in points if point.call in CHANGING]


def run(job: Job) -> Result:
    """Cut the power at every point of a job, and judge every variant of what the disks may hold."""
    result = Result(job)
    with _switched_on() as machine:
        with machine.on(machine.fresh("reference")) as ground:
            moments = reference(SCENARIOS[job.scenario], ground)
        for point in job.points:
            for variant, problem in _struck(machine, job, moments, point):
                result.failures.append((job.repeat(f"{point} --variant {'+'.join(variant) or 'none'}"), problem))
            result.points += 1
            result.variants += len(job.variants)
            if job.until_caught and result.failures:
                break
    return result


def _struck(machine: Machine, job: Job, moments: list[Moment], point: Point) -> Iterator[tuple[tuple[str, ...], str]]:
    live, report, scenario = machine.fresh("live"), Report(), SCENARIOS[job.scenario]
    with machine.on(live) as ground:
        child = under_fire(scenario, ground, moments, report, job.mutant)
        missed = strike(child, point, machine.folder / "trace", before=machine.sync)
        disks = machine.cut(live)
    run_report = report.read()
    if missed is not None:
        yield (), f"{MISSED}: {missed}"
        return
    for variant in job.variants:
        for problem in _judge_variant(machine, job, moments, run_report, disks, variant):
            yield variant, with_faults(problem, run_report)


def _judge_variant(
    machine: Machine,
    job: Job,
    moments: list[Moment],
    run: Run,
    disks: dict[tuple[str, bool], Path],
    variant: tuple[str, ...],
) -> list[str]:
    images = {name: machine.cloned(disks[name, name in variant], f"again-{name}") for name in DEVICES}
    with machine.on(images, renumbered=RENUMBERED in variant) as ground:
        return judge_recovery(SCENARIOS[job.scenario], ground, moments, run, job.mutant)
