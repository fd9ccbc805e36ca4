"""The files that are measured: a tree of 20,000, flat folders, and single files of known size."""

from dataclasses import dataclass
from pathlib import Path

RARE_WORD = "quixotic_zephyr"
COMMON_WORD = "compute"
_LINE = "    result = compute(alpha, beta, gamma, delta)  # line {:04d} of a file like many others\n"


@dataclass(frozen=True)
class Corpus:
    """One folder that a server is given as its root."""

    root: Path
    directories: int
    files_each: int

    @property
    def tree(self) -> Path:
        """Return the deep tree, half of it Python."""
        return self.root / "tree"

    @property
    def files(self) -> int:
        """Return the number of files in the tree."""
        return self.directories * self.files_each


def grow(root: Path, directories: int, files_each: int, flat_sizes: tuple[int, ...]) -> Corpus:
    """Make the whole corpus below `root`; ten of its files hold the rare word, every file the common one."""
    corpus = Corpus(root, directories, files_each)
    body = "".join(_LINE.format(number) for number in range(12))
    step = max(1, corpus.files // 10)
    for directory in range(directories):
        folder = corpus.tree / f"package_{directory:03d}"
        folder.mkdir(parents=True)
        for number in range(files_each):
            ordinal = directory * files_each + number
            extra = f"# {RARE_WORD}\n" if ordinal % step == 0 else ""
            suffix = "py" if number % 2 == 0 else "txt"
            (folder / f"module_{number:03d}.{suffix}").write_text(f"# file {ordinal}\n{extra}{body}")
    for size in flat_sizes:
        flat = root / f"flat_{size}"
        flat.mkdir()
        for number in range(size):
            (flat / f"entry_{number:05d}.txt").touch()
    (root / "small.txt").write_text(_text(1_000))
    (root / "large.txt").write_text(_text(1_000_000))
    (root / "edit.txt").write_text(_text(1_000) + "counter = 0\n")
    return corpus


def _text(size: int) -> str:
    line = 'The quick brown fox, 1234567890, jumps over a lazy dog: "quoted" text and a tab\there.\n'
    return (line * (size // len(line) + 1))[: size - 1] + "\n"
