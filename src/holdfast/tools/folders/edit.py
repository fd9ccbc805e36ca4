"""The tools that change the content of local files. Under a rule of review each puts it before the person instead."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.call import Call
from holdfast.changes.disk.policy_gate import ReviewNeeded
from holdfast.changes.service import WriteResult
from holdfast.errors import EditRejected, HoldfastError, error_class
from holdfast.folders.finding.path_hints import MAX_HINTS, add_path_hint
from holdfast.folders.service import Folders
from holdfast.review.model import Review
from holdfast.text.budget import cut_to_budget, estimate_tokens
from holdfast.text.diff import DIFF_CUT, fence_diff, unified_diff
from holdfast.text.display import display_name
from holdfast.text.edit import APPEND, Edit
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, ExactEdit, Group, PersonNeeded, Runner, tool
from holdfast.tools.review.answers import describe_review, review_texts
from holdfast.tools.review.ask import open_review, person_needed
from holdfast.tools.review.wait import WAIT_TIMEOUT_SECONDS, wait_for_decision
from holdfast.tools.threads import Load


class WriteFile(Arguments):
    """Arguments of write_file."""

    path: str = Field(description="Path of the file to create or replace.")
    content: str = Field(description="The whole new content of the file, stored as UTF-8.")


class ReferenceEdit(Arguments):
    """One edit of edit_file, in the reference server's words."""

    old_text: str = Field(alias="oldText", description="Exact text in the file, which occurs once.")
    new_text: str = Field(alias="newText", description="Text to put in its place.")


class EditFile(Arguments):
    """Arguments of edit_file."""

    path: str = Field(description="Path of the file to edit.")
    edits: list[ReferenceEdit] = Field(min_length=1, description="The edits, applied in order, all or none.")
    dry_run: bool = Field(False, alias="dryRun", description="Whether to show the diff alone and write nothing.")


class FileEdits(Arguments):
    """The edits of one file."""

    path: str = Field(description="Path of the file to edit.")
    edits: list[ExactEdit] = Field(min_length=1, description="The edits, applied in order, all or none.")
    expected_hash: str | None = Field(None, description="SHA-256 that the file must have, else nothing is written.")


class EditFiles(Arguments):
    """Arguments of edit_files."""

    files: list[FileEdits] = Field(
        min_length=1, max_length=100, description="The files to edit, independent of one another."
    )


class FileOutcome(BaseModel):
    """The outcome of one file of edit_files; `review` is what propose_and_review answers, where a person decides on it."""

    path: str
    status: Literal["applied", "failed", "review"]
    hash: str | None = None
    change_id: str | None = None
    error: dict[str, Any] | None = None
    review: dict[str, Any] | None = None


class EditFilesAnswer(BaseModel):
    """Answer of edit_files: one outcome for each file, in the order asked."""

    files: list[FileOutcome]


class AppendText(Arguments):
    """Arguments of append_text."""

    path: str = Field(description="Path of the file to extend; created when missing.")
    content: str = Field(description="Text to add at the end, as it is.")


@tool(
    "write_file",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="On disk: write a file",
    idempotent=True,
    may_ask=True,
)
def write_file(app: App, call: Call, args: WriteFile) -> Answer:
    """On disk: create a file or replace its whole content, atomically; undo_change brings the old content back.

    For changes to a part of a file use edit_files.
    """
    folders = app.folders_of(call.caller)
    try:
        result = app.changes.write(folders, call, args.path, args.content)
    except ReviewNeeded as needed:
        propose = partial(app.reviews.agent.propose_write, folders, call, args.path, args.content)
        raise person_needed(app, call, needed, propose, args.path) from None
    return Answer.of(f"Successfully wrote to {args.path}\n{_hash_and_change(result)}", _binary_note(result, "replaced"))


@tool(
    "edit_file",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="On disk: edit a file",
    load=Load.HEAVY,
    may_ask=True,
)
def edit_file(app: App, call: Call, args: EditFile) -> Answer:
    """On disk: replace exact pieces of a text file and return the unified diff.

    Each oldText must occur exactly once; a line feed also matches CRLF. dryRun shows the diff and writes nothing.
    """
    edits = [Edit(edit.old_text, edit.new_text) for edit in args.edits]
    folders = app.folders_of(call.caller)
    try:
        result = app.changes.edit(folders, call, args.path, edits, dry_run=args.dry_run)
    except ReviewNeeded as needed:
        propose = partial(app.reviews.agent.propose, folders, call, args.path, edits)
        raise person_needed(app, call, needed, propose, args.path) from None
    diff, is_cut = cut_to_budget(
        unified_diff(result.before, result.after, args.path), folders.settings.max_answer_tokens
    )
    note = DIFF_CUT if is_cut else ""
    trail = "Dry run: nothing was written." if args.dry_run else _hash_and_change(result)
    return Answer.of(fence_diff(diff), note, trail)


@tool(
    "edit_files",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="On disk: edit several files",
    output=EditFilesAnswer,
    load=Load.HEAVY,
    may_ask=True,
)
def edit_files(app: App, call: Call, args: EditFiles) -> Answer:
    """On disk: edit several text files by exact replacement; each file is all or nothing.

    The answer has the new hash, for expected_hash of the next edit; of a failed file a hint and often its content.
    """
    outcomes: list[FileOutcome] = []
    reviews: dict[int, Review] = {}
    budget = app.settings.folders.max_answer_tokens
    for count, file in enumerate(args.files, start=1):
        call.check()
        outcome, review = _edit_one(app, call, file, with_hint=count <= MAX_HINTS)
        if review is not None:
            reviews[count - 1] = review
        budget -= _trim_error(outcome, budget)
        outcomes.append(outcome)
        call.progress(count, len(args.files), file.path)
    if reviews:
        raise PersonNeeded(partial(_wait_for_files, app, outcomes, reviews))
    if not any(outcome.status == "applied" for outcome in outcomes):
        raise _nothing_edited_error(outcomes)
    return _answer_files(outcomes)


@tool("append_text", group=Group.FILES, effect=Effect.ADD, title="On disk: append to a file", may_ask=True)
def append_text(app: App, call: Call, args: AppendText) -> Answer:
    """On disk: add text at the end of a file, in its encoding and line ends. No line break is put in between."""
    folders = app.folders_of(call.caller)
    try:
        result = app.changes.append(folders, call, args.path, args.content)
    except ReviewNeeded as needed:
        propose = partial(_propose_append, app, folders, call, args)
        raise person_needed(app, call, needed, propose, args.path) from None
    return Answer.of(
        f"Successfully appended to {args.path}\n{_hash_and_change(result)}", _binary_note(result, "was added to")
    )


def _propose_append(app: App, folders: Folders, call: Call, args: AppendText) -> Review:
    """Propose an addition; a file that is missing is proposed with it."""
    propose = partial(app.reviews.agent.propose, folders, call, args.path)
    try:
        return propose([Edit(APPEND, args.content)])
    except EditRejected as error:
        if error.details["error_type"] != "file_not_found":
            raise
    return propose([Edit("", args.content)])


async def _wait_for_files(
    app: App, outcomes: list[FileOutcome], reviews: Mapping[int, Review], call: Call, runner: Runner
) -> Answer:
    """Wait for the decisions on several files, one after the other and together no longer than on one; then answer all."""
    if any(outcome.status == "applied" for outcome in outcomes):
        call.elicit = None  # its reply may come with the same call again, which would repeat what is applied
    call.timeout_seconds = WAIT_TIMEOUT_SECONDS
    ends_at = call.elapsed() + app.reviews.settings.wait_seconds
    texts: list[str] = []
    budget = app.settings.folders.max_answer_tokens // len(reviews)
    for position, review in reviews.items():
        seconds = max(0.0, ends_at - call.elapsed())
        decided = await wait_for_decision(app.reviews, call, review, runner, seconds)
        path = outcomes[position].path
        data = await runner.in_thread(describe_review, app, decided)
        outcomes[position] = FileOutcome(path=path, status="review", review=data.model_dump(exclude_none=True))
        texts += review_texts(decided, data, path, budget)
    if len(outcomes) == 1:
        return Answer.of(*texts, data=EditFilesAnswer(files=outcomes))
    return _answer_files(outcomes, texts)


def _answer_files(outcomes: Sequence[FileOutcome], texts: Sequence[str] = ()) -> Answer:
    """Return what became of each file; `texts` are those of the files that a person decides on."""
    counts = Counter(outcome.status for outcome in outcomes)
    waiting = f" For the user to decide: {counts['review']}." if counts["review"] else ""
    lines = [f"Files edited: {counts['applied']} of {len(outcomes)}.{waiting}"]
    lines += [_outcome_line(outcome) for outcome in outcomes]
    contents = (
        f"Content of {display_name(outcome.path)}:\n{outcome.error['file_content']}"
        for outcome in outcomes
        if outcome.error is not None and "file_content" in outcome.error
    )
    return Answer.of("\n".join(lines), *texts, *contents, data=EditFilesAnswer(files=list(outcomes)))


def _edit_one(app: App, call: Call, file: FileEdits, *, with_hint: bool) -> tuple[FileOutcome, Review | None]:
    """Edit one file, or open the review that it needs; return what became of it."""
    folders = app.folders_of(call.caller)
    edits = [edit.as_edit() for edit in file.edits]
    try:
        try:
            result = app.changes.edit(folders, call, file.path, edits, expected_hash=file.expected_hash)
        except ReviewNeeded as needed:
            propose = partial(
                app.reviews.agent.propose, folders, call, file.path, edits, expected_hash=file.expected_hash
            )
            return FileOutcome(path=file.path, status="review"), open_review(app, call, needed, propose)
    except HoldfastError as error:
        call.check()
        if with_hint:
            add_path_hint(folders.jail, error)
        return FileOutcome(path=file.path, status="failed", error=error.payload()), None
    return FileOutcome(path=file.path, status="applied", hash=result.hash, change_id=result.change_id), None


def _trim_error(outcome: FileOutcome, budget: int) -> int:
    """Leave a file's content out of its error where the answer would become too long; return what it costs."""
    if outcome.error is None or "file_content" not in outcome.error:
        return 0
    cost = estimate_tokens(outcome.error["file_content"])
    if cost <= budget:
        return cost
    del outcome.error["file_content"]
    return 0


def _nothing_edited_error(outcomes: Sequence[FileOutcome]) -> HoldfastError:
    """Return the error of a call that edited no file: its code is that of the first file, its message names each."""
    lines = "\n".join(map(_outcome_line, outcomes))
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    files = [outcome.model_dump(exclude_none=True) for outcome in outcomes]
    return error_class(errors[0]["code"])(f"No file was edited.\n{lines}", files=files)


def _outcome_line(outcome: FileOutcome) -> str:
    """Return what became of a file on one line: its new hash, or why it was not edited, and by which text to match."""
    if outcome.error is not None:
        code, message, hint = outcome.error["code"], outcome.error["message"], outcome.error.get("hint", "")
        text = outcome.error.get("text_to_match")
        line = f"{display_name(outcome.path)}: {code}: {message} {hint}".rstrip()
        return line if text is None else f"{line} Text to match: {json.dumps(text, ensure_ascii=False)}"
    if outcome.review is not None:
        return f"{display_name(outcome.path)}: {outcome.review['user_action']}: not changed; see below"
    return f"{display_name(outcome.path)}: {outcome.hash} change {outcome.change_id}"


def _binary_note(result: WriteResult, verb: str) -> str:
    """Return a warning when text took the place of a file that is no text, or was added to one; empty otherwise."""
    if not result.binary_type:
        return ""
    undo = f'undo_change with change_id="{result.change_id}" brings it back.'
    return f"[This text {verb} a file that is no text ({result.binary_type}). If that was not wanted: {undo}]"


def _hash_and_change(result: WriteResult) -> str:
    return f"{result.hash}\nchange {result.change_id}"
