"""Measure where files would be filed, on folders whose files are known to be right.

    python benchmarks/classify.py --data DIR [--draws N] [--vectors FILE] [--quick]

DIR holds one folder for each kind of text file. In each draw some files of every folder are the examples and all others
are filed: accuracy, expected calibration error, and precision and share of what passes the gate. `--vectors` keeps the
sentence vectors between runs; speeds are then measured apart, without them. It prints Markdown.
"""

import argparse
import hashlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy

from holdfast.adapters.models.minilm import OnnxEmbedder
from holdfast.adapters.models.static import StaticEmbedder, is_installed
from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.classify.evaluate import calibration_error
from holdfast.organiser.classify.starter import starter_categories
from holdfast.organiser.classify.taxonomy import merge_categories
from holdfast.organiser.model import Category, Example, Excerpt, ScannedFile
from holdfast.organiser.ports import SentenceEmbedder
from holdfast.secret import Secret

GATE = 0.6
HEAD, TAIL = 2_048, 1_024
CROWD = 58
"""Files of one kind beside two of each other."""


@dataclass(frozen=True)
class File:
    """One file of the data: its folder, and what tier 1 reads of it."""

    label: str
    scanned: ScannedFile
    excerpt: Excerpt


Draw = tuple[list[Category], list[File]]
"""A taxonomy, and the files to be filed."""


@dataclass
class VectorCache:
    """An embedder that remembers its vectors in a file."""

    inner: SentenceEmbedder
    path: Path | None
    known: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            stored = numpy.load(self.path)
            self.known = dict(zip(stored["keys"].tolist(), stored["vectors"].tolist(), strict=True))

    @property
    def model(self) -> str:
        """Return the name of the model behind."""
        return self.inner.model

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[list[float]]:
        """Return the vectors, those that are not known yet by the model."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        for digest, text in zip(keys, texts, strict=True):
            if digest not in self.known:
                self.known[digest] = list(self.inner.embed([text], key, check)[0])
        return [self.known[digest] for digest in keys]

    def save(self) -> None:
        """Write what is known."""
        if self.path is not None and self.known:
            numpy.savez(self.path, keys=numpy.array(list(self.known)), vectors=numpy.array(list(self.known.values())))


@dataclass
class Outcome:
    """What one draw gave."""

    accuracy: float
    error: float
    precision: float
    coverage: float
    strangers: float


def load(folder: str) -> list[File]:
    files = []
    for path in sorted(Path(folder).glob("*/*")):
        data = path.read_bytes()
        ends = data if len(data) <= HEAD + TAIL else data[:HEAD] + b"\n" + data[-TAIL:]
        scanned = ScannedFile(str(path), path.name, size=len(data))
        files.append(
            File(path.parent.name, scanned, Excerpt(ends.decode(errors="replace"), 1, len(ends), "text/plain"))
        )
    return files


def example(file: File) -> Example:
    return Example(file.scanned.name, file.scanned.name, file.label, file.excerpt.text, file.excerpt.content_type)


def paired(files: Sequence[File]) -> list[File]:
    """Return the files as they would lie if every folder held two kinds."""
    labels = sorted({file.label for file in files})
    pair = {label: " and ".join(labels[at // 2 * 2 : at // 2 * 2 + 2]) for at, label in enumerate(labels)}
    return [replace(file, label=pair[file.label]) for file in files]


def draw(files: Sequence[File], each: int, seed: int, strangers: int = 0) -> Draw:
    """Return the taxonomy of one draw, and the files to be filed; some labels are left out of the taxonomy."""
    chance = numpy.random.default_rng(seed)
    labels = sorted({file.label for file in files})
    left_out = set(chance.permutation(labels)[:strangers].tolist())
    example_paths: set[str] = set()
    taxonomy = []
    for label in labels:
        if label in left_out:
            continue
        labelled = [file for file in files if file.label == label]
        labelled_examples = [labelled[at] for at in chance.choice(len(labelled), each, replace=False)]
        example_paths |= {file.scanned.path for file in labelled_examples}
        taxonomy.append(Category(label, label, tuple(example(file) for file in labelled_examples)))
    return taxonomy, [file for file in files if file.scanned.path not in example_paths]


def crowd(files: Sequence[File], each: int, kind: str, *, has_folder: bool) -> Draw:
    """Return a taxonomy, and files of which most are of one kind, which may have no folder."""
    chance = numpy.random.default_rng(0)
    taxonomy, unfiled = [], []
    for label in sorted({file.label for file in files}):
        labelled = [file for file in files if file.label == label]
        order = [labelled[at] for at in chance.permutation(len(labelled))]
        if label != kind or has_folder:
            taxonomy.append(Category(label, label, tuple(example(file) for file in order[:each])))
        unfiled += order[each : each + (CROWD if label == kind else 2)]
    return taxonomy, unfiled


def judge(cascade: Cascade, taxonomy: Sequence[Category], files: Sequence[File]) -> Outcome:
    verdicts = cascade.classify([(file.scanned, file.excerpt) for file in files], taxonomy)
    names = {category.name.casefold() for category in taxonomy}
    right = [verdict.category.casefold() == file.label for verdict, file in zip(verdicts, files, strict=True)]
    known = [file.label in names for file in files]
    sure = [verdict.confidence for verdict in verdicts]
    filed = [good for good, confidence in zip(right, sure, strict=True) if confidence >= GATE]
    strange = [confidence >= GATE for confidence, belongs in zip(sure, known, strict=True) if not belongs]
    return Outcome(
        accuracy=statistics.mean(good for good, belongs in zip(right, known, strict=True) if belongs),
        error=calibration_error(sure, right),
        precision=statistics.mean(filed) if filed else 1.0,
        coverage=len(filed) / len(files),
        strangers=statistics.mean(strange) if strange else 0.0,
    )


@contextmanager
def unknown_names() -> Iterator[None]:
    """Hide what the starter list knows of the folders' names."""
    with ExitStack() as stack:
        for module in ("seeds", "text_classifier", "name_and_type"):
            stack.enter_context(patch(f"holdfast.organiser.classify.{module}.find_starter", return_value=None))
        yield


def row(
    name: str,
    cascade: Cascade,
    files: Sequence[File],
    each: int,
    draws: int,
    strangers: int = 0,
    what: str = "",
    beside: Sequence[Category] = (),
) -> None:
    cases = [draw(files, each, seed, strangers) for seed in range(draws)]
    what = what or ("names only" if not each else f"{each} examples a folder" if each > 1 else "1 example a folder")
    what += f", {strangers} kinds without a folder" if strangers else ""
    outcomes = [judge(cascade, merge_categories([*taxonomy, *beside]), unfiled) for taxonomy, unfiled in cases]
    print_row(what, name, outcomes, with_strangers=bool(strangers))


def crowd_row(name: str, cascade: Cascade, files: Sequence[File], each: int, *, has_folder: bool) -> None:
    cases = [crowd(files, each, kind, has_folder=has_folder) for kind in sorted({file.label for file in files})]
    what = f"{each} examples a folder, {CROWD} files of one kind{'' if has_folder else ' without a folder'}, 2 of each other"
    print_row(what, name, [judge(cascade, *case) for case in cases], with_strangers=not has_folder)


def print_row(what: str, name: str, outcomes: Sequence[Outcome], *, with_strangers: bool) -> None:
    accuracy = [outcome.accuracy for outcome in outcomes]
    means = [
        statistics.mean(getattr(outcome, part) for outcome in outcomes)
        for part in ("error", "precision", "coverage", "strangers")
    ]
    spread = statistics.pstdev(accuracy)
    strange = f"{means[3]:.3f}" if with_strangers else ""
    print(f"| {what} | {name} | {statistics.mean(accuracy):.3f} ± {spread:.3f} | {means[0]:.3f} | {means[1]:.3f} | {means[2]:.3f} | {strange} |", flush=True)  # fmt: skip  # noqa: E501


def speed(name: str, cascade: Cascade, files: Sequence[File], each: int) -> None:
    taxonomy, unfiled = draw(files, each, 0)
    cascade.classify([(file.scanned, file.excerpt) for file in unfiled[:20]], taxonomy)
    before = time.process_time()
    cascade.classify([(file.scanned, file.excerpt) for file in unfiled], taxonomy)
    spent = time.process_time() - before
    print(f"| {name} | {len(unfiled)} | {spent:.2f} s | {len(unfiled) / spent:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with one folder for each kind")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--quick", action="store_true", help="two draws, words alone")
    options = parser.parse_args()
    if options.data is None:
        print("classify: nothing to measure without --data DIR")
        return
    files = load(options.data)
    draws = 2 if options.quick else options.draws
    cached = VectorCache(OnnxEmbedder(), options.vectors)
    classifiers = {"words": Cascade()}
    if not options.quick:
        classifiers["words, MiniLM for the uncertain"] = Cascade(sentences=cached)
        if is_installed():
            classifiers["words and static vectors"] = Cascade(static=VectorCache(StaticEmbedder(), None))
    print(f"{len(files)} files, {len({file.label for file in files})} folders, {draws} draws, "
          f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}\n")  # fmt: skip
    print(f"| given | classifier | accuracy | ECE | precision at {GATE} | filed at {GATE} | strangers filed |")
    print("|---|---|---|---|---|---|---|")
    for each in (5, 20, 0):
        for name, cascade in classifiers.items():
            row(name, cascade, files, each, draws if each else 1)
    with unknown_names():
        for name, cascade in classifiers.items():
            row(name, cascade, files, 0, 1, what="names only, none in the starter list")
    words = classifiers["words"]
    starters = starter_categories()
    row("words", words, files, 5, draws, what="5 examples a folder, beside the starter list", beside=starters)
    row("words", words, files, 0, 1, what="the starter list alone", beside=starters)
    row("words", words, files, 1, draws)
    row("words", words, files, 1, draws, strangers=2)
    row("words", words, files, 5, draws, strangers=2)
    row("words", words, files, 20, draws, strangers=2)
    row("words", words, paired(files), 10, draws, what="10 examples a folder, two kinds in each")
    for each in (5, 20):
        crowd_row("words", words, files, each, has_folder=True)
        crowd_row("words", words, files, each, has_folder=False)
    cached.save()
    print("\n| classifier, 5 examples a folder | files | CPU | files per CPU-second |")
    print("|---|---|---|---|")
    for name, cascade in classifiers.items():
        fresh = Cascade(OnnxEmbedder() if cascade.sentences else None, StaticEmbedder() if cascade.static else None)
        speed(name, fresh, files, 5)


if __name__ == "__main__":
    main()
