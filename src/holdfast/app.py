"""The application: the services that tools use, for whichever caller."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.auth.context import Caller
from holdfast.changes.service import Changes
from holdfast.config.settings import Settings
from holdfast.folders.service import Folders
from holdfast.store.service import Store


@dataclass(frozen=True)
class App:
    """`folders_of(caller)` opens the caller's roots on first use and keeps them; `store` is the project store."""

    settings: Settings
    folders_of: Callable[[Caller], Folders]
    changes: Changes
    store: Store
