"""A real MCP client over streamable HTTP: the official Python SDK with a key of its own, driven from plain code."""

from typing import Self

import anyio.from_thread
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.helpers.agent import MODERN, Agent


class RemoteAgent(Agent):
    """One client of the HTTP door at an address; calls are those of the relay's client."""

    def __init__(self, url: str, key: str, *, mode: str = MODERN, **headers: str) -> None:
        super().__init__([], "/nowhere", mode=mode)
        self._url = url
        self._headers = {"Authorization": f"Bearer {key}"} | {name.replace("_", "-"): headers[name] for name in headers}

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        http = httpx2.AsyncClient(headers=self._headers, timeout=30)
        self._stack.enter_context(self._portal.wrap_async_context_manager(http))
        streams = streamable_http_client(f"{self._url}/mcp", http_client=http)
        client = Client(streams, mode=self._mode, cache=None)
        self.client = self._stack.enter_context(self._portal.wrap_async_context_manager(client))
        return self
