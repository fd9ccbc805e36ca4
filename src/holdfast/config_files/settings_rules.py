"""Reads and replaces the rules of the policy in Holdfast's settings file, under the hash of what was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from holdfast.config.load import LoadedSettings, parse
from holdfast.config.settings import RuleSettings, Settings
from holdfast.config_files.config_file import ConfigFile, backups_of, check_writable, read_config, replace_config
from holdfast.config_files.config_format import CannotEdit, ConfigFault
from holdfast.config_files.edit_rules import replace_rules
from holdfast.errors import Conflict, InvalidArgument

ABSENT = "absent"
"""The hash of a settings file that does not exist."""


@dataclass(frozen=True, slots=True)
class RulesFile:
    """The settings file as it was read: its hash, and its rules as they are written there."""

    file: ConfigFile
    hash: str
    rules: tuple[RuleSettings, ...]


@dataclass(frozen=True, slots=True)
class RulesChange:
    """What was written, the settings as they are after it, and the backup of the file before Holdfast first wrote to it."""

    written: RulesFile
    loaded: LoadedSettings
    backup: str | None


def read_rules(path: str) -> RulesFile:
    """Read the rules; there are none without a file. Raises InvalidArgument when the file is no valid settings file."""
    file = read_config(path)
    settings = Settings() if file.raw is None else parse(file.text, path).settings
    return RulesFile(file, hash_of(file), tuple(settings.policy.rules))


def hash_of(file: ConfigFile) -> str:
    """Return the hash that a change of the file must name."""
    return ABSENT if file.raw is None else f"sha256:{sha256(file.raw).hexdigest()}"


def change_rules(path: str, expected_hash: str, rules: Sequence[RuleSettings]) -> RulesChange:
    """Replace the rules and nothing else.

    Raises Conflict with `present_hash` when the file is not the one that was read, or when its form is not one that is edited
    here; InvalidArgument when it is no valid settings file, PermissionDenied when it may not be written.
    """
    before = read_rules(path)
    if before.hash != expected_hash:
        raise Conflict(
            f"{path} has changed since its rules were read. Nothing was written: look at them again.",
            present_hash=before.hash,
        )
    file = before.file
    try:
        text = replace_rules(file.text, [_members(rule) for rule in rules])
    except (CannotEdit, ConfigFault) as fault:
        raise Conflict(
            f"{path} cannot be edited: {fault}. Nothing was written: change policy.rules there by hand."
        ) from None
    loaded = parse(text, path)
    if list(loaded.settings.policy.rules) != list(rules):
        raise InvalidArgument("The rules would not be read back as they were given. Nothing was written.")
    content = file.encode(text)
    if content == file.raw:
        return RulesChange(before, loaded, None)
    check_writable(file)
    backup = replace_config(file, content, keeps_backup=not any(True for _ in backups_of(file)))
    return RulesChange(read_rules(path), loaded, backup)


def _members(rule: RuleSettings) -> dict[str, str]:
    """Return the members of a rule that say something, in the order of the documentation."""
    return {name: str(value) for name, value in rule.model_dump().items() if value}
