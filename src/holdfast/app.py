"""Defines `App`: the services that tools use."""

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.auth.context import AuthContext, Caller
from holdfast.auth.panel_tokens import PanelTokens
from holdfast.bulletin import Bulletin
from holdfast.changes.service import Changes
from holdfast.config.settings import Settings
from holdfast.folders.finding.browse import FolderBrowser
from holdfast.folders.service import Folders
from holdfast.observe.observer import Observer
from holdfast.organiser.service import Organiser
from holdfast.review.service import Reviews
from holdfast.search.folders.service import FolderSearch
from holdfast.search.service import Search
from holdfast.store.service import Store


@dataclass
class ConsoleAddress:
    """Where the console is, once the server listens; empty while there is none."""

    url: str = ""


@dataclass(frozen=True)
class App:
    """`folders_of(caller)` opens the caller's roots on first use and keeps them; `store` is the project store.

    `reviews` are the changes that wait for a person. `observer` is told of every call. `on_model_key` is called after each
    call whose caller has a key for models, and never blocks. `bulletin` tells what happens to reviews, plans and changes.
    `connected_roots` are the directories that agents were given since the server started, and whether each was given to
    the server itself; `browser` lists folders for a person. `panel_tokens` are those by which panels decide, and `console`
    is where they send their reader.
    """

    settings: Settings
    folders_of: Callable[[Caller], Folders]
    changes: Changes
    store: Store
    search: Search
    folder_search: FolderSearch
    reviews: Reviews
    organiser: Organiser
    observer: Observer
    on_model_key: Callable[[AuthContext], None] = lambda _auth: None
    bulletin: Bulletin = field(default_factory=Bulletin)
    connected_roots: Callable[[], list[tuple[str, bool]]] = list
    browser: FolderBrowser = field(default_factory=FolderBrowser)
    panel_tokens: PanelTokens = field(default_factory=PanelTokens)
    console: ConsoleAddress = field(default_factory=ConsoleAddress)
