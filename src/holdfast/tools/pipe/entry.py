"""`mcp_pipe`: several tool calls in one request, each by the path that it would take alone."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call, ProgressSink
from holdfast.errors import HoldfastError, InvalidArgument, NotFound, TimedOut
from holdfast.tools.answer import Answer
from holdfast.tools.pipe.answer import StepOutcome, StepStatuses, build_pipe_answer, result_from_answer
from holdfast.tools.pipe.plan import PipeStep, fill_references, find_dependencies, referenced_steps
from holdfast.tools.registry import Arguments, Effect, Group, Runner, tool

MAX_STEPS = 50
MAX_PARALLEL = 8
_TIMEOUT_SECONDS = 300.0


class StepArguments(Arguments):
    """One step of mcp_pipe."""

    id: str = Field(max_length=64, description="Name of the step, for references.")
    tool: str = Field(description="Name of the tool to call.")
    arguments: dict[str, Any] = Field({}, description="Arguments of the tool.")
    after: list[str] = Field([], description="Ids of other steps to wait for.")


class McpPipe(Arguments):
    """Arguments of mcp_pipe."""

    steps: list[StepArguments] = Field(min_length=1, max_length=MAX_STEPS, description="The calls to make.")
    continue_on_error: bool = Field(False, description="Whether to skip only the steps that need a failed one.")


@tool(
    "mcp_pipe",
    group=Group.CORE,
    effect=Effect.DESTROY,
    title="Run several calls",
    output=StepStatuses,
    timeout_seconds=_TIMEOUT_SECONDS,
    rate=Rate.READ,
    allowed_in_pipe=False,
)
async def mcp_pipe(app: App, call: Call, args: McpPipe, runner: Runner) -> Answer:
    """Call several tools in one request. {"$from": id, "path": JSON pointer} in place of any value of the arguments is
    taken from that step's structured result, or from {"text": first block, "more": [others]}. Steps run in parallel
    unless one refers to another or names it in `after`.
    """
    steps = [PipeStep(step.id, step.tool, step.arguments, step.after) for step in args.steps]
    dependencies = find_dependencies(steps)
    for step in steps:
        _check_tool(step, runner)
    max_bytes = app.settings.server.max_body_bytes
    run = _PipeRun(call, runner, {step.id: step for step in steps}, dependencies, max_bytes)
    await run.run_all(stop_at_error=not args.continue_on_error)
    outcomes = [run.outcomes[step.id] for step in steps]
    mark = secrets.token_hex(3)
    max_tokens = app.settings.folders.max_answer_tokens
    return await runner.in_thread(build_pipe_answer, outcomes, run.answers, mark, max_tokens, max_bytes)


def _check_tool(step: PipeStep, runner: Runner) -> None:
    try:
        tool = runner.find(step.tool)
    except NotFound as error:
        raise InvalidArgument(f"step {step.id!r}: {error.message}") from None
    if not tool.allowed_in_pipe:
        raise InvalidArgument(f"step {step.id!r}: {step.tool!r} can only be called by itself, not in a pipe.")


@dataclass
class _PipeRun:
    """One pipe in progress. All of it lives on the event loop; only the steps themselves take threads."""

    call: Call
    runner: Runner
    steps: Mapping[str, PipeStep]
    dependencies: Mapping[str, frozenset[str]]
    max_chars: int
    outcomes: dict[str, StepOutcome] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)

    async def run_all(self, *, stop_at_error: bool) -> None:
        """Start each step when those that it waits for are done, and give every step an outcome."""
        running: dict[asyncio.Task[None], str] = {}
        try:
            while len(self.outcomes) < len(self.steps):
                self._skip_blocked(set(running.values()), stop_at_error)
                for name in self._ready(set(running.values()))[: MAX_PARALLEL - len(running)]:
                    running[asyncio.create_task(self._step(self.steps[name]))] = name
                if not running:
                    continue
                done, _ = await asyncio.wait(
                    running, timeout=self.call.remaining(), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    self._time_out(set(running.values()))
                for task in done:
                    del running[task]
                    task.result()
        finally:
            for task in running:
                task.cancel()

    def _ready(self, running: set[str]) -> list[str]:
        return [
            name
            for name, sources in self.dependencies.items()
            if name not in self.outcomes and name not in running and sources <= self.outcomes.keys()
        ]

    def _skip_blocked(self, running: set[str], stop_at_error: bool) -> None:
        """Give up every step that waits for a failed one, and all that have not begun when one failure is enough."""
        failed = next((name for name, outcome in self.outcomes.items() if outcome.status == "error"), None)
        if failed is None:
            return
        for name in self._topological_order():
            if name in self.outcomes or name in running:
                continue
            causes = [self.outcomes[source] for source in sorted(self.dependencies[name]) if source in self.outcomes]
            cause = next((cause.because or cause.id for cause in causes if cause.status != "ok"), None)
            if cause is not None or stop_at_error:
                self._settle(StepOutcome(id=name, status="skipped", because=cause or failed))

    def _topological_order(self) -> list[str]:
        """Return every step after those that it waits for."""
        ordered: dict[str, None] = {}
        while len(ordered) < len(self.dependencies):
            ordered.update((name, None) for name, sources in self.dependencies.items() if sources <= ordered.keys())
        return list(ordered)

    async def _step(self, step: PipeStep) -> None:
        try:
            for source in referenced_steps(step):
                _refuse_cut_text(step.id, source, self.answers[source])
            arguments = fill_references(step, self.results, self.max_chars)
            answer = await self.runner.call(step.tool, arguments, self._step_progress(step.id))
        except HoldfastError as error:
            self._settle(StepOutcome(id=step.id, status="error", error=error.payload()))
            return
        self.answers[step.id], self.results[step.id] = answer, result_from_answer(answer)
        self._settle(StepOutcome(id=step.id, status="ok", result=self.results[step.id]))

    def _time_out(self, running: set[str]) -> None:
        error = TimedOut(f"The pipe took longer than {self.call.timeout_seconds:g} s; this step may still take effect.")
        first = min(running)
        for name in self.steps:
            if name in running:
                self._settle(StepOutcome(id=name, status="error", error=error.payload()))
            elif name not in self.outcomes:
                self._settle(StepOutcome(id=name, status="skipped", because=first))

    def _settle(self, outcome: StepOutcome) -> None:
        if outcome.id not in self.outcomes:
            self.outcomes[outcome.id] = outcome
            self._report(outcome.id, 1.0, f"{outcome.id}: {outcome.status}")

    def _step_progress(self, name: str) -> ProgressSink:
        """Return a sink that makes a step's own progress a part of the pipe's; a step without a total only nears 1."""

        def sink(done: float, total: float | None, message: str) -> None:
            self._report(name, min(done / total, 0.99) if total else done / (done + 1), f"{name}: {message}")

        return sink

    def _report(self, name: str, fraction: float, message: str) -> None:
        self.fractions[name] = max(fraction, self.fractions.get(name, 0.0))
        done = len(self.outcomes) + sum(
            part for step, part in list(self.fractions.items()) if step not in self.outcomes
        )
        self.call.progress(done, float(len(self.steps)), message)


def _refuse_cut_text(name: str, source: str, answer: Answer) -> None:
    if answer.is_cut:
        raise InvalidArgument(
            f"step {name!r}: the text of step {source!r} was cut by the token budget, so it cannot be used as a "
            "whole. Read a range that fits."
        )
