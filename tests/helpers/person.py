"""The person of a state folder, who calls the person's tools as a command or the console does."""

from pathlib import Path
from typing import Any

from holdfast.transport.client.calls import call_by_socket
from holdfast.transport.state_folder import StateFolder


class Person:
    """Calls the person's tools of the server that runs on a state folder."""

    def __init__(self, state: Path) -> None:
        self._folder = StateFolder(str(state))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its data. Fails when it was refused."""
        result = call_by_socket(self._folder, tool, arguments, "person")
        data: dict[str, Any] = result.get("structuredContent") or {}
        assert not result.get("isError"), data
        return data

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is refused; return the error."""
        result = call_by_socket(self._folder, tool, arguments, "person")
        assert result.get("isError"), result.get("structuredContent")
        error: dict[str, Any] = result["structuredContent"]
        return error
