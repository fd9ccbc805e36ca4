"""Runs one tool call and returns its result in the JSON of the protocol, without importing the SDK."""

from typing import Any

from holdfast.auth.context import Caller
from holdfast.call import Elicit, InputNeeded, ProgressSink
from holdfast.errors import HoldfastError
from holdfast.tools.dispatch import Dispatcher
from holdfast.transport.mcp import wire


async def run_tool(
    dispatcher: Dispatcher,
    caller: Caller,
    name: str,
    arguments: dict[str, Any],
    progress: ProgressSink | None,
    elicit: Elicit | None = None,
) -> dict[str, Any]:
    """Run one tool and return the result of `tools/call`; an error is a result too, and so is a question to the person."""
    try:
        return wire.answer_result(await dispatcher.call(caller, name, arguments, progress, elicit))
    except HoldfastError as error:
        return wire.error_result(error)
    except InputNeeded as needed:
        return wire.input_required_result(needed)
