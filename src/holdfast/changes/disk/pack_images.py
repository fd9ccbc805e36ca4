"""Packs before-images in the background: compressed, or as the difference from the oldest content of the same path.

A difference is one run of bytes between a common beginning and a common end. So a byte appended to a large file costs a
few bytes. A packed image is read back and hashed before it takes the place of the plain one.
"""

import logging
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256

from holdfast.changes.disk.files import CHUNK_BYTES
from holdfast.changes.disk.images import Images
from holdfast.changes.model import Image
from holdfast.changes.ports import ImageTable
from holdfast.text.diff import common_ends

_log = logging.getLogger(__name__)
_LEVEL = 1
_SAMPLE_BYTES = 256 * 1024
_ROUND_SECONDS = 2.0


class ImagePacker:
    """Packs images that were not tried yet; what would not save an eighth stays as it is."""

    def __init__(self, table: ImageTable, images: Images, is_stopping: Callable[[], bool]) -> None:
        self._table = table
        self._images = images
        self._is_stopping = is_stopping
        self._replaced: list[str] = []

    def run(self) -> bool:
        """Pack for a few seconds at most; returns whether some are left. Files of the round before are removed first.

        Somebody may be about to open a file that was replaced a moment ago.
        """
        self.remove_replaced()
        stop_at = time.monotonic() + _ROUND_SECONDS
        for hash_ in self._table.list_unpacked():
            if self._is_stopping() or time.monotonic() > stop_at:
                return True
            try:
                replaced = self._table.pack(hash_, self._pack(hash_))
            except OSError as error:
                _log.warning("a before-image was not packed: %s", error.strerror)
                replaced = self._table.pack(hash_, None)
            if replaced is not None:
                self._replaced.append(replaced)
        return bool(self._replaced)

    def remove_replaced(self) -> None:
        """Remove the plain files whose images are packed now."""
        replaced, self._replaced = self._replaced, []
        self._images.remove_files(replaced)

    def _pack(self, hash_: str) -> Image | None:
        image = self._table.find(hash_)
        if image is None:
            return None
        with self._plain_file(image) as fd:
            base_hash, prefix, suffix = self._find_base(image, fd)
            middle = image.size_bytes - prefix - suffix
            sample = os.pread(fd, min(middle, _SAMPLE_BYTES), prefix)
            if base_hash is None and not _saves(len(zlib.compress(sample, _LEVEL)), len(sample)):
                return None
            packed = self._images.store_packed(hash_, _compress(fd, prefix, image.size_bytes - suffix))
        packed = replace(
            packed, size_bytes=image.size_bytes, base_hash=base_hash, prefix_bytes=prefix, suffix_bytes=suffix
        )
        if _saves(packed.stored_bytes, image.size_bytes) and self._is_readable(packed):
            return packed
        if packed.file is not None:
            self._images.remove_files([packed.file])
        return None

    def _find_base(self, image: Image, fd: int) -> tuple[str | None, int, int]:
        """Return an image that this one shares its beginning and end with, and how many bytes of each."""
        base_hash = self._table.base_for(image.hash)
        base = self._table.find(base_hash) if base_hash is not None else None
        if base is None:
            return None, 0, 0
        with self._plain_file(base) as base_fd:
            prefix, suffix = common_ends(
                partial(os.pread, fd), image.size_bytes, partial(os.pread, base_fd), base.size_bytes
            )
        if not _saves(image.size_bytes - prefix - suffix, image.size_bytes):
            return None, 0, 0
        return base.hash, prefix, suffix

    def _is_readable(self, packed: Image) -> bool:
        digest = sha256()
        for chunk in self._images.read_unchecked(packed):
            digest.update(chunk)
        return digest.hexdigest() == packed.hash

    @contextmanager
    def _plain_file(self, image: Image) -> Iterator[int]:
        """Give the bytes of an image as an open file; a temporary one has no name."""
        if image.file is not None and not image.is_packed:
            fd = os.open(os.path.join(self._images.folder, image.file), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                yield fd
            finally:
                os.close(fd)
            return
        with tempfile.TemporaryFile(dir=self._images.folder) as file:
            for chunk in self._images.read_unchecked(image):
                file.write(chunk)
            file.flush()
            yield file.fileno()


def _compress(fd: int, start: int, stop: int) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL)
    while start < stop:
        chunk = os.pread(fd, min(CHUNK_BYTES, stop - start), start)
        start += len(chunk) or stop
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()


def _saves(packed_bytes: int, plain_bytes: int) -> bool:
    return 8 * packed_bytes <= 7 * plain_bytes
