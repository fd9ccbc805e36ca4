"""One tool call through the dispatcher, as the wire has it; the protocol's library is not needed for that."""

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
    """Run one tool and return its wire result; an error of ours is a result too, marked as one, and so is a question."""
    try:
        return wire.answered(await dispatcher.call(caller, name, arguments, progress, elicit))
    except HoldfastError as error:
        return wire.refused(error)
    except InputNeeded as needed:
        return wire.input_required(needed)
