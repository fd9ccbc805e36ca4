"""The table of every tool: its name, its group, who may call it, what it takes and what it does to files."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property
from inspect import cleandoc, signature
from typing import Any, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict

from holdfast.app import App
from holdfast.auth.context import Kind
from holdfast.auth.rates import Rate
from holdfast.call import Call, ProgressSink
from holdfast.tools.answer import Answer
from holdfast.tools.schema import answer_schema, flat_schema


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown names are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Group(StrEnum):
    """The groups that settings can switch off whole."""

    CORE = "core"
    FILES = "files"
    REVIEW = "review"
    ORGANISE = "organise"
    STORE = "store"
    SEARCH = "search"


LOCAL_GROUPS = frozenset({Group.FILES, Group.REVIEW, Group.ORGANISE, Group.SEARCH})
"""Groups that need folders on this machine, so they exist only for its own user."""


class Effect(Enum):
    """What a call may do, from which the protocol's hints follow."""

    READ = "read"
    ADD = "add"
    CHANGE = "change"
    DESTROY = "destroy"


Run = Callable[[App, Call, Any], Answer]


class Steps(Protocol):
    """The other tools of a caller, for a tool that calls them: every call takes the one path of all calls."""

    def find(self, name: str) -> "Tool":
        """Return the tool that the caller may call by that name. Raises NotFound."""

    async def call(self, name: str, arguments: dict[str, Any], progress: ProgressSink) -> Answer:
        """Call a tool. Raises HoldfastError and nothing else."""


Conduct = Callable[[App, Call, Any, Steps], Awaitable[Answer]]
"""What calls other tools: it waits for them on the event loop, so it holds no thread that they need."""


@dataclass(frozen=True)
class Tool:
    """One entry of the table: either `run`, in a thread, or `conduct`, on the event loop.

    One that is `alone` cannot be a step of a pipe: it runs other tools, or waits for a person.
    """

    name: str
    group: Group
    effect: Effect
    title: str
    run: Run | None
    arguments: type[Arguments]
    output: type[BaseModel] | None = None
    audience: Kind = Kind.AGENT
    idempotent: bool = False
    listed: bool = True
    timeout_seconds: float = 120.0
    rate: Rate | None = None
    alone: bool = False
    conduct: Conduct | None = None

    @property
    def counted_as(self) -> Rate:
        """Return the class whose limit a call counts against."""
        return self.rate or (Rate.WRITE if self.mutates else Rate.READ)

    @property
    def mutates(self) -> bool:
        """Return whether read-only mode refuses it."""
        return self.effect is not Effect.READ

    @cached_property
    def description(self) -> str:
        """Return the manual that agents read: the docstring of the function."""
        return cleandoc((self.run or self.conduct).__doc__ or "")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """Return the flat JSON Schema of the arguments."""
        return flat_schema(self.arguments)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """Return the flat JSON Schema of the structured answer, None for text tools."""
        return answer_schema(self.output) if self.output else None


def tool(
    name: str,
    *,
    group: Group,
    effect: Effect,
    title: str,
    output: type[BaseModel] | None = None,
    audience: Kind = Kind.AGENT,
    idempotent: bool = False,
    listed: bool = True,
    timeout_seconds: float = 120.0,
    rate: Rate | None = None,
    alone: bool = False,
) -> Callable[[Run], Tool]:
    """Turn `(app, call, arguments) -> Answer` into a table entry; its last annotation is the argument model."""

    def entry(run: Run) -> Tool:
        last = list(signature(run).parameters)[-1]
        arguments = get_type_hints(run)[last]
        return Tool(
            name,
            group,
            effect,
            title,
            run,
            arguments,
            output,
            audience,
            idempotent,
            listed,
            timeout_seconds,
            rate,
            alone,
        )

    return entry


class Registry:
    """The tools by name, in the order they are listed."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for entry in tools:
            if entry.name in self._tools:
                raise ValueError(f"two tools are called {entry.name!r}")
            self._tools[entry.name] = entry

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, None when there is none."""
        return self._tools.get(name)
