"""The conformance suite's tools that ask the client for input, in the way of the newest protocol."""

from typing import Any

import mcp_types as types

Answered = types.CallToolResult | types.InputRequiredResult


def said(text: str) -> types.CallToolResult:
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


def elicitation(params: types.CallToolRequestParams) -> Answered:
    """Greet the person by the name that was asked for."""
    given = (params.input_responses or {}).get("user_name")
    if not isinstance(given, types.ElicitResult) or not (given.content or {}).get("name"):
        return types.InputRequiredResult(input_requests={"user_name": form("What is your name?", name=NAME)})
    return said(f"Hello, {(given.content or {})['name']}!")


def sampling(params: types.CallToolRequestParams) -> Answered:
    """Repeat what the client's model answered."""
    given = (params.input_responses or {}).get("capital_question")
    if given is None:
        question = sample("What is the capital of France?")
        return types.InputRequiredResult(input_requests={"capital_question": question})
    return said(f"The model said: {given.model_dump_json(by_alias=True)}")


def list_roots(params: types.CallToolRequestParams) -> Answered:
    """Name the client's roots."""
    given = (params.input_responses or {}).get("client_roots")
    if not isinstance(given, types.ListRootsResult):
        return types.InputRequiredResult(input_requests={"client_roots": roots()})
    return said(f"Roots: {', '.join(str(root.uri) for root in given.roots)}")


def request_state(params: types.CallToolRequestParams) -> Answered:
    """Carry a state through the client and check it."""
    if params.input_responses is None:
        asked = form("Please confirm", ok={"type": "boolean"})
        return types.InputRequiredResult(input_requests={"confirm": asked}, request_state="round-1")
    return said("state-ok" if params.request_state == "round-1" else "state-lost")


def multiple_inputs(params: types.CallToolRequestParams) -> Answered:
    """Ask three things at once."""
    asked: types.InputRequests = {
        "user_name": form("What is your name?", name=NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": roots(),
    }
    if not asked.keys() <= (params.input_responses or {}).keys():
        return types.InputRequiredResult(input_requests=asked, request_state="all-three")
    return said("All three answers are here.")


def multi_round(params: types.CallToolRequestParams) -> Answered:
    """Ask one thing after the other, the state telling how far it is."""
    given = params.input_responses or {}
    if params.request_state == "after-step-1" and "step2" in given:
        return said("Both rounds are done.")
    if params.request_state == "start" and "step1" in given:
        asked = form("Step 2: What is your favorite color?", color=NAME)
        return types.InputRequiredResult(input_requests={"step2": asked}, request_state="after-step-1")
    asked = form("Step 1: What is your name?", name=NAME)
    return types.InputRequiredResult(input_requests={"step1": asked}, request_state="start")


def capabilities(params: types.CallToolRequestParams, offered: types.ClientCapabilities) -> Answered:
    """Ask only for what the client can give."""
    if params.input_responses is not None:
        return said("Thank you.")
    asked: types.InputRequests = {}
    if offered.elicitation is not None:
        asked["user_name"] = form("What is your name?", name=NAME)
    if offered.sampling is not None:
        asked["greeting"] = sample("Generate a greeting", 50)
    if offered.roots is not None:
        asked["client_roots"] = roots()
    return types.InputRequiredResult(input_requests=asked) if asked else said("This client can be asked nothing.")


ASKING = {
    "test_input_required_result_elicitation": elicitation,
    "test_input_required_result_sampling": sampling,
    "test_input_required_result_list_roots": list_roots,
    "test_input_required_result_request_state": request_state,
    "test_input_required_result_multiple_inputs": multiple_inputs,
    "test_input_required_result_multi_round": multi_round,
    "test_input_required_result_tampered_state": request_state,
    "test_streaming_elicitation": elicitation,
}
