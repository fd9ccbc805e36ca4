"""What a scan has to tell since it was last asked, and how often it left something alone, by reason."""

import os
from collections import Counter
from dataclasses import dataclass, field

from holdfast.organiser.model import FileType, ScannedFile, SkippedFile, SkipReason

BATCH = 1_000


@dataclass(slots=True)
class ScanBatch:
    """What was found and what was left alone since the batch before."""

    found: list[ScannedFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.found) + len(self.skipped)


@dataclass(slots=True)
class ScanRecorder:
    """The running account of one scan; `base` is the absolute path of the scanned folder, ending in `/`."""

    base: str
    batch: ScanBatch = field(default_factory=ScanBatch)
    counts: Counter[SkipReason] = field(default_factory=Counter)
    seen: int = 0
    devices_with_blocks: set[int] = field(default_factory=set)

    def add(self, found: ScannedFile) -> None:
        """Tell of something that may be moved."""
        self.batch.found.append(found)
        self.seen += 1

    def leave(self, relative: str, reason: SkipReason, detail: str = "") -> None:
        """Tell of something that is left alone."""
        self.batch.skipped.append(SkippedFile(relative, reason, detail))
        self.counts[reason] += 1
        self.seen += 1

    def fail(self, relative: str, error: OSError) -> None:
        """Tell of something that could not be looked at."""
        self.leave(relative, SkipReason.UNREADABLE, error.strerror or "")

    def look(self, relative: str, status: os.stat_result, kind: FileType) -> ScannedFile:
        """Return an entry as it is found."""
        return ScannedFile(
            self.base + relative,
            relative,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_dev,
            status.st_ino,
            kind,
        )

    def is_full(self) -> bool:
        """Return whether there is enough to hand over."""
        return len(self.batch) >= BATCH

    def take(self) -> ScanBatch:
        """Hand over what there is and begin anew."""
        full, self.batch = self.batch, ScanBatch()
        return full
