"""The conformance suite's prompts, resources and completions."""

import base64
import json
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.protocol.fixture_inputs import form
from tests.protocol.fixture_table import PNG

Context = ServerRequestContext[Any, Any]

CACHED = ("resources/list", "resources/templates/list", "resources/read", "prompts/list", "server/discover")
_IMAGE = base64.b64encode(PNG).decode()
_PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
_RESOURCES = {
    "test://static-text": "text/plain",
    "test://static-binary": "image/png",
    "test://watched-resource": "text/plain",
}


def add_to(server: Server[Any]) -> None:
    """Register every handler of this module."""
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, _list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, _get_prompt)
    server.add_request_handler("resources/list", types.PaginatedRequestParams, _list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, _list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, _read_resource)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, _subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, _unsubscribe)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, _complete)


async def _list_prompts(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description="For the suite.",
                arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in _PROMPTS.items()
        ]
    )


async def _get_prompt(
    _ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    arguments = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _prompt(_text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return _prompt(
                _text(f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'")
            )
        case "test_prompt_with_embedded_resource":
            resource = types.TextResourceContents(
                uri=arguments.get("resourceUri", ""),
                mime_type="text/plain",
                text="Embedded resource content for testing.",
            )
            return _prompt(
                types.EmbeddedResource(resource=resource), _text("Please process the embedded resource above.")
            )
        case "test_prompt_with_image":
            image = types.ImageContent(data=_IMAGE, mime_type="image/png")
            return _prompt(image, _text("Please analyze the image above."))
        case "test_input_required_result_prompt" if not params.input_responses:
            question = form("What context should the prompt use?", context={"type": "string"})
            return types.InputRequiredResult(input_requests={"user_context": question})
        case "test_input_required_result_prompt":
            return _prompt(_text("The context is here."))
        case _:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no prompt {params.name!r}")


def _prompt(*contents: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content) for content in contents])


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


async def _list_resources(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri, description="For the suite.", mime_type=kind)
            for uri, kind in _RESOURCES.items()
        ]
    )


async def _list_templates(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", description="For the suite."
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(_ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    if uri == "test://static-binary":
        image = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=_IMAGE)
        return types.ReadResourceResult(contents=[image])
    text, kind = _text_of(uri)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


def _text_of(uri: str) -> tuple[str, str]:
    if uri == "test://static-text":
        return "This is the content of the static text resource.", "text/plain"
    if uri == "test://watched-resource":
        return "Nothing happens here.", "text/plain"
    head, _, rest = uri.partition("test://template/")
    number, _, tail = rest.partition("/")
    if head or tail != "data":
        raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})
    body = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
    return json.dumps(body), "application/json"


async def _subscribe(_ctx: Context, _params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def _unsubscribe(_ctx: Context, _params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def _complete(_ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))
