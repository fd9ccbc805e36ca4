"""Langfuse is told of plans where it is configured: by numbers alone, and never at the plan's cost."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import command
from tests.helpers.chat import chat_server, filed
from tests.helpers.langfuse import LangfuseServer, langfuse_server
from tests.helpers.organising import HOUSE
from tests.helpers.reviewer import with_settings
from tests.helpers.trees import plant

SCORES = ("cache_hit_rate", "tokens_saved", "safety_skips", "do_nothing_ratio")
WITHOUT = "import sys; sys.modules['langfuse'] = None; from holdfast.__main__ import main; main()"


@pytest.fixture
def langfuse() -> Iterator[LangfuseServer]:
    with langfuse_server() as one:
        yield one


def run(words: list[str], state: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    everything = {**os.environ, "HOLDFAST_STATE_DIR": str(state), **environment}
    return subprocess.run(words, env=everything, capture_output=True, text=True, timeout=120, check=False)


def scanned(root: Path, state: Path, environment: dict[str, str]) -> dict[str, Any]:
    done = run(command("organise", "scan", str(root), "--json"), state, environment)
    assert done.returncode == 0, done.stderr
    plan: dict[str, Any] = json.loads(done.stdout)
    return plan


@pytest.mark.req("OR-50.c")
def test_a_plan_is_a_trace_with_its_four_scores(root: Path, ended_state: Path, langfuse: LangfuseServer) -> None:
    plant(root, {**HOUSE, ".hidden": "h"})
    plan = scanned(root, ended_state, langfuse.environment)
    (span,) = langfuse.spans
    assert (span.name, span.trace_id, span.parent_id) == ("plan.create", plan["plan_id"], "")
    assert 0 < span.ended_ns - span.started_ns < 60e9
    assert span.attributes["langfuse.trace.name"] == "organise"
    assert json.loads(span.attributes["langfuse.observation.metadata.moves"]) == plan["totals"]["moves"] == 3
    assert {score["traceId"] for score in langfuse.scores} == {plan["plan_id"]}
    assert len({score["id"] for score in langfuse.scores}) == 4
    sent = {score["name"]: score["value"] for score in langfuse.scores}
    assert sent == {name: pytest.approx(plan["measures"][name], abs=1e-3) for name in SCORES}


@pytest.mark.req("OR-50.d")
def test_requests_to_a_chat_model_are_generations_with_their_tokens(
    root: Path, ended_state: Path, langfuse: LangfuseServer
) -> None:
    plant(root, HOUSE)
    with chat_server("Recipes") as chat:

        def counted(number: int, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
            usage = {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340}
            answer = {**json.loads(filed(request, "Recipes")), "usage": usage}
            return (500, {"retry-after": "0"}, b"{}") if number == 1 else (200, {}, json.dumps(answer).encode())

        chat.fault = counted
        llm = {"endpoint": chat.url, "timeout_seconds": 5, "concurrency": 1}
        with_settings(ended_state, {"organiser": {"classifier": "openai", "share_content": True, "llm": llm}})
        plan = scanned(root, ended_state, langfuse.environment)
    whole = next(span for span in langfuse.spans if span.name == "plan.create")
    calls = sorted((span for span in langfuse.spans if span is not whole), key=lambda span: span.started_ns)
    assert len(calls) == len(chat.requests) >= 2
    for span in calls:
        assert (span.trace_id, span.parent_id) == (plan["plan_id"], whole.span_id)
        assert span.attributes["langfuse.observation.type"] == "generation"
        assert span.attributes["langfuse.observation.model.name"] == "gpt-4o-mini"
        assert whole.started_ns <= span.started_ns <= span.ended_ns <= whole.ended_ns
    assert calls[0].attributes["langfuse.observation.status_message"] == "it answered with status 500"
    assert json.loads(calls[1].attributes["langfuse.observation.usage_details"]) == {"input": 300, "output": 40}
    assert json.loads(calls[1].attributes["langfuse.observation.metadata.files"]) == 2


@pytest.mark.req("OR-50.d")
def test_no_name_and_no_text_of_a_file_is_sent(root: Path, ended_state: Path, langfuse: LangfuseServer) -> None:
    plant(root, HOUSE)
    scanned(root, ended_state, langfuse.environment)
    everything = b"".join(langfuse.bodies)
    assert langfuse.spans and langfuse.scores
    for word in ("pasta", "scan_0012", "Recipes", "Invoices", "qwx", "flour", "Acme", root.name, str(ended_state)):
        assert word.encode() not in everything


@pytest.mark.req("OR-50.e")
@pytest.mark.parametrize("trouble", ["refused", "silent", "nobody", "not installed"])
def test_a_plan_is_made_all_the_same_without_langfuse_and_one_line_says_so(
    root: Path, ended_state: Path, langfuse: LangfuseServer, trouble: str
) -> None:
    plant(root, HOUSE)
    environment = dict(langfuse.environment)
    words = ["organise", "scan", str(root), "--json"]
    if trouble == "nobody":
        environment["LANGFUSE_HOST"] = "http://127.0.0.1:1"
    langfuse.status = {"refused": 500, "silent": 0}.get(trouble, 200)
    started = time.monotonic()
    done = run(
        [sys.executable, "-c", WITHOUT, *words] if trouble == "not installed" else command(*words),
        ended_state,
        environment,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["moves"] == 3
    assert time.monotonic() - started < 60
    said = [line for line in done.stderr.splitlines() if line]
    assert len(said) <= 1
    if trouble in ("nobody", "not installed"):
        assert "plans are not recorded" in said[0]


@pytest.mark.req("OR-50.e")
def test_nothing_is_loaded_where_langfuse_is_not_configured(root: Path, ended_state: Path) -> None:
    plant(root, HOUSE)
    script = (
        "import sys\nfrom holdfast.__main__ import main\n"
        "try:\n    main()\nfinally:\n    assert not {'langfuse', 'opentelemetry.sdk'} & set(sys.modules)\n"
    )
    without = dict.fromkeys(("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"), "")
    done = run([sys.executable, "-c", script, "organise", "scan", str(root), "--json"], ended_state, without)
    assert done.returncode == 0, done.stderr


@pytest.mark.req("OR-50.e")
def test_doctor_says_whether_langfuse_takes_the_keys(ended_state: Path, langfuse: LangfuseServer) -> None:
    def finding(environment: dict[str, str], words: list[str] | None = None) -> dict[str, str] | None:
        done = run([*(words or command()), "doctor", "--json"], ended_state, environment)
        return next((one for one in json.loads(done.stdout) if one["subject"] == "Langfuse"), None)

    given = langfuse.environment
    well = finding(given)
    assert well is not None and well["level"] == "ok"
    missing = finding({**given, "LANGFUSE_SECRET_KEY": ""})
    assert missing is not None and "LANGFUSE_SECRET_KEY is missing" in missing["text"]
    wrong = finding({**given, "LANGFUSE_SECRET_KEY": "sk-lf-other"})
    assert wrong is not None and (wrong["level"], "status 401" in wrong["text"]) == ("warning", True)
    absent = finding(given, [sys.executable, "-c", WITHOUT])
    assert absent is not None and "not installed" in absent["text"]
    assert finding(dict.fromkeys(given, "")) is None
