"""Makes the file of a database, readable by its owner alone, without ever opening one that is there.

The locks of a file belong to the process: closing any descriptor of it lets go of all that SQLite holds there. Another
process that leaves the database then believes to be the last one, and removes the log that is still written to.
"""

import os
from secrets import token_hex


def make_private(path: str) -> None:
    """Make an empty file at a path, unless something is there. A disk without hard links gets it by a rename."""
    if os.path.exists(path):
        return
    new = f"{path}.{token_hex(8)}.new"
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        os.link(new, path)
    except FileExistsError:
        os.unlink(new)
    except OSError:
        os.rename(new, path)
    else:
        os.unlink(new)
