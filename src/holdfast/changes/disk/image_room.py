"""Limits what before-images take up on the disk: one cap, an equal share of it for each root, and what others leave."""

import os
from collections.abc import Mapping, Sequence

from holdfast.changes.model import ChangeKind, Image, Plan, RootUsage, share_of
from holdfast.changes.ports import ImageTable
from holdfast.config.settings import JournalSettings
from holdfast.errors import PayloadTooLarge, QuotaExceeded
from holdfast.observe.metrics import Metrics, Reading

_LARGEST_DEFAULT_CAP = 2_000_000_000
_LEAST_DEFAULT_CAP = 64_000_000
_PART_OF_FREE_DISK = 10
_WARN_AT = 0.8


class ImageRoom:
    """Decides whether a change may keep its before-images.

    The oldest image of a path is never removed for newer ones. Only when these fill the room of a root is a change there
    refused: its share, and beyond that what the oldest images of the other roots leave of the cap. So no root can take
    another's share, and all roots together take up at most twice the cap.
    """

    def __init__(self, table: ImageTable, folder: str, settings: JournalSettings) -> None:
        self._table = table
        self._folder = folder
        self._settings = settings

    def watch(self, metrics: Metrics) -> None:
        """Give the figures of the images, and of the disk that holds them, to the metrics."""
        metrics.watch(
            Reading.HISTORY_BYTES, lambda: float(sum(each.used_bytes for each in self._table.usage().values()))
        )
        metrics.watch(Reading.HISTORY_LIMIT_BYTES, lambda: float(self.cap_bytes))
        metrics.watch(Reading.HISTORY_FULLEST_RATIO, lambda: fullest_ratio(self._table.usage(), self.cap_bytes))
        metrics.watch(Reading.DISK_FREE_BYTES, lambda: float(_disk_bytes(self._folder)[0]))
        metrics.watch(Reading.DISK_BYTES, lambda: float(_disk_bytes(self._folder)[1]))

    @property
    def cap_bytes(self) -> int:
        """Return how many bytes all images may take up: the setting, else a part of the disk, its images counted as free."""
        return find_cap(self._settings, self._folder, self._table.usage())

    def admit(self, size_bytes: int, path: str) -> bool:
        """Return whether an image of that size can be kept; PayloadTooLarge when it cannot and must be."""
        if self.fits(size_bytes):
            return True
        if self._settings.allow_unjournalled:
            return False
        raise PayloadTooLarge(
            f"{path}: {size_bytes} bytes would have to be kept for undo; the limit is {self.cap_bytes}. "
            "Raise journal.max_bytes, or set journal.allow_unjournalled to go on without undo."
        )

    def fits(self, size_bytes: int) -> bool:
        """Return whether an image of that size is within the cap."""
        return size_bytes <= self.cap_bytes

    def has_room(self, plan: Plan, images: Sequence[Image]) -> bool:
        """Return whether a change may keep its images; QuotaExceeded when it may not and must.

        An undo may, where earlier contents of its paths are kept: what it replaces is the first to go.
        """
        usage, cap = self._table.usage(), self.cap_bytes
        needed = sum(image.size_bytes for image in images)
        if not needed or sum(each.used_bytes for each in usage.values()) + needed <= cap:
            return True
        needed = sum(image.size_bytes for image in images if self._table.find(image.hash) is None)
        oldest = usage.setdefault(plan.root_dir, RootUsage()).oldest_bytes
        if oldest + needed <= _room_of(plan.root_dir, usage, cap):
            return True
        if plan.kind is ChangeKind.UNDO and all(self._table.has_oldest(item.src_path) for item in plan.items):
            return True
        if self._settings.allow_unjournalled:
            return False
        raise QuotaExceeded(
            f"The earliest contents of files in {plan.root_dir} take up {oldest} bytes of the room for undo, they are not "
            f"removed for newer ones, and this change needs {needed} more. Nothing was changed. The person can free some "
            "room with `holdfast changes prune`, or raise journal.max_bytes."
        )

    def warnings(self) -> dict[str, str]:
        """Return a sentence for each root whose oldest images fill four fifths of its room, by root."""
        return describe_full_roots(self._table.usage(), self.cap_bytes)


def find_cap(settings: JournalSettings, folder: str, usage: Mapping[str, RootUsage]) -> int:
    """Return how many bytes the images in a folder may take up: the setting, else a part of what would be free without them."""
    if settings.max_bytes:
        return settings.max_bytes
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize + sum(each.used_bytes for each in usage.values())
    return max(_LEAST_DEFAULT_CAP, min(_LARGEST_DEFAULT_CAP, free // _PART_OF_FREE_DISK))


def describe_full_roots(usage: Mapping[str, RootUsage], cap_bytes: int) -> dict[str, str]:
    """Return a sentence for each root whose oldest images fill four fifths of its room, by root."""
    rooms = {root: max(1, _room_of(root, usage, cap_bytes)) for root in usage}
    return {
        root: f"The undo history of {root} is {min(100, 100 * used.oldest_bytes // rooms[root])} % full: the earliest "
        f"contents of its files take up {used.oldest_bytes} of {rooms[root]} bytes. When it is full, changes there are "
        "refused. `holdfast changes prune` frees some; journal.max_bytes is the limit of all folders together."
        for root, used in sorted(usage.items())
        if used.oldest_bytes >= _WARN_AT * rooms[root]
    }


def fullest_ratio(usage: Mapping[str, RootUsage], cap_bytes: int) -> float:
    """Return how much of its room the oldest images of the fullest root take up, 0 without any."""
    return max(
        (used.oldest_bytes / max(1, _room_of(root, usage, cap_bytes)) for root, used in usage.items()), default=0.0
    )


def _disk_bytes(folder: str) -> tuple[int, int]:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _room_of(root: str, usage: Mapping[str, RootUsage], cap_bytes: int) -> int:
    """Return what the oldest images of a root may take up: its own share, or what those of the others leave."""
    others = sum(used.oldest_bytes for name, used in usage.items() if name != root)
    return max(share_of(cap_bytes, len(usage)), cap_bytes - others)
