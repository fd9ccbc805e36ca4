"""The official conformance suite on our own server: both revisions, at the HTTP door and at the stream door."""

import re

import pytest

from tests.protocol import node
from tests.protocol.conftest import Served

pytestmark = [pytest.mark.xdist_group("conformance"), pytest.mark.timeout(180)]

REVISIONS = ("2025-11-25", "2026-07-28")

OPTIONAL = re.compile(r"tasks-[a-z-]+")
"""Scenarios of the tasks extension, which this server does not offer."""

PLAIN = {
    "completion-complete",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "server-sse-multiple-streams",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
}
"""What makes sense on a stream, where there are no headers, no status codes and no Host."""

OF_ONE_REVISION = {
    "2025-11-25": {
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "logging-set-level",
        "ping",
        "resources-subscribe",
        "resources-unsubscribe",
        "server-initialize",
        "server-session-lifecycle",
        "tools-call-elicitation",
    },
    "2026-07-28": {
        "caching",
        "input-required-result-basic-elicitation",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-non-tool-request",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "sep-2164-resource-not-found",
    },
}

_LINE = re.compile(r"^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)


def outcomes(report: str) -> dict[str, tuple[int, int]]:
    """Return how many checks of each scenario passed and failed."""
    return {name: (int(passed), int(failed)) for _mark, name, passed, failed in _LINE.findall(report)}


@pytest.mark.req("SV-04.b", "SV-05.a")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_http_door_passes_every_scenario_that_a_revision_requires(conformance_build: Served, revision: str) -> None:
    selection = ("--requirements", revision)
    finished_run = node.conformance(f"{conformance_build.url}/mcp", *selection, key=conformance_build.key)
    results = outcomes(finished_run.stdout)
    failed = {name for name, (_passed, failures) in results.items() if failures and not OPTIONAL.fullmatch(name)}
    assert not failed, finished_run.stdout[-6000:]
    assert finished_run.returncode == 0, finished_run.stdout[-6000:] + finished_run.stderr[-2000:]
    assert results["dns-rebinding-protection"] == (2, 0)
    assert len(results) >= 30


@pytest.mark.req("SV-04.a", "SV-04.b")
def test_the_http_door_passes_what_the_suite_knows_of_an_older_revision(conformance_build: Served) -> None:
    selection = ("--suite", "all", "--spec-version", "2025-06-18")
    finished_run = node.conformance(f"{conformance_build.url}/mcp", *selection, key=conformance_build.key)
    assert finished_run.returncode == 0, finished_run.stdout[-6000:] + finished_run.stderr[-2000:]
    assert sum(failed for _passed, failed in outcomes(finished_run.stdout).values()) == 0


@pytest.mark.req("SV-04.b")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_short_way_of_the_stream_door_passes_every_scenario_that_needs_no_http(bridge: str, revision: str) -> None:
    finished_run = node.conformance(f"{bridge}/mcp", "--requirements", revision)
    results = outcomes(finished_run.stdout)
    required_names = PLAIN | OF_ONE_REVISION[revision]
    missed = {
        name: results.get(name) for name in required_names if results.get(name, (0, 1))[0] == 0 or results[name][1]
    }
    assert not missed, f"{missed}\n{finished_run.stdout[-6000:]}{finished_run.stderr[-2000:]}"


@pytest.mark.req("SV-05.c")
def test_the_suite_gets_nowhere_without_the_key(conformance_build: Served) -> None:
    finished_run = node.conformance(f"{conformance_build.url}/mcp", "--requirements", "2026-07-28")
    assert finished_run.returncode != 0
    assert outcomes(finished_run.stdout)["tools-call-simple-text"][1] > 0
