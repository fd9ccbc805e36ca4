"""Defines a tool: its name, its group, who may call it, what it takes and what it does to files.

Its JSON Schema has the flat form that every client can read: no `$ref`, no `oneOf`, no titles. An optional parameter is one
that is not required, so it has no `null` alternative; a required member of an answer keeps it. Every caller pays for it in
tokens, so `required` of an answer is left out, and only the outermost object says that unknown names are refused.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property
from inspect import cleandoc, iscoroutinefunction, signature
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.auth.rates import Rate
from holdfast.call import Call, ProgressSink
from holdfast.text.edit import Edit
from holdfast.tools.answer import Answer
from holdfast.tools.threads import Load


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown names are refused, not ignored; null leaves an optional one out.

    Some models' APIs have no optional parameters, only ones that may be null.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_nulls_out(cls, values: Any) -> Any:
        if not isinstance(values, dict) or None not in values.values():
            return values
        optional = {field.alias or name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in values.items() if value is not None or name not in optional}


class NoArguments(Arguments):
    """Arguments of a tool that takes none."""


class ExactEdit(Arguments):
    """One replacement of exact text."""

    old_string: str = Field(
        description="Exact text to replace; empty to create the file, or OVERWRITE_FILE or APPEND_TO_FILE."
    )
    new_string: str = Field(description="Text to put in its place.")
    expected_replacements: int = Field(1, ge=1, description="How often old_string must occur.")

    def as_edit(self) -> Edit:
        """Return the edit in the form that the edit engine takes."""
        return Edit(self.old_string, self.new_string, self.expected_replacements)


class Group(StrEnum):
    """The groups that settings can switch off whole."""

    CORE = "core"
    FILES = "files"
    REVIEW = "review"
    ORGANISE = "organise"
    STORE = "store"
    SEARCH = "search"


SELECTABLE_GROUPS = tuple(group for group in Group if group is not Group.CORE)
"""The groups that a client can choose from when it wants fewer tools."""

ALWAYS_OFFERED = frozenset({"mcp_pipe", "list_allowed_directories"})
"""Tools that a client has whatever groups it chose."""

LOCAL_GROUPS = frozenset({Group.FILES, Group.REVIEW, Group.ORGANISE, Group.SEARCH})
"""Groups that need folders on this machine, so they exist only for its own user."""


class Panel(StrEnum):
    """The pages that a client may show inside its chat, by their addresses as resources."""

    REVIEW = "ui://holdfast/review.html"
    PLAN = "ui://holdfast/plan.html"


class Effect(Enum):
    """What a call may do, from which the protocol's hints follow."""

    READ = "read"
    ADD = "add"
    CHANGE = "change"
    DESTROY = "destroy"


T = TypeVar("T")


class Runner(Protocol):
    """What an async tool runs its work with: the tools of its caller, and threads for blocking functions."""

    def find(self, name: str) -> "Tool":
        """Return the tool that the caller may call by that name. Raises NotFound."""

    async def call(self, name: str, arguments: dict[str, Any], progress: ProgressSink) -> Answer:
        """Call a tool on the same path as a call from a door. Raises HoldfastError and nothing else."""

    async def in_thread(self, function: Callable[..., T], *args: Any, load: Load = Load.LIGHT) -> T:
        """Call a blocking function in one of the dispatcher's threads."""


Run = Callable[[App, Call, Any], Answer]
RunAsync = Callable[[App, Call, Any, Runner], Awaitable[Answer]]
"""Waits for other tools or for a person on the event loop, so it holds no thread meanwhile."""


class PersonNeeded(BaseException):
    """Raised by a tool in its thread when a person decides on what was asked: the call goes on with `wait` on the event loop.

    A BaseException, as a cancellation is: handlers of errors must let it pass.
    """

    def __init__(self, wait: Callable[[Call, Runner], Awaitable[Answer]]) -> None:
        super().__init__()
        self.wait = wait


@dataclass(frozen=True)
class Tool:
    """One entry of the table: either `run`, which is called in a thread, or `run_async`, on the event loop.

    A tool that runs other tools or waits for a person is not `allowed_in_pipe`. A tool that always starts a child says so
    by its load; one that rarely does need not. A tool that `may_ask` raises PersonNeeded where a rule wants consent. Only the
    tool that shows the call log is not recorded in it. `panel` is the page in which a client may show the answer.
    """

    name: str
    group: Group
    effect: Effect
    title: str
    run: Run | None
    arguments: type[Arguments]
    output: type[BaseModel] | None = None
    audience: CallerKind = CallerKind.AGENT
    idempotent: bool = False
    listed: bool = True
    timeout_seconds: float = 120.0
    rate: Rate | None = None
    load: Load = Load.LIGHT
    allowed_in_pipe: bool = True
    is_recorded: bool = True
    may_ask: bool = False
    panel: Panel | None = None
    run_async: RunAsync | None = None

    @property
    def rate_class(self) -> Rate:
        """Return the class whose limit a call counts against."""
        return self.rate or (Rate.WRITE if self.mutates else Rate.READ)

    @property
    def mutates(self) -> bool:
        """Return whether read-only mode refuses it."""
        return self.effect is not Effect.READ

    @cached_property
    def description(self) -> str:
        """Return the manual that agents read: the docstring of the function."""
        return cleandoc((self.run or self.run_async).__doc__ or "")

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
    audience: CallerKind = CallerKind.AGENT,
    idempotent: bool = False,
    listed: bool = True,
    timeout_seconds: float = 120.0,
    rate: Rate | None = None,
    load: Load = Load.LIGHT,
    allowed_in_pipe: bool = True,
    is_recorded: bool = True,
    may_ask: bool = False,
    panel: Panel | None = None,
) -> Callable[[Run | RunAsync], Tool]:
    """Turn a function into a table entry; its third parameter's annotation is the argument model.

    The function is `(app, call, args) -> Answer`, or `async (app, call, args, runner) -> Answer`.
    """

    def entry(function: Run | RunAsync) -> Tool:
        is_async = iscoroutinefunction(function)
        return Tool(
            name=name,
            group=group,
            effect=effect,
            title=title,
            run=None if is_async else cast("Run", function),
            arguments=get_type_hints(function)[list(signature(function).parameters)[2]],
            output=output,
            audience=audience,
            idempotent=idempotent,
            listed=listed,
            timeout_seconds=timeout_seconds,
            rate=rate,
            load=load,
            allowed_in_pipe=allowed_in_pipe,
            is_recorded=is_recorded,
            may_ask=may_ask,
            panel=panel,
            run_async=cast("RunAsync", function) if is_async else None,
        )

    return entry


OTHER_NAMES = {
    "append": "append_text",
    "append_file": "append_text",
    "batch": "mcp_pipe",
    "cat": "read_text_file",
    "codebase_search": "search_folders",
    "create_file": "write_file",
    "delete": "delete_file",
    "dir": "list_directory",
    "edit": "edit_files",
    "file_info": "get_file_info",
    "find": "search_files",
    "find_files": "search_files",
    "glob": "search_files",
    "grep": "grep_content",
    "head": "read_text_file",
    "jq": "query_json",
    "list": "list_directory",
    "list_dir": "list_directory",
    "list_files": "list_directory",
    "ls": "list_directory",
    "make_directory": "create_directory",
    "mkdir": "create_directory",
    "multi_edit": "edit_files",
    "mv": "move_file",
    "open_file": "read_text_file",
    "organize": "create_organization_plan",
    "read": "read_text_file",
    "read_file": "read_text_file",
    "read_image": "read_media_file",
    "remove": "delete_file",
    "remove_file": "delete_file",
    "rename": "move_file",
    "rename_file": "move_file",
    "replace": "edit_files",
    "replace_in_file": "edit_files",
    "revert": "undo_change",
    "rg": "grep_content",
    "rm": "delete_file",
    "rmdir": "delete_file",
    "save_file": "write_file",
    "search": "grep_content",
    "search_code": "grep_content",
    "search_content": "grep_content",
    "semantic_search": "search_folders",
    "stat": "get_file_info",
    "str_replace": "edit_files",
    "str_replace_based_edit_tool": "edit_files",
    "str_replace_editor": "edit_files",
    "tail": "read_text_file",
    "touch": "write_file",
    "tree": "directory_tree",
    "undo": "undo_change",
    "view": "read_text_file",
    "write": "write_file",
}
"""What other servers and commands call the work of a tool, to be suggested and never run."""


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

    def vocabulary(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of all arguments, and the fixed words that arguments and pipes are made of."""
        names, words = set[str](), set(self._tools)
        for entry in self:
            _collect_vocabulary(entry.input_schema, names, words)
        return frozenset(names), frozenset(words)


def _collect_vocabulary(schema: dict[str, Any], names: set[str], words: set[str]) -> None:
    words.update(word for word in schema.get("enum", ()) if isinstance(word, str))
    names.update(schema.get("properties", {}))
    for inner in schema.get("properties", {}).values():
        _collect_vocabulary(inner, names, words)
    if "items" in schema:
        _collect_vocabulary(schema["items"], names, words)


_LEFT_OUT_OF_ANSWERS = ("required", "default")


def flat_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's schema with every reference inlined and every decoration removed."""
    raw = model.model_json_schema(by_alias=True)
    definitions = raw.pop("$defs", {})
    flat: dict[str, Any] = _flatten(raw, definitions)
    flat.pop("description", None)
    return flat


def answer_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an answer: the types of its members and no more."""
    slim: dict[str, Any] = _slim(flat_schema(model))
    return slim


def _slim(node: Any) -> Any:
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    rest = {
        key: value
        for key, value in node.items()
        if key not in _LEFT_OUT_OF_ANSWERS and (key, value) != ("additionalProperties", True)
    }
    return {key: _slim_properties(value) if key == "properties" else _slim(value) for key, value in rest.items()}


def _slim_properties(members: dict[str, Any]) -> dict[str, Any]:
    return {name: _slim(member) for name, member in members.items()}


def _flatten(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_flatten(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = dict(definitions[node["$ref"].rsplit("/", 1)[-1]])
        for decoration in ("description", "additionalProperties"):
            target.pop(decoration, None)
        return _flatten({**target, **{key: value for key, value in node.items() if key != "$ref"}}, definitions)
    if "anyOf" in node and node.get("default", ...) is None:
        node = _without_null(node)
        if "$ref" in node:
            return _flatten(node, definitions)
    rest = {key: value for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if rest.get("default", ...) is None:
        del rest["default"]
    return {key: _flatten_member(key, value, definitions) for key, value in rest.items()}


def _flatten_member(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    """Flatten one member; the names of properties are names, so one called `title` is no decoration."""
    if key == "properties":
        return {name: _flatten(sub, definitions) for name, sub in value.items()}
    return _flatten(value, definitions)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
    if len(choices) == 1:
        return {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    return {**node, "anyOf": choices}
