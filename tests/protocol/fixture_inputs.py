"""The conformance suite's tools that ask the client for more than a form, in the way of the newest protocol."""

from typing import Any

import mcp_types as types

Answered = types.CallToolResult | types.InputRequiredResult


def text_result(text: str) -> types.CallToolResult:
    """Return a result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=text)])


def form(message: str, **properties: dict[str, Any]) -> types.ElicitRequest:
    """Return a question to the person, every property required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    """Return a question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def roots() -> types.ListRootsRequest:
    """Return a question for the client's roots."""
    return types.ListRootsRequest()


NAME = {"type": "string"}


def sampling(params: types.CallToolRequestParams) -> Answered:
    """Repeat what the client's model answered."""
    response = (params.input_responses or {}).get("capital_question")
    if response is None:
        question = sample("What is the capital of France?")
        return types.InputRequiredResult(input_requests={"capital_question": question})
    return text_result(f"The model said: {response.model_dump_json(by_alias=True)}")


def list_roots(params: types.CallToolRequestParams) -> Answered:
    """Name the client's roots."""
    response = (params.input_responses or {}).get("client_roots")
    if not isinstance(response, types.ListRootsResult):
        return types.InputRequiredResult(input_requests={"client_roots": roots()})
    return text_result(f"Roots: {', '.join(str(root.uri) for root in response.roots)}")


def multiple_inputs(params: types.CallToolRequestParams) -> Answered:
    """Ask three things at once."""
    requests: types.InputRequests = {
        "user_name": form("What is your name?", name=NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": roots(),
    }
    if not requests.keys() <= (params.input_responses or {}).keys():
        return types.InputRequiredResult(input_requests=requests, request_state="all-three")
    return text_result("All three answers are here.")


def capabilities(params: types.CallToolRequestParams, offered: types.ClientCapabilities) -> Answered:
    """Ask only for what the client can give."""
    if params.input_responses is not None:
        return text_result("Thank you.")
    requests: types.InputRequests = {}
    if offered.elicitation is not None:
        requests["user_name"] = form("What is your name?", name=NAME)
    if offered.sampling is not None:
        requests["greeting"] = sample("Generate a greeting", 50)
    if offered.roots is not None:
        requests["client_roots"] = roots()
    return (
        types.InputRequiredResult(input_requests=requests)
        if requests
        else text_result("This client can be asked nothing.")
    )


ASKING = {
    "test_input_required_result_sampling": sampling,
    "test_input_required_result_list_roots": list_roots,
    "test_input_required_result_multiple_inputs": multiple_inputs,
}
