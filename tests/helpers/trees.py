"""Trees of real files, written and read back as plain dictionaries, so that a test shows before and after."""

import os
from collections.abc import Mapping
from pathlib import Path

Tree = Mapping[str, "str | bytes | Tree"]


def plant(root: Path, tree: Tree) -> Path:
    """Make files and directories under `root`; a nested mapping is a directory."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        target = root / name
        if isinstance(content, Mapping):
            plant(target, content)
        else:
            target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def harvest(root: Path) -> dict[str, bytes]:
    """Return every regular file under `root` by its relative path, links left out."""
    tree = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                tree[str(path.relative_to(root))] = path.read_bytes()
    return tree
