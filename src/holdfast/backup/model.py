"""What a backup is made of, and what making one needs of the databases."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from holdfast.errors import StorageDamaged

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE, IDENTITY, IMAGES, STORE, SETTINGS = "state.db", "state.id", "images", "store", "settings.yml"
FOLDERS = (IMAGES, "reviews", "quarantine")
"""Folders of the state folder that belong to its state.db."""
SECRETS = ("agent.token", "person.key", "metrics.token")

Report = Callable[[float, float | None, str], None]
"""Is told how many bytes are done, how many there are, and what is being done."""


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of a backup: a file with its content, a directory, or a symbolic link with its target."""

    name: str
    type: str
    bytes: int = 0
    sha256: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Absence:
    """Something of the state folder that is not in a backup, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself: the last entry in it."""

    version: str
    created_at: str
    state_version: int
    has_secrets: bool
    parts: tuple[Part, ...]
    absences: tuple[Absence, ...] = ()
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def read(cls, text: bytes) -> "Manifest":
        """Return a manifest from its JSON. StorageDamaged when it is none, or of a format that is not known here."""
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise StorageDamaged(
                    f"This backup has format {fields['format']!r}, made by Holdfast {fields['version']}; this one reads "
                    f"format {FORMAT}. Use that release or a later one."
                )
            parts = tuple(Part(**part) for part in fields.pop("parts"))
            absences = tuple(Absence(**absence) for absence in fields.pop("absences"))
            return cls(**fields, parts=parts, absences=absences)
        except (ValueError, TypeError, KeyError):
            raise StorageDamaged(
                "The manifest of this backup cannot be read; it is not a backup of Holdfast."
            ) from None


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What a finished or verified backup holds, and the SHA-256 of the whole file but its last line."""

    path: str
    bytes: int
    sha256: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """What goes into a backup. `absences` are what the caller knows to be elsewhere or left out."""

    has_secrets: bool = False
    has_settings: bool = True
    absences: Sequence[Absence] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The schema version of a state.db and the image files that it names."""

    version: int
    image_files: tuple[str, ...]


class DatabaseCopier(Protocol):
    """Copies databases that others use."""

    def copy(self, source: str, target: str) -> None:
        """Copy one consistent state of a database to a new file. StorageDamaged when the copy is not sound."""

    def check(self, path: str) -> None:
        """Raise StorageDamaged when a database that nobody else uses is not sound."""

    def state_facts(self, path: str) -> DatabaseFacts:
        """Return what a copied state.db says."""
