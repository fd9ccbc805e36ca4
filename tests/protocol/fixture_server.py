"""The conformance build: everything the official suite asks of a server that ours does not offer, put on top of it.

The suite wants tools, prompts, resources and subscriptions of its own. They are added to the server that the doors
build, through the SDK's public registration, and our own tools stay behind them. What asks the person and nobody else
is in our own table.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.protocol import fixture_documents as documents
from tests.protocol.fixture_inputs import ASKING, Answered, capabilities, sample, text_result

Context = ServerRequestContext[Any, Any]
CallTool = Callable[[Context, types.CallToolRequestParams], Awaitable[Any]]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "json_schema_2020_12_tool": _SCHEMA_2020_12,
    "test_custom_headers": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
}


def equip(server: Server[Any]) -> None:
    """Add the suite's tools, prompts, resources, completions and subscriptions to a server."""
    documents.add_to(server)
    bus = InMemorySubscriptionBus()
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus))
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
    server.cache_hints.update(dict.fromkeys(documents.CACHED, CacheHint(ttl_ms=1000, scope="private")))
    server.get_tool_input_schema = _SCHEMAS.get
    _add_tools(server, _Tools(bus))


async def _set_level(_ctx: Context, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def _add_tools(server: Server[Any], tools: "_Tools") -> None:
    listing, calling = server.get_request_handler("tools/list"), server.get_request_handler("tools/call")
    assert listing is not None
    assert calling is not None

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        ours = await listing.handler(ctx, params)
        assert isinstance(ours, types.ListToolsResult)
        return types.ListToolsResult(tools=[*ours.tools, *tools.listed()])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
        theirs = tools.find(params.name)
        return await (calling.handler if theirs is None else theirs)(ctx, params)

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)


class _Tools:
    """The tools that need more of the protocol than an entry of our table has."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self._by_name: dict[str, CallTool] = {
            "test_tool_with_logging": _log_thrice,
            "test_logging_tool": _log_thrice,
            "test_sampling": _sampled,
            "json_schema_2020_12_tool": _done,
            "test_custom_headers": _done,
            "test_reconnection": _reconnected,
            "test_missing_capability": _missing_capability,
            "test_input_required_result_capabilities": _by_capability,
            "test_trigger_tool_change": self._tool_change,
            "test_trigger_prompt_change": self._prompt_change,
        }

    def listed(self) -> list[types.Tool]:
        """Return the entries of these tools."""
        names = [*self._by_name, *ASKING]
        return [
            types.Tool(name=name, description="For the suite.", input_schema=_SCHEMAS.get(name, _NO_ARGUMENTS))
            for name in names
        ]

    def find(self, name: str) -> CallTool | None:
        """Return the tool of that name, None when it is not one of these."""
        if name in ASKING:
            return _asking
        return self._by_name.get(name)

    async def _tool_change(self, _ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
        await self._bus.publish(ToolsListChanged())
        return text_result("The tools have changed.")

    async def _prompt_change(self, _ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
        await self._bus.publish(PromptsListChanged())
        return text_result("The prompts have changed.")


async def _asking(_ctx: Context, params: types.CallToolRequestParams) -> Answered:
    return ASKING[params.name](params)


async def _by_capability(ctx: Context, params: types.CallToolRequestParams) -> Answered:
    return capabilities(params, ctx.session.client_capabilities or types.ClientCapabilities())


async def _done(_ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return text_result("done")


async def _log_thrice(ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            notice = types.LoggingMessageNotificationParams(level="info", data=text)
            await ctx.session.send_notification(types.LoggingMessageNotification(params=notice), ctx.request_id)
        await anyio.sleep(0.05)
    return text_result("Logged.")


async def _reconnected(ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
        await anyio.sleep(0.1)
    return text_result("The answer came after the stream was closed.")


async def _sampled(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    prompt = str((params.arguments or {}).get("prompt", ""))
    answer = await ctx.session.send_request(sample(prompt), types.CreateMessageResult, metadata=_answering(ctx))
    return text_result(f"LLM response: {answer.model_dump_json(by_alias=True)}")


def _answering(ctx: Context) -> ServerMessageMetadata:
    return ServerMessageMetadata(related_request_id=ctx.request_id)


async def _missing_capability(ctx: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    needed = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not ctx.session.check_client_capability(needed):
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool needs a client with sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return text_result("The client has sampling.")
