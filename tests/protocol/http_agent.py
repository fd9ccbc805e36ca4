"""A real MCP client over streamable HTTP: the official Python SDK with the server's key, driven from plain code."""

from typing import Self

import anyio.from_thread
import httpx2
from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from tests.helpers.agent import Agent
from tests.protocol.conftest import Served


class HttpAgent(Agent):
    """One client of the HTTP door; calls are those of the relay's client."""

    def __init__(self, served: Served, *, mode: str, elicit: ElicitationFnT | None = None) -> None:
        super().__init__([], served.state, mode=mode, elicit=elicit)
        self._served = served

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        headers = {"Authorization": f"Bearer {self._served.key}"}
        http = httpx2.AsyncClient(headers=headers, timeout=30)
        self._stack.enter_context(self._portal.wrap_async_context_manager(http))
        streams = streamable_http_client(f"{self._served.url}/mcp", http_client=http)
        client = Client(streams, mode=self._mode, cache=None, elicitation_callback=self._elicit)
        self.client = self._stack.enter_context(self._portal.wrap_async_context_manager(client))
        return self
