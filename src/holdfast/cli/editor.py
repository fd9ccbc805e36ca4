"""Opens a text in the person's editor, byte for byte, in a file of the state folder, where no agent can reach it."""

import os
import shutil
import tempfile

import click

from holdfast.changes.disk.files import read_all, write_new
from holdfast.config.environment import state_dir
from holdfast.errors import Conflict, InvalidArgument


def edit_text(text: str, name: str) -> str:
    """Return what the person saved. Raises Conflict when nothing was saved, InvalidArgument when it is not UTF-8."""
    folder = tempfile.mkdtemp(prefix=".editing-", dir=state_dir())
    try:
        return _edit_in_folder(folder, text, f"proposal{_suffix(name)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _edit_in_folder(folder: str, text: str, name: str) -> str:
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_new(folder_fd, name, [text.encode()], mode=0o600)
        os.utime(name, ns=(0, 0), dir_fd=folder_fd)  # so that even an editor that is back at once has saved later
        click.edit(filename=os.path.join(folder, name))
        if os.stat(name, dir_fd=folder_fd).st_mtime_ns == 0:
            raise Conflict("Nothing was saved, so nothing was decided.")
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd)
        try:
            return read_all(fd).decode()
        finally:
            os.close(fd)
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"The saved text is not UTF-8: byte {error.start} is invalid.") from None
    finally:
        os.close(folder_fd)


def _suffix(name: str) -> str:
    """Return the suffix of a file's name, by which an editor recognises its type."""
    suffix = name.rpartition(".")[2]
    return f".{suffix}" if suffix != name and suffix.isalnum() and len(suffix) <= 16 else ".txt"
