"""The history of changes for the person, who sees all of this machine: list, show, net effect, and what to undo or redo."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

from holdfast.auth.context import ClientInfo
from holdfast.call import Call
from holdfast.changes.disk.images import Images
from holdfast.changes.history.contents import ContentSource
from holdfast.changes.history.effects import FileEffect, effect_of_failure, effect_of_item, effect_of_net_file
from holdfast.changes.history.net_effect import trace_back
from holdfast.changes.history.preview import UndoPreview, UndoStep
from holdfast.changes.model import Change, ChangeKind, ItemStatus, Op, Plan
from holdfast.changes.ports import Journal
from holdfast.changes.selection import ChangeFilter
from holdfast.errors import InvalidArgument, NotFound
from holdfast.folders.access.jail import Jail

PERSON = "you"
"""The name by which a filter means commands of the person."""

_PAGE_ROWS = 200

PathTest = Callable[[str], bool]


class ChangeHistory:
    """Reads the journal and compares it with the disk; changes nothing."""

    def __init__(self, journal: Journal, images: Images) -> None:
        self._journal = journal
        self._images = images

    def find(self, prefix: str) -> Plan:
        """Return the change whose id begins with a text. NotFound when there is none, InvalidArgument for several."""
        ids = self._journal.find_ids(prefix) if prefix else []
        if len(ids) > 1 and prefix not in ids:
            id_list = ", ".join(id_[:12] for id_ in ids[:10])
            raise InvalidArgument(f"Several changes match {prefix!r}: {id_list}. Give more of the id.")
        plan = self._journal.find(prefix if prefix in ids else ids[0]) if ids else None
        if plan is None:
            raise NotFound(f"There is no change {prefix!r}. `holdfast changes` lists them.")
        return plan

    def find_client(self, name: str) -> ClientInfo:
        """Return the client that a filter means, by its name or its name and version, in any case of letters.

        NotFound with the nearest name when no change was made by one.
        """
        if name == PERSON:
            return ClientInfo(is_command=True)
        known = self._journal.list_clients()
        for client in known:
            if name.casefold() == client.name.casefold():
                return ClientInfo(client.name)
        for client in known:
            if name.casefold() == str(client).casefold():
                return client
        names = list(dict.fromkeys(client.name for client in known))
        near = get_close_matches(name, names, n=1, cutoff=0.4) or names[:5]
        hint = f" Clients that made one: {', '.join(near)}." if near else ""
        raise NotFound(f"No change was made by a client {name!r}.{hint}")

    def find_changes(
        self, change_filter: ChangeFilter, limit: int, before_seq: int | None = None, has_path: PathTest | None = None
    ) -> list[Change]:
        """Return changes of all directories, newest first; with `has_path`, those with a path that passes it."""
        changes: list[Change] = []
        for change in self._iterate(change_filter, before_seq):
            if has_path is None or self._touches(change, has_path):
                changes.append(change)
            if len(changes) == limit:
                break
        return changes

    def plans(self, changes: Iterable[Change]) -> list[Plan]:
        """Return the changes with all of their items."""
        plans = (self._journal.find(change.id) for change in changes)
        return [plan for plan in plans if plan is not None]

    def roots_of(self, plans: Iterable[Plan]) -> tuple[str, ...]:
        """Return the directories of changes that are still there."""
        roots = {root for plan in plans for root in (plan.root_dir, plan.other_root) if root}
        return tuple(sorted(filter(os.path.isdir, roots)))

    def recent_roots(self) -> list[str]:
        """Return the directories in which the last changes and plans were made, also those that are gone."""
        return self._journal.list_recent_roots()

    def show(self, jail: Jail, plan: Plan) -> list[FileEffect]:
        """Return what one change did to each of its files, with the diff when it is one file."""
        source = ContentSource(self._journal, self._images, jail)
        done_items = [
            item for item in plan.items if item.status in (ItemStatus.DONE, ItemStatus.UNDONE) or item.op is Op.SAVE
        ]
        effects = [effect_of_item(source, item, with_diff=len(done_items) == 1) for item in done_items]
        failed = [item for item in plan.items if item.error_msg and item not in done_items]
        return effects + [effect_of_failure(item) for item in failed]

    def net_effect(self, jail: Jail, plans: Iterable[Plan]) -> list[FileEffect]:
        """Return what became of each file since before these changes, which come newest first."""
        source = ContentSource(self._journal, self._images, jail)
        effects = (effect_of_net_file(source, file) for file in trace_back(plans))
        return [effect for effect in effects if effect is not None]

    def find_newest_to_undo(self, change_filter: ChangeFilter, has_path: PathTest | None) -> list[Plan]:
        """Return the newest change in effect that is no undo of the person's; NotFound when there is none."""
        for change in self._iterate(change_filter, None):
            is_own_undo = change.kind is ChangeKind.UNDO and change.client.is_command
            if change.is_in_effect and not is_own_undo and (has_path is None or self._touches(change, has_path)):
                return self.plans([change])
        raise NotFound("There is nothing to undo.")

    def find_all_to_undo(self, change_filter: ChangeFilter, has_path: PathTest | None, limit: int) -> list[Plan]:
        """Return the changes in effect that a filter selects, newest first.

        An undo is left out when it is the person's, or when what it undid is selected too: undoing both would bring back
        what the filter is to take away.
        """
        changes = self.find_changes(change_filter, limit, None, has_path)
        selected = {change.id for change in changes}
        return self.plans(
            change
            for change in changes
            if change.is_in_effect
            and not (change.kind is ChangeKind.UNDO and (change.client.is_command or change.undoes in selected))
        )

    def find_undos_to_redo(self, change_filter: ChangeFilter, limit: int) -> list[Plan]:
        """Return the undos in effect that a filter selects, newest first: of what was done, not of other undos."""
        undos: list[Plan] = []
        for change in self._iterate(change_filter, None):
            undone = self._journal.find(change.undoes) if change.undoes and change.is_in_effect else None
            if undone is not None and undone.kind is not ChangeKind.UNDO:
                undos += self.plans([change])
            if len(undos) == limit:
                break
        if not undos:
            raise NotFound("There is nothing to redo.")
        return undos

    def undo_of(self, plan: Plan) -> Plan:
        """Return the undo to reverse so that a change is in effect again: the change itself when it is an undo.

        NotFound when it is not undone.
        """
        if plan.kind is ChangeKind.UNDO:
            return plan
        undo_id = self._journal.find_undo_of(plan.id)
        undo = self._journal.find(undo_id) if undo_id else None
        if undo is None:
            raise NotFound(f"Change {plan.id[:8]} is not undone, so it cannot be redone.")
        return undo

    def preview(self, jail: Jail, call: Call, plans: Sequence[Plan]) -> list[UndoStep]:
        """Return what undoing these changes in this order would do."""
        preview = UndoPreview(self._journal, self._images, jail, call)
        return [preview.step(plan) for plan in plans]

    def _iterate(self, change_filter: ChangeFilter, before_seq: int | None) -> Iterator[Change]:
        while page := self._journal.list_changes(None, _PAGE_ROWS, before_seq, change_filter):
            yield from page
            before_seq = page[-1].seq

    def _touches(self, change: Change, has_path: PathTest) -> bool:
        if any(has_path(path) for path in (change.path, change.dest_path) if path):
            return True
        plan = self._journal.find(change.id) if change.items > 1 else None
        items = plan.items if plan is not None else ()
        return any(has_path(path) for item in items for path in (item.src_path, item.dest_path) if path)
