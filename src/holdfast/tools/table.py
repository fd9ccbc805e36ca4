"""Collects every tool that `@tool` defines in these modules, in listing order."""

from types import ModuleType

from holdfast.tools.activity import entry as activity
from holdfast.tools.activity import figures
from holdfast.tools.folders import change, edit, find, read, read_text, search
from holdfast.tools.history import person as history_person
from holdfast.tools.organiser import entries as organiser
from holdfast.tools.panel import entries as panel
from holdfast.tools.person import files as person_files
from holdfast.tools.person import history as person_history
from holdfast.tools.person import plans as person_plans
from holdfast.tools.person import search as person_search
from holdfast.tools.pipe import entry as pipe
from holdfast.tools.registry import Registry, Tool
from holdfast.tools.review import entries as review
from holdfast.tools.store import entries as store
from holdfast.tools.store import person as store_person

_MODULES: tuple[ModuleType, ...] = (
    read_text,
    read,
    find,
    edit,
    change,
    history_person,
    person_files,
    person_history,
    person_plans,
    review,
    organiser,
    search,
    person_search,
    store,
    store_person,
    pipe,
    activity,
    figures,
    panel,
)

TOOLS = Registry(entry for module in _MODULES for entry in vars(module).values() if isinstance(entry, Tool))
