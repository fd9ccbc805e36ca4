"""Runs a jq expression on a JSON or YAML file, in a confined child with limits on time, memory and results."""

import json
from dataclasses import dataclass
from typing import Literal

from holdfast.call import Call
from holdfast.errors import InvalidArgument, InvalidQuery, PayloadTooLarge, TimedOut
from holdfast.folders.access.jail import OpenFile
from holdfast.folders.children.request import ChildRequest, ask_child

MAX_RESULTS = 100
MAX_FILE_BYTES = 256 << 20
MEMORY_BYTES = 4 << 30
_MAX_EXPRESSION_CHARS = 20_000
_BYTES_PER_CHAR = 7

Format = Literal["json", "yaml"]


@dataclass(frozen=True, slots=True)
class QueryResults:
    """The first results as compact JSON; `more` when there are others, `cut` when the last one is incomplete."""

    values: tuple[str, ...]
    more: bool
    cut: bool


def run_query(
    call: Call, file: OpenFile, form: Format, expression: str, seconds: float, max_chars: int
) -> QueryResults:
    """Return the results of the expression. InvalidQuery for a bad expression or document, TimedOut, PayloadTooLarge."""
    if file.status.st_size > MAX_FILE_BYTES:
        raise PayloadTooLarge(
            f"{file.display_path} has {file.status.st_size} bytes; queries read up to {MAX_FILE_BYTES}."
        )
    if len(expression) > _MAX_EXPRESSION_CHARS:
        raise InvalidQuery(f"The expression has {len(expression)} characters; the limit is {_MAX_EXPRESSION_CHARS}.")
    request = {"form": form, "expression": expression, "max_results": MAX_RESULTS, "max_chars": max_chars}
    child_request = ChildRequest(
        "holdfast.folders.children.query_child",
        request,
        f"The query on {file.display_path}",
        seconds,
        MEMORY_BYTES,
        max_chars * _BYTES_PER_CHAR,
    )
    try:
        reply = ask_child(call, child_request, file.fd)
    except TimedOut as error:
        raise TimedOut(f"{error.message} Narrow the expression, or raise timeout.") from None
    except InvalidArgument as error:
        raise InvalidQuery(error.message) from None
    if "error" in reply.header:
        raise InvalidQuery(f"{file.display_path}: {reply.header['error']}")
    return QueryResults(tuple(json.loads(reply.payload)), reply.header["more"], reply.header["cut"])
