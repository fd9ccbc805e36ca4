"""One configuration of one client: the edit that installs or uninstalls an entry, computed before anything is written."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.config_files.clients import McpClient
from holdfast.config_files.config_file import ConfigFile, backups_of, check_writable, read_config, replace_config
from holdfast.config_files.config_format import CannotEdit, ConfigFault, entries, install_entry, uninstall_entry
from holdfast.config_files.entry import EntryOptions, merge_environment, starts_holdfast, stdio_arguments
from holdfast.errors import Conflict, InvalidArgument
from holdfast.text.diff import unified_diff


@dataclass(frozen=True, slots=True)
class ConfigEdit:
    """What would be written: `content` is None when the file would be removed."""

    file: ConfigFile
    text: str
    content: bytes | None
    entry: dict[str, Any] | None

    @property
    def is_needed(self) -> bool:
        """Return whether there is anything to do."""
        return self.content != self.file.raw

    def diff(self) -> str:
        """Return the unified diff of the file."""
        return unified_diff(self.file.text, self.text, self.file.path)

    def write(self) -> str | None:
        """Write it; return the path of the backup, None when there was no file before."""
        return replace_config(self.file, self.content)


class Target:
    """The configuration of a client at one path, and the name of our entry in it; a project's own lies in its folder."""

    def __init__(self, client: McpClient, path: str, name: str, project: str | None = None) -> None:
        self._client = client
        self._path = path
        self._name = name
        self._project = project

    def entry(self) -> dict[str, Any] | None:
        """Return our entry as the file has it, None when it has none. Raises what reading the file raises."""
        file = read_config(self._path, self._project)
        try:
            return self._entry_in(file.text)
        except (ConfigFault, CannotEdit) as fault:
            raise self._refusal(fault, None) from None

    def plan_install(self, program: list[str], options: EntryOptions, variables: Mapping[str, str]) -> ConfigEdit:
        """Return the edit that makes the entry start the program with these options.

        Raises InvalidArgument for a broken file, Conflict for one that cannot be edited or whose entry of that name is
        another server, PermissionDenied for one that is read-only.
        """
        arguments = stdio_arguments(program, options)
        file = read_config(self._path, self._project)
        try:
            entry = self._our_entry_in(file.text)
            env = merge_environment(self._client.env_of(entry or {}), variables)
            fields = self._client.fields(program[0], arguments, env)
            if entry is not None and not env and self._client.env_of(entry):
                fields[self._client.keys.get("env", "env")] = {}
            text = install_entry(
                self._client.form, file.text, self._client.section, self._name, fields, self._defaults()
            )
        except (ConfigFault, CannotEdit) as fault:
            snippet = self.snippet(program, options, variables)
            raise self._refusal(fault, snippet) from None
        edit = ConfigEdit(file, text, file.encode(text) if text != file.text else file.raw, self._entry_in(text))
        if edit.is_needed:
            check_writable(file)
        return edit

    def plan_uninstall(self) -> ConfigEdit:
        """Return the edit that takes the entry out; a file that only holds what was installed becomes what it was before.

        Raises what `plan_install` raises.
        """
        file = read_config(self._path, self._project)
        try:
            entry = self._our_entry_in(file.text)
            if entry is None:
                return ConfigEdit(file, file.text, file.raw, None)
            text = uninstall_entry(self._client.form, file.text, self._client.section, self._name)
        except (ConfigFault, CannotEdit) as fault:
            raise self._refusal(fault, None) from None
        check_writable(file)
        return self._before_install(file, entry) or ConfigEdit(file, text, file.encode(text), None)

    def snippet(self, program: list[str], options: EntryOptions, variables: Mapping[str, str]) -> str:
        """Return the configuration that holds the entry and nothing else."""
        fields = self._client.fields(program[0], stdio_arguments(program, options), dict(variables))
        return self._client.form.add("", self._client.section, self._name, {**self._defaults(), **fields})

    def _defaults(self) -> dict[str, Any]:
        defaults = dict(self._client.defaults)
        return {**defaults, "name": self._name} if "name" in defaults else defaults

    def _before_install(self, file: ConfigFile, entry: Mapping[str, Any]) -> ConfigEdit | None:
        """Return the edit back to the bytes before the entry was added, None when something else was changed since."""
        form, section = self._client.form, self._client.section
        was_there = False
        for raw in backups_of(file):
            try:
                before = raw.decode("utf-8-sig")
                if self._entry_in(before) is not None:
                    continue
                was_there = True
                if form.add(before, section, self._name, entry) == file.text:
                    return ConfigEdit(file, before, raw, None)
            except (UnicodeDecodeError, ConfigFault, CannotEdit):
                continue
        if not was_there and form.add("", section, self._name, entry) == file.text:
            return ConfigEdit(file, "", None, None)
        return None

    def _entry_in(self, text: str) -> dict[str, Any] | None:
        entry = entries(self._client.form.read(text), self._client.section).get(self._name)
        if entry is not None and not isinstance(entry, dict):
            raise CannotEdit(f"{self._name!r} in {self._client.section!r} is not a mapping")
        return entry

    def _our_entry_in(self, text: str) -> dict[str, Any] | None:
        entry = self._entry_in(text)
        if entry is not None and not starts_holdfast(self._client.command_of(entry)):
            raise Conflict(
                f"{self._path} has another server named {self._name!r}; it was left alone. "
                "Choose another name with --name, or take that entry out first."
            )
        return entry

    def _refusal(self, fault: Exception, snippet: str | None) -> Exception:
        if isinstance(fault, ConfigFault):
            return InvalidArgument(
                f"{self._path} is broken at {fault}. Nothing was changed: mend it and repeat the command.",
                path=self._path, line=fault.line, column=fault.column,
            )  # fmt: skip
        by_hand = f" Write it by hand:\n{snippet.rstrip()}" if snippet else " Edit it by hand."
        return Conflict(f"{self._path} cannot be edited: {fault}. Nothing was changed.{by_hand}", path=self._path)


def absolute_folder(folder: str, client: McpClient) -> str:
    """Return a folder for an entry: absolute, or what the client replaces by its project's. Raises InvalidArgument."""
    if folder == client.project_folder:
        return folder
    path = os.path.abspath(os.path.expanduser(folder))
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"The folder {folder!r} has a name that is not valid Unicode text.") from None
    if not os.path.isdir(path):
        raise InvalidArgument(
            f"There is no folder {path!r}: an agent could not use it. Make it first, or name another."
        )
    return path
