"""Loads and validates the settings file; every problem names its line, the setting and the nearest match."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import SecretStr, ValidationError

from holdfast.config.describe import MASK, ROOT, annotation_at, describe_type, setting_rows, setting_values
from holdfast.config.document import at_line, read_document, read_text
from holdfast.config.environment import SETTINGS_VARIABLE, state_dir, variable
from holdfast.config.settings import PolicySettings, Settings
from holdfast.errors import InvalidArgument

DEFAULT = "default"
FILE_NAME = "settings.yml"
_OTHER_NAMES = ("settings.yaml", "settings.json", "config.yml", "config.yaml")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force, the file they came from, and the line of every value in it."""

    settings: Settings
    path: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def source_of(self, name: str) -> str:
        """Return where the value of a dotted name came from: `default`, or the file and its line."""
        line = self.lines.get(name)
        return DEFAULT if line is None else f"{self.path}:{line}"


def load(path: str | None = None) -> LoadedSettings:
    """Load the settings file at `path`, else that of HOLDFAST_SETTINGS, else settings.yml in the state folder.

    The first two must exist; without any file every setting has its default.
    Raises InvalidArgument, naming every problem, before anything has started.
    """
    path = path or variable(SETTINGS_VARIABLE)
    if path is None:
        path = os.path.join(state_dir(), FILE_NAME)
        if not os.path.exists(path):
            return LoadedSettings(Settings())
    return parse(read_text(path), path)


def secret_names(settings: Settings) -> list[str]:
    """Return the dotted names of the settings in force that hold a secret."""
    return [name for name, value in setting_values(settings) if value == MASK]


def settings_file_place() -> str:
    """Return the path of the settings file that is read, whether it exists or not."""
    return variable(SETTINGS_VARIABLE) or os.path.join(state_dir(), FILE_NAME)


def find_misnamed_file() -> str | None:
    """Return a file in the state folder that was meant as the settings file but is not read because of its name."""
    if os.path.exists(settings_file_place()):
        return None
    paths = (os.path.join(state_dir(), name) for name in _OTHER_NAMES)
    return next(filter(os.path.exists, paths), None)


class PolicyFile:
    """The rules of the policy in a settings file, read again when the file changes while a server runs."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or settings_file_place()
        self._version = self._read_version()

    def read_changed(self) -> PolicySettings | None:
        """Return the rules when the file has changed since the last call. Raises InvalidArgument when it is not valid.

        None also while there is no file: an editor may be replacing it.
        """
        version = self._read_version()
        if version is None or version == self._version:
            return None
        self._version = version
        return parse(read_text(self.path), self.path).settings.policy

    def _read_version(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def parse(text: str, path: str) -> LoadedSettings:
    """Parse the text of a settings file; `path` is its name in messages."""
    tree, lines = read_document(text, path, ROOT)
    try:
        settings = Settings.model_validate(tree, strict=True)
    except ValidationError as error:
        problems = [_problem(detail, path, lines) for detail in error.errors(include_url=False)]
        raise InvalidArgument("\n".join(problems), problems=problems) from None
    return LoadedSettings(settings, path, lines)


def check_names(loaded: LoadedSettings, tools: Iterable[str], groups: Iterable[str]) -> None:
    """Raise InvalidArgument when the settings name an unknown tool or group; the message suggests the nearest one."""
    known = {"tools": sorted(tools), "groups": sorted(groups)}
    problems = [
        f"{at_line(loaded.path, loaded.lines.get(f'{ROOT}.mcp.{section}.{name}'))}unknown setting {ROOT}.mcp.{section}.{name}"
        f"{_did_you_mean(name, names, f'{ROOT}.mcp.{section}.')}"
        for section, names in known.items()
        for name in getattr(loaded.settings.mcp, section)
        if name not in names
    ]
    if problems:
        raise InvalidArgument("\n".join(problems), problems=problems)


def _problem(detail: Any, path: str, lines: Mapping[str, int]) -> str:
    location: tuple[int | str, ...] = detail["loc"]
    name = ".".join([ROOT, *map(str, location)])
    where = at_line(path, _line_of(name, lines))
    if detail["type"] == "extra_forbidden":
        return f"{where}unknown setting {name}{_suggest(name)}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"].endswith(("_type", "literal_error")):
        return f"{where}{name}: expected {describe_type(annotation_at(location))}{_describe_input(location, detail['input'])}"
    return f"{where}{name}: {message[0].lower()}{message[1:]}"


def _describe_input(location: tuple[int | str, ...], value: Any) -> str:
    """Return the wrong value for the message, nothing where a secret is expected."""
    if annotation_at(location) is SecretStr or isinstance(value, dict | list):
        return ""
    return f", got {value!r:.60}"


def _suggest(name: str) -> str:
    section, _, key = name.rpartition(".")
    known = {row.name for row in setting_rows()}
    known |= {row.rsplit(".", depth)[0] for row in known for depth in range(1, row.count(".") + 1)}
    siblings = sorted(setting.rpartition(".")[2] for setting in known if setting.rpartition(".")[0] == section)
    if suggestion := _did_you_mean(key, siblings, f"{section}."):
        return suggestion
    namesakes = sorted(setting for setting in known if setting.rpartition(".")[2] == key)
    return f"; did you mean {namesakes[0]}?" if namesakes else _did_you_mean(name, sorted(known), "")


def _did_you_mean(name: str, known: list[str], prefix: str) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def _line_of(name: str, lines: Mapping[str, int]) -> int | None:
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return lines.get(name)
