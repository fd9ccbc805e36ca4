"""`holdfast organise evaluate`: measures how well new files would be filed, on the files that are in folders already."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.cli.output import json_option, json_text, quantity
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.config.environment import state_dir
from holdfast.errors import InvalidArgument

if TYPE_CHECKING:
    from holdfast.folders.access.jail import Jail
    from holdfast.organiser.classify.evaluate import EvaluationReport, FolderReport

_TIMEOUT_SECONDS = 600.0
_MAX_PER_FOLDER = 200
_MAX_DOCUMENT_BYTES = 100_000_000


@click.command("evaluate", epilog="Example: holdfast organise evaluate ~/Documents")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--gate",
    default=0.6,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Lowest confidence at which a file is filed.",
)
@json_option
def evaluate_command(folder: str, gate: float, *, as_json: bool) -> None:
    """Measure how well new files would be filed into the folders below FOLDER; nothing is moved, nothing is sent.

    Each file in a folder is classified as if it were new, by the other files alone.
    """
    from holdfast.organiser.classify.cascade import evaluate_folders
    from holdfast.organiser.classify.taxonomy import categories_from_examples
    from holdfast.organiser.model import MIN_CHARS
    from holdfast.organiser.scan.directory import ScanOptions
    from holdfast.organiser.scan.survey import read_examples

    call = Call(Caller(LOCAL_USER), timeout_seconds=_TIMEOUT_SECONDS)
    with (
        explain_interruption(lambda: ["Stopped; nothing was measured, and nothing has moved."]),
        progress_bar(is_hidden=as_json) as progress,
    ):
        call.progress = progress or call.progress
        with _open_jail(os.path.abspath(folder)) as jail:
            examples = read_examples(jail, call, ".", ScanOptions(), _MAX_DOCUMENT_BYTES, _MAX_PER_FOLDER)
        readable = [example for example in examples if len(example.text) >= MIN_CHARS]
        taxonomy = categories_from_examples(readable, _MAX_PER_FOLDER)
        if len(taxonomy) < 2:
            raise InvalidArgument(f"there must be two folders with readable files to choose between: {folder!r}")
        call.progress(1, None, f"Classifying each of {quantity(len(readable), 'file')} by the others")
        report = evaluate_folders(taxonomy, gate, call.check)
    with_text = Counter(example.category for example in readable)
    without_text = Counter(example.category for example in examples if len(example.text) < MIN_CHARS)
    if as_json:
        click.echo(json_text({**asdict(report), "without_text": without_text}))
        return
    for line in _report_lines(report, with_text, without_text):
        click.echo(line)


@contextmanager
def _open_jail(folder: str) -> Iterator["Jail"]:
    from holdfast.folders.access.jail import Jail
    from holdfast.folders.access.roots import close_roots, open_roots

    roots = open_roots([folder], folder, state_dir())
    try:
        yield Jail(roots)
    finally:
        close_roots(roots)


def _report_lines(
    report: "EvaluationReport", with_text: Mapping[str, int], without_text: Mapping[str, int]
) -> Iterator[str]:
    from holdfast.text.display import display_name

    width = max(len(display_name(folder.name)) for folder in report.folders)
    yield f"{'folder':<{width}}  files            precision   recall"
    for folder in sorted(report.folders, key=lambda folder: -folder.precision):
        files = folder.files or with_text[folder.name]
        recall = f"{folder.recall:>7.1%}" if folder.files else ""
        yield f"{display_name(folder.name):<{width}}  {files:>5}  {_precision_text(folder):>19}  {recall}".rstrip()
    yield ""
    for name, count in sorted(without_text.items()):
        yield f"Not measured in {display_name(name)}: {quantity(count, 'file')} without readable text."
    yield f"{report.accuracy:.1%} of {quantity(report.files, 'file')} would be filed into their own folder."
    yield (
        f"At the gate of {report.gate:g}, {report.coverage:.1%} would be filed, {report.precision:.1%} of those correctly;\n"
        "the others would stay and be listed as uncertain."
    )


def _precision_text(folder: "FolderReport") -> str:
    if not folder.files:
        return "too few files"
    return f"{folder.precision:.1%}, review only" if folder.review_only else f"{folder.precision:.1%}"
