"""Pure: builds the answer of a pipe: an outcome for each step, all of them within one answer's budget."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from holdfast.text.budget import cut_to_budget, estimate_tokens
from holdfast.text.decode import replace_in_data
from holdfast.text.display import display_name, escape_invisible, quantity
from holdfast.tools.answer import Answer, Media, Text

_ENTRY_TOKENS = 40
_TEXT_KEYS = frozenset({"text", "more", "media"})


class StepStatus(BaseModel):
    """What every outcome of a step has; the tool list declares no more."""

    id: str
    status: Literal["ok", "error", "skipped"]


class StepOutcome(StepStatus):
    """What became of one step: skipped `because` of a failed one, `truncated` when its result was cut to fit."""

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    because: str | None = None
    truncated: bool | None = None


class StepStatuses(BaseModel):
    """What the tool list declares of the answer of mcp_pipe."""

    steps: Sequence[StepStatus]


class PipeAnswer(StepStatuses):
    """Answer of mcp_pipe: one outcome for each step, in the order asked."""

    steps: Sequence[StepOutcome]


def result_from_answer(answer: Answer) -> dict[str, Any]:
    """Return what references point into: the structured data, or the blocks of an answer that has none.

    Of those, `text` is the first text, `more` the others, and `media` the types of what is no text.
    """
    if answer.data is not None:
        dumped: dict[str, Any] = answer.data.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumped
    texts = [block.text for block in answer.blocks if isinstance(block, Text)]
    media = [block.mime_type for block in answer.blocks if isinstance(block, Media)]
    result: dict[str, Any] = {"text": texts[0]} if texts else {}
    result |= {"more": texts[1:]} if len(texts) > 1 else {}
    return result | ({"media": media} if media else {})


def build_pipe_answer(
    outcomes: Sequence[StepOutcome], answers: Mapping[str, Answer], mark: str, max_tokens: int, max_media_bytes: int
) -> Answer:
    """Return the outcomes as one answer, each as data and as the text that its tool answered.

    Results that are too much in all are cut, the largest first, and say so. `mark` begins the header of each step, so it
    must be a word that no step could know.
    """
    outcomes = [
        outcome.model_copy(update={"result": replace_in_data(outcome.result)}) if outcome.result else outcome
        for outcome in outcomes
    ]
    texts = [_as_json(outcome.result or outcome.error or {}) for outcome in outcomes]
    room = max(0, max_tokens - _ENTRY_TOKENS * len(outcomes))
    shares = share_budget([estimate_tokens(text) for text in texts], room)
    cut_outcomes = [_fit_outcome(*row) for row in zip(outcomes, texts, shares, strict=True)]
    media = _choose_media(cut_outcomes, answers, max_media_bytes)
    counts = {
        status: sum(outcome.status == status for outcome in cut_outcomes) for status in ("ok", "error", "skipped")
    }
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    blocks: list[Text | Media] = [Text(f"{quantity(len(cut_outcomes), 'step')}: {summary}.")]
    for outcome, text in zip(cut_outcomes, _step_texts(cut_outcomes, answers, mark, room), strict=True):
        blocks += [Text(text), *media.get(outcome.id, ())]
    return Answer(tuple(blocks), PipeAnswer(steps=cut_outcomes))


def _step_texts(outcomes: Sequence[StepOutcome], answers: Mapping[str, Answer], mark: str, room: int) -> Iterator[str]:
    """Yield the text of each step after a header that nothing in it can forge, cut to the step's share of the room."""
    texts = [
        "\n".join(block.text for block in answers[outcome.id].blocks if isinstance(block, Text))
        if outcome.id in answers
        else ""
        for outcome in outcomes
    ]
    shares = share_budget([estimate_tokens(text) for text in texts], room)
    for number, (outcome, text, share) in enumerate(zip(outcomes, texts, shares, strict=True), 1):
        cut_text, is_cut = cut_to_budget(text, share)
        state = f"{outcome.status}{_describe_failure(outcome)}{', cut by the token budget' if is_cut else ''}"
        yield f"[{mark} {number}/{len(outcomes)}] step {display_name(outcome.id)}: {state}\n{cut_text}".rstrip("\n")


def _describe_failure(outcome: StepOutcome) -> str:
    if outcome.because is not None:
        return f" because of step {display_name(outcome.because)}"
    if outcome.error is None:
        return ""
    message, hint = str(outcome.error["message"]), outcome.error.get("hint")
    retry = " (a retry may succeed)" if outcome.error["retryable"] else ""
    return f" {outcome.error['code']}{retry}: {escape_invisible(message)}" + (
        f" {escape_invisible(hint)}" if hint else ""
    )


def share_budget(sizes: Sequence[int], budget: int) -> list[int]:
    """Divide a budget: what is small gets all it needs, what is large an equal part of the rest."""
    shares = [0] * len(sizes)
    left, waiting = budget, len(sizes)
    for index in sorted(range(len(sizes)), key=lambda place: sizes[place]):
        shares[index] = min(sizes[index], left // waiting)
        left -= shares[index]
        waiting -= 1
    return shares


def _fit_outcome(outcome: StepOutcome, text: str, tokens: int) -> StepOutcome:
    """Return the outcome as it is, or with a result or error cut to its share of the answer."""
    if estimate_tokens(text) <= tokens:
        return outcome
    if outcome.error is not None:
        message = _cut(str(outcome.error["message"]), tokens)
        short = {"code": outcome.error["code"], "message": message, "retryable": outcome.error["retryable"]}
        return outcome.model_copy(update={"error": short, "truncated": True})
    whole = outcome.result or {}
    is_text = whole.keys() <= _TEXT_KEYS
    source = "\n".join([whole.get("text", ""), *whole.get("more", [])]) if is_text else text
    return outcome.model_copy(update={"result": {"text": _cut(source, tokens)}, "truncated": True})


def _cut(text: str, tokens: int) -> str:
    """Return the start of a text that stays within the budget when it stands in JSON, where some characters are two."""
    share = tokens
    while True:
        piece, _ = cut_to_budget(text, share)
        cost = estimate_tokens(json.dumps(piece, ensure_ascii=False))
        if cost <= tokens or not share:
            return piece
        share = min(share - 1, share * tokens // cost)


def _choose_media(outcomes: list[StepOutcome], answers: Mapping[str, Answer], max_bytes: int) -> dict[str, list[Media]]:
    """Return what is no text of each step; a step with too much of it, in all, is marked as truncated instead."""
    media_by_step: dict[str, list[Media]] = {}
    left = max_bytes
    for index, outcome in enumerate(outcomes):
        answer = answers.get(outcome.id)
        media = [block for block in answer.blocks if isinstance(block, Media)] if answer else []
        size = sum(len(block.data) for block in media)
        if size > left:
            outcomes[index] = outcome.model_copy(update={"truncated": True})
        elif media:
            left -= size
            media_by_step[outcome.id] = media
    return media_by_step


def _as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
