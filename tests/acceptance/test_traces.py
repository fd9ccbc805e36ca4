"""With a collector in the settings every call, its parts and every index job are spans; without one nothing is made."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import LEGACY, MODERN, Agent, command
from tests.helpers.collector import CollectedSpan, Collector, trace_collector
from tests.helpers.databases import postgres_database
from tests.helpers.doors import MODERN_META, House, post, until
from tests.helpers.scraper import scrape

pytestmark = [pytest.mark.timeout(120), pytest.mark.req("SV-32.f")]

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with trace_collector() as running:
        yield running


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose server ends with the test."""
    made = House(tmp_path)
    yield made
    made.run("stop")
    made.end()


def trace_to(house: House, url: str, **more: Any) -> None:
    """Write settings that name a collector; words alone are indexed, so that each write is one job."""
    search = {"embedder": {"kind": "none"}}
    tree = {"observe": {"traces": {"endpoint": url, **more}}, "mcp": {"files": {"search": search}}}
    house.settings(json.dumps({"settings": tree}))


def wait_for(collector: Collector, name: str, count: int = 1) -> list[CollectedSpan]:
    """Wait until so many spans of that name were sent."""
    until(f"{count} spans {name!r} were sent", lambda: len(collector.with_name(name)) >= count)
    return collector.with_name(name)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_each_call_is_a_span_with_its_tool_its_outcome_its_client_and_its_parts(
    house: House, collector: Collector, mode: str
) -> None:
    trace_to(house, collector.url, headers={"x-collector-key": "sesame"})
    with Agent([house.root], house.state, mode=mode, name="desk", version="1.2") as desk:
        desk.call("write_file", path="b.txt", content="text\n").ok()
        assert desk.call("read_text_file", path="gone.txt").code == "NOT_FOUND"
        desk.call("grep_content", pattern="hello", search_path=".").ok()
    (write,) = wait_for(collector, "tools/call write_file")
    (read,) = wait_for(collector, "tools/call read_text_file")
    (grep,) = wait_for(collector, "tools/call grep_content")
    assert write.kind == "server"
    assert write.attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write_file",
        "holdfast.status": "ok",
        "holdfast.caller.kind": "agent",
        "holdfast.client.name": "desk",
        "holdfast.client.version": "1.2",
        "holdfast.door": "socket",
    }
    assert not write.failed
    assert not write.parent_id
    assert read.failed
    assert (read.attributes["error.type"], read.attributes["holdfast.status"]) == ("NOT_FOUND", "error")
    assert "child process" in [span.name for span in collector.of_trace(grep.trace_id)]
    (commit,) = [span for span in collector.of_trace(write.trace_id) if span.name == "commit of the journal"]
    assert (commit.kind, commit.parent_id) == ("internal", write.span_id)
    assert write.began_ns <= commit.began_ns < commit.ended_ns <= write.ended_ns
    assert abs(write.began_ns - time.time_ns()) < 60e9
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    assert {headers["x-collector-key"] for _, headers in collector.requests} == {"sesame"}
    assert {headers["content-type"] for _, headers in collector.requests} == {"application/x-protobuf"}
    assert {resource["service.name"] for resource in collector.resources} == {"holdfast"}


def test_the_steps_of_a_pipe_belong_to_the_pipe_and_a_search_shows_its_stages(
    house: House, collector: Collector
) -> None:
    trace_to(house, collector.url)
    stored = {"project": "p", "path": "/a.md"}
    steps = [
        {"id": "a", "tool": "read_text_file", "arguments": {"path": "a.txt"}},
        {"id": "b", "tool": "file_write", "arguments": {**stored, "content": "the quick fox"}, "after": ["a"]},
    ]
    with Agent([house.root], house.state) as agent:
        agent.call("mcp_pipe", steps=steps).ok()
        agent.call("file_search", project="p", query="quick").ok()
    (pipe,) = wait_for(collector, "tools/call mcp_pipe")
    spans = {span.name: span for span in collector.of_trace(pipe.trace_id)}
    assert spans["tools/call read_text_file"].parent_id == pipe.span_id
    assert spans["tools/call file_write"].parent_id == pipe.span_id
    assert spans["store transaction"].parent_id == spans["tools/call file_write"].span_id
    assert spans["lock of the project"].parent_id == spans["store transaction"].span_id
    (search,) = wait_for(collector, "tools/call file_search")
    stages = [span.name for span in collector.of_trace(search.trace_id) if span.name.startswith("search:")]
    assert stages == ["search: embed the query", "search: words", "search: vectors", "search: load passages"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_an_index_job_is_a_span_that_links_to_its_write_also_from_another_process(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, collector: Collector
) -> None:
    if engine == "postgres":
        with postgres_database(request.getfixturevalue("postgres_server_url")) as url:
            follow_writes(House(tmp_path, DATABASE_URL=url), collector, in_worker=True)
    else:
        follow_writes(House(tmp_path), collector, in_worker=False)


def follow_writes(house: House, collector: Collector, *, in_worker: bool) -> None:
    search = {"embedder": {"kind": "none"}}
    files = {"search": search, "index": {"workers": 0 if in_worker else 1}}
    traces = {"endpoint": collector.url}
    house.settings(json.dumps({"settings": {"observe": {"traces": traces}, "mcp": {"files": files}}}))
    with house.serve(str(house.root)):
        with Agent([house.root], house.state) as agent:
            for number in range(3):
                agent.call("file_write", project="p", path=f"/{number}.md", content=f"note {number}").ok()
            agent.call("file_rename", project="p", from_path="/0.md", to_path="/z.md").ok()
        worker = subprocess.Popen(command("worker", "--lanes", "1"), env=house.env) if in_worker else None
        try:
            writes = wait_for(collector, "tools/call file_write", 3)
            until("the jobs were traced", lambda: len(linked(collector)) >= 4)
        finally:
            if worker is not None:
                worker.terminate()
                worker.wait(20)
    rename = wait_for(collector, "tools/call file_rename")[0]
    wanted = {(span.trace_id, write_part(collector, span)) for span in [*writes[1:], rename]}
    assert wanted <= set(linked(collector))
    for job in collector.with_name("index words"):
        assert job.kind == "consumer"
        assert not job.parent_id
        assert job.trace_id not in {span.trace_id for span in [*writes, rename]}
        assert job.attributes["holdfast.job.outcome"] == "done"


def linked(collector: Collector) -> list[tuple[str, str]]:
    """Return what the spans of index jobs link to."""
    return [link for job in collector.with_name("index words") for link in job.links]


def write_part(collector: Collector, call: CollectedSpan) -> str:
    """Return the span of the transaction in which a call added its job."""
    (part,) = [span for span in collector.of_trace(call.trace_id) if span.name == "store transaction"]
    assert part.parent_id == call.span_id
    return part.span_id


def test_a_trace_of_the_caller_goes_on_here(house: House, collector: Collector) -> None:
    trace_to(house, collector.url)
    read = {"name": "read_text_file", "arguments": {"path": str(house.root / "a.txt")}}

    def message(**meta: Any) -> dict[str, Any]:
        params = {**read, "_meta": {**MODERN_META, **meta}}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    modern = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "read_text_file"}
    with house.serve(str(house.root)):
        sent: list[tuple[dict[str, Any], dict[str, str]]] = [
            ({"traceparent": f"00-{TRACE}-{SPAN}-01"}, {}),
            ({}, {"traceparent": f"00-{TRACE}-{SPAN}-01"}),
            ({"traceparent": f"00-{TRACE}-{SPAN}-01"}, {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}),
            ({"traceparent": f"00-{TRACE}-{SPAN}-00"}, {}),
            ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, {}),
            ({"traceparent": ["no text"]}, {"traceparent": "nonsense"}),
            ({}, {}),
        ]
        for meta, headers in sent:
            assert '"isError":false' in post(house, message(**meta), **modern, **headers).text
        with house.relay() as relay:
            relay.initialize()
            relay.ask(1, "tools/call", **read, _meta={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        spans = wait_for(collector, "tools/call read_text_file", 7)
    assert [span.parent_id for span in spans if span.trace_id == TRACE] == [SPAN] * 4
    others = [span for span in spans if span.trace_id != TRACE]
    assert [span.parent_id for span in others] == [""] * 3
    assert len({span.trace_id for span in others}) == 3


def test_a_session_of_the_handshake_era_over_http_carries_a_trace_too(house: House, collector: Collector) -> None:
    trace_to(house, collector.url)
    with house.serve(str(house.root)):
        answer = post(house, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _initialize()})
        session = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
        post(house, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
        call = {"name": "list_allowed_directories", "arguments": {}, "_meta": {"traceparent": f"00-{TRACE}-{SPAN}-01"}}
        post(house, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, **session)
        call.pop("_meta")
        header = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        post(house, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, **session, **header)
        spans = wait_for(collector, "tools/call list_allowed_directories", 2)
    assert [(span.trace_id, span.parent_id) for span in spans] == [(TRACE, SPAN)] * 2


def _initialize() -> dict[str, Any]:
    return {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.parametrize("fault", ["no listener", "never answers", "refuses"])
def test_a_dead_collector_fails_no_call_slows_none_and_fills_no_memory(
    house: House, collector: Collector, fault: str
) -> None:
    collector.status = {"no listener": 200, "never answers": 0, "refuses": 503}[fault]
    trace_to(house, "http://127.0.0.1:9" if fault == "no listener" else collector.url)
    with house.serve(str(house.root)):
        with Agent([house.root], house.state) as agent:
            agent.call("read_text_file", path="a.txt").ok()
            time.sleep(1.5)  # by now the thread is in its first try
            slowest = 0.0
            for _ in range(100):
                began = time.monotonic()
                agent.call("read_text_file", path="a.txt").ok()
                slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2.0
        pipe = {"steps": [{"id": str(n), "tool": "read_text_file", "arguments": {"path": "a.txt"}} for n in range(50)]}
        with Agent([house.root], house.state) as agent:
            for _ in range(200):
                agent.call("mcp_pipe", **pipe).ok()
        dropped = scrape(house).value("holdfast_spans_total", outcome="dropped")
        assert dropped > 500
        began = time.monotonic()
        assert house.run("stop").returncode == 0
        assert time.monotonic() - began < 12
    assert collector.spans == []


def test_spans_wait_for_a_collector_that_comes_back(house: House, collector: Collector) -> None:
    trace_to(house, collector.url)
    collector.status = 503
    with house.serve(str(house.root)):
        with Agent([house.root], house.state) as agent:
            agent.call("read_text_file", path="a.txt").ok()
        time.sleep(2)
        assert collector.spans == []
        collector.status = 200
        wait_for(collector, "tools/call read_text_file")
        until("they are counted", lambda: scrape(house).value("holdfast_spans_total", outcome="sent") >= 1)
        assert scrape(house).value("holdfast_spans_total", outcome="dropped") == 0


def test_a_part_of_the_calls_can_be_traced(house: House, collector: Collector) -> None:
    trace_to(house, collector.url, sample_ratio=0.5)
    with Agent([house.root], house.state) as agent:
        for _ in range(200):
            agent.call("list_allowed_directories").ok()
        agent.call("file_write", project="p", path="/a.md", content="x").ok()
    house.run("stop")
    until("the server ended", lambda: not house.facts())
    assert 50 < len(collector.with_name("tools/call list_allowed_directories")) < 150
    assert len(collector.with_name("index words")) == len(collector.with_name("tools/call file_write"))


def test_what_the_environment_says_of_traces_counts_for_nothing(house: House, collector: Collector) -> None:
    with trace_collector() as other:
        trace_to(house, collector.url)
        house.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": other.url,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{other.url}/v1/traces",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-from=environment",
            "OTEL_RESOURCE_ATTRIBUTES": "from=environment",
            "OTEL_SDK_DISABLED": "true",
            "HTTP_PROXY": other.url,
            "http_proxy": other.url,
            "ALL_PROXY": other.url,
        }
        with Agent([house.root], house.state, env=house.env) as agent:
            agent.call("read_text_file", path="a.txt").ok()
        wait_for(collector, "tools/call read_text_file")
        house.run("stop")
        assert other.requests == []
    assert all("x-from" not in headers for _, headers in collector.requests)
    assert all("from" not in resource for resource in collector.resources)


def test_without_a_collector_nothing_of_opentelemetry_is_loaded_for_it(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from holdfast.config.settings import Settings\n"
        "from holdfast.wiring.build import build\n"
        f"parts = build(Settings(), {str(tmp_path)!r}, is_measured=True)\n"
        "parts.close()\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.proto', 'opentelemetry.sdk'))])\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.strip() == "[]", ran.stderr


@pytest.mark.parametrize("status", [200, 401])
def test_doctor_says_whether_the_collector_takes_spans(house: House, collector: Collector, status: int) -> None:
    trace_to(house, collector.url)
    collector.status = status
    printed = house.run("doctor", timeout=60).stdout
    line = next(line for line in printed.splitlines() if "traces" in line)
    assert ("takes them" if status == 200 else "it answered with status 401") in line, printed
    assert collector.url in line


def test_an_address_that_is_none_is_refused_by_name(house: House) -> None:
    house.settings(json.dumps({"settings": {"observe": {"traces": {"endpoint": "collector:4318"}}}}))
    ran = house.run("serve", "--port", "0", str(house.root))
    assert ran.returncode != 0
    assert "observe.traces" in ran.stderr
