"""The session directories: what a review of a text would change, as two files that a person's editor can show.

They lie in `reviews/` of the state folder, which no agent tool can see. `future_…` is replaced in two steps around the
database's, so that after a crash a text of ours is never taken for one that a person saved.
"""

import os
import secrets
import shutil
from contextlib import suppress

from holdfast.changes.disk.files import has_writer, hash_bytes, read_all, write_new
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.syscalls import READ_FILE
from holdfast.review.model import Review

PREFIX = "mcp_review_"
_FOLDER = "reviews"
_NEXT = "next"
_MAX_NAME_BYTES = 255
_MAX_SUFFIX_BYTES = 32


class Sessions:
    """The directories of all open reviews."""

    def __init__(self, state_dir: str) -> None:
        self._folder = os.path.join(os.path.realpath(state_dir), _FOLDER)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def new_name(self) -> str:
        """Return an unguessable name."""
        return PREFIX + secrets.token_hex(16)

    def path_of(self, session: str) -> str:
        """Return the path of a session directory, which is what agents know it by."""
        return os.path.join(self._folder, session)

    def name_of(self, session_path: str) -> str | None:
        """Return the session that a path stands for, None when it cannot be one of ours."""
        folder, _, name = session_path.rpartition("/")
        return name if folder == self._folder and name.startswith(PREFIX) else None

    def current(self, review: Review) -> str:
        """Return the path of the file as it was."""
        return self._file(review, "current_")

    def future(self, review: Review) -> str:
        """Return the path of the file as it would be; a person may save another text there."""
        return self._file(review, "future_")

    def make(self, review: Review) -> None:
        """Make the directory, for a text with its two files; a failure leaves nothing behind."""
        folder = self.path_of(review.session)
        os.mkdir(folder, 0o700)
        if review.path_change is not None:
            return
        try:
            self._write(review, os.path.basename(self.current(review)), review.base or b"", 0o400)
            self._write(review, os.path.basename(self.future(review)), review.proposed, 0o600)
        except BaseException:
            self.remove(review.session)
            raise

    def prepare(self, review: Review) -> None:
        """Write the next text beside the present one, before the database has it."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path_of(review.session), _NEXT))
        self._write(review, _NEXT, review.text, 0o600)

    def publish(self, review: Review) -> None:
        """Put the prepared text in place, once the database has it."""
        os.replace(os.path.join(self.path_of(review.session), _NEXT), self.future(review))

    def restore(self, review: Review) -> None:
        """Bring a directory into agreement with the database after a crash; what a person saved is kept."""
        folder = self.path_of(review.session)
        if not os.path.isdir(folder):
            self.make(review)
        elif os.path.lexists(os.path.join(folder, _NEXT)):
            if hash_bytes(_read_content(os.path.join(folder, _NEXT)) or b"") == hash_bytes(review.text):
                self.publish(review)
            else:
                os.unlink(os.path.join(folder, _NEXT))

    def saved_version(self, review: Review) -> str | None:
        """Return a sign of the future file's last save, None when it is not there."""
        try:
            status = os.stat(self.future(review), follow_symlinks=False)
        except OSError:
            return None
        return FileVersion.from_stat(status).content_text

    def read_saved(self, review: Review, max_bytes: int) -> bytes | None:
        """Return what the future file holds; None while it is being written, is too large or is no regular file."""
        return _read_content(self.future(review), max_bytes)

    def remove(self, session: str) -> None:
        """Remove a directory; one that does not exist is no error."""
        shutil.rmtree(self.path_of(session), ignore_errors=True)

    def sweep(self, open_sessions: set[str]) -> None:
        """Remove every directory that is not one of an open session."""
        for name in os.listdir(self._folder):
            if name not in open_sessions:
                self.remove(name)

    def _file(self, review: Review, prefix: str) -> str:
        return os.path.join(self.path_of(review.session), _shorten_name(prefix + os.path.basename(review.path)))

    def _write(self, review: Review, name: str, data: bytes, mode: int) -> None:
        fd = os.open(self.path_of(review.session), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            write_new(fd, name, [data], mode=mode)
        finally:
            os.close(fd)


def _read_content(path: str, max_bytes: int | None = None) -> bytes | None:
    try:
        fd = os.open(path, READ_FILE)
    except OSError:
        return None
    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            too_large = max_bytes is not None and os.fstat(fd).st_size > max_bytes
            return None if too_large or has_writer(fd, folder) else read_all(fd)
        finally:
            os.close(folder)
    except OSError:
        return None
    finally:
        os.close(fd)


def _shorten_name(name: str) -> str:
    """Return a name that a file system can hold, with its suffix kept for the editor's sake."""
    raw = os.fsencode(name)
    if len(raw) <= _MAX_NAME_BYTES:
        return name
    stem, suffix = os.path.splitext(raw)
    if len(suffix) > _MAX_SUFFIX_BYTES:
        stem, suffix = raw, b""
    return (stem[: _MAX_NAME_BYTES - len(suffix)] + suffix).decode("utf-8", "ignore")
