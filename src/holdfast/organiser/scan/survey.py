"""One pass over a folder: what is there, what is known of it, and a first look at what is not.

A file whose device, inode, size and mtime are known is not opened. What was looked at is remembered, batch by batch, so
a survey that was stopped goes on from there the next time.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.organiser.model import Excerpt, FileType, ScannedFile, SkippedFile, SkipReason
from holdfast.organiser.ports import CachedFile, FileCache
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.read import look
from holdfast.organiser.scan.walk import FolderScan


class SurveyedFile(NamedTuple):
    """A file or unit with its hash, which is empty for what is no file; `excerpt` is None when it was known before."""

    found: ScannedFile
    file_hash: str
    excerpt: Excerpt | None


@dataclass(slots=True)
class SurveyBatch:
    """A thousand entries or so of a survey."""

    files: list[SurveyedFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)


class Survey:
    """Iterate over it once; `counts`, `seen`, `looked_at` and `bytes_read` grow meanwhile."""

    def __init__(self, jail: Jail, call: Call, folder: str, options: ScanOptions, cache: FileCache) -> None:
        self._jail, self._call, self._cache = jail, call, cache
        self._scan = FolderScan(jail, call, folder, options)
        self.counts: Counter[SkipReason] = Counter()
        self.looked_at = 0
        self.bytes_read = 0

    @property
    def seen(self) -> int:
        """Return how many entries were looked at."""
        return self._scan.seen

    def __iter__(self) -> Iterator[SurveyBatch]:
        for batch in self._scan:
            files, late = self._surveyed(batch.found)
            skipped = batch.skipped + late
            self.counts.update(skip.reason for skip in skipped)
            yield SurveyBatch(files, skipped)

    def _surveyed(self, found: list[ScannedFile]) -> tuple[list[SurveyedFile], list[SkippedFile]]:
        """Return what was found with its hash, in the same order, and what must be left alone after all."""
        hashes = self._cache.hashes(found)
        if None not in hashes:
            new = tuple.__new__
            return [new(SurveyedFile, each) for each in zip(found, hashes, repeat(None))], []
        known = list(zip(found, hashes, strict=True))
        unknown = [one for one, hash_ in known if hash_ is None]
        looks = look(self._jail, self._call, unknown)
        self._cache.remember([CachedFile(each.found, each.file_hash, each.excerpt) for each in looks if each.file_hash])
        self.looked_at += sum(1 for each in looks if each.found.kind is FileType.FILE)
        self.bytes_read += sum(each.excerpt.bytes_read for each in looks)
        late, files = iter(looks), []
        for one, hash_ in known:
            each = next(late) if hash_ is None else None
            if each is None or each.skip is None:
                files.append(SurveyedFile(one, hash_ or "", None) if each is None else SurveyedFile(one, *each[1:3]))
        return files, [each.skip for each in looks if each.skip is not None]
