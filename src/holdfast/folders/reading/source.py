"""Opens a file as a source of text: its bytes through the descriptor, or the text extracted from a document."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.errors import Conflict
from holdfast.folders.access.descriptors import read_fully
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.extract import extract_document
from holdfast.text.decode import SAMPLE_BYTES, UTF8, Encoding, binary_file_error, detect_encoding
from holdfast.text.media_types import document_format

ReadAt = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class TextSource:
    """Encoded text that can be read at any offset; `first` is its beginning, which is already read.

    `size` is the size at opening, so a file that grows meanwhile still has an end.
    """

    size: int
    encoding: Encoding
    version: str
    first: bytes
    reader: ReadAt
    note: str = ""

    @property
    def start(self) -> int:
        """Return the offset of the text, after the byte order mark."""
        return len(self.encoding.bom)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset, never beyond the size at opening; fewer when the file shrank."""
        end = min(offset + length, self.size)
        if end <= len(self.first):
            return self.first[offset:end]
        return self.reader(offset, end - offset)

    def check_version(self, version: object) -> None:
        """Raise Conflict when a cursor was given for another version of the file."""
        if version != self.version:
            raise Conflict("The file changed since the cursor was given. Read it again from the start.")


def open_source(call: Call, file: OpenFile, settings: FolderSettings) -> TextSource:
    """Return a file as text; a document is extracted first. InvalidArgument when the file is binary."""
    size, version = file.status.st_size, FileVersion.from_stat(file.status).content_text
    first = read_fully(file.fd, 0, min(size, SAMPLE_BYTES))
    if document_format(first, file.display_path) is not None:
        return _open_document(call, file, settings, version)
    encoding = detect_encoding(first, complete=len(first) == size)
    if encoding is None:
        raise binary_file_error()
    return TextSource(size, encoding, version, first, lambda offset, length: read_fully(file.fd, offset, length))


def _open_document(call: Call, file: OpenFile, settings: FolderSettings, version: str) -> TextSource:
    document = extract_document(call, file, settings.max_document_bytes)
    data = document.text.encode()
    return TextSource(
        len(data), UTF8, version, data, lambda offset, length: data[offset : offset + length], document.note
    )
