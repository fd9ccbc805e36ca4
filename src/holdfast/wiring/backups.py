"""Makes, verifies and restores backups of a state folder, with the databases that this deployment uses."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex

from holdfast.adapters.open_store import is_postgres
from holdfast.adapters.sqlite.copy import SqliteCopier
from holdfast.adapters.sqlite.state.migrations import STEPS
from holdfast.backup.create import BackupMaker
from holdfast.backup.model import SETTINGS, STORE, Absence, BackupContents, BackupOptions, Report
from holdfast.backup.restore import REPLACED, STAGED_PREFIX, stage_backup, verify_backup
from holdfast.config.environment import SETTINGS_VARIABLE, variable
from holdfast.config.load import load, secret_names
from holdfast.errors import InvalidArgument

_POSTGRES = "the project store is in PostgreSQL: back it up with pg_dump, see docs/how-to/backup.md"
_KEYS = "left out; a server makes new ones. --with-secrets takes them along"


def create_backup(state_dir: str, path: str, report: Report, *, has_secrets: bool) -> BackupContents:
    """Back a state folder up to a file, beside a running server or without one. See `BackupMaker.run`."""
    absences = [] if has_secrets else [Absence("agent.token, person.key, metrics.token", _KEYS)]
    absences.append(Absence("browser.sessions", "browsers sign in again"))
    absences.append(Absence("folders", "the search indexes of local folders are made again from the folders"))
    if is_postgres(variable("DATABASE_URL")):
        absences.append(Absence("the project store", _POSTGRES))
    has_settings, reason = _judge_settings(state_dir, has_secrets=has_secrets)
    if reason:
        absences.append(Absence(SETTINGS, reason))
    options = BackupOptions(has_secrets, has_settings, absences)
    return BackupMaker(state_dir, SqliteCopier(), report).run(path, options)


def check_backup(path: str, report: Report) -> BackupContents:
    """Verify a backup. StorageDamaged when a byte of it is not as it was written."""
    return verify_backup(path, report)


@dataclass(frozen=True, slots=True)
class StagedRestore:
    """A verified backup in a folder of the state folder, and what it replaces."""

    contents: BackupContents
    staged: str
    aside: str
    replaced: tuple[str, ...]


def stage_restore(state_dir: str, path: str, report: Report) -> StagedRestore:
    """Lay a verified backup out in a state folder whose server's lock this process holds; nothing is replaced yet."""
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    staged, aside = f"{STAGED_PREFIX}{token_hex(8)}", f"replaced-{at}-{token_hex(2)}"
    contents = stage_backup(path, state_dir, staged, len(STEPS), SqliteCopier(), report)
    has_store = any(part.name.startswith(f"{STORE}/") for part in contents.manifest.parts)
    replaces_store = has_store or not is_postgres(variable("DATABASE_URL"))
    return StagedRestore(contents, staged, aside, (*REPLACED, *([STORE] if replaces_store else [])))


def _judge_settings(state_dir: str, *, has_secrets: bool) -> tuple[bool, str]:
    """Return whether the settings belong into a backup, and otherwise why not."""
    if variable(SETTINGS_VARIABLE):
        return False, "the settings are in another file (HOLDFAST_SETTINGS); back it up yourself"
    if not os.path.exists(os.path.join(state_dir, SETTINGS)):
        return False, ""
    if has_secrets:
        return True, ""
    try:
        names = secret_names(load(os.path.join(state_dir, SETTINGS)).settings)
    except InvalidArgument:
        return False, "they cannot be read, so nobody knows whether they hold secrets; --with-secrets takes them along"
    if names:
        return False, f"they hold secrets ({', '.join(names)}); --with-secrets takes them along"
    return True, ""
