"""Refuses changes that the policy does not leave to the client: hidden and read-only paths, and those that a person decides.

Every single change passes `check_paths` with the paths of its items, every plan too. A directory that moves or goes takes
its content along, so `check_tree` looks at every name in it, where it is and where it would be.
"""

import os
from collections.abc import Iterable, Sequence

from holdfast.call import Call
from holdfast.changes.disk.places import is_directory
from holdfast.changes.model import Item, NodeType, Op, Plan, is_beneath
from holdfast.errors import AccessDenied, PermissionDenied
from holdfast.folders.access.jail import Jail, Place
from holdfast.folders.access.policy import Access, FolderPolicy, PolicyRule
from holdfast.folders.access.syscalls import READ_DIRECTORY


class ReviewNeeded(PermissionDenied):
    """A change that waits for the person; a tool that can put it before them does that instead."""


def check_paths(jail: Jail, paths: Iterable[str]) -> None:
    """Raise when the policy does not leave a change of these real paths to the client; the strictest rule counts.

    AccessDenied for a hidden path, PermissionDenied for one that is read-only, ReviewNeeded where a person decides. Only
    the first path is named, because the others may lie in it and be hidden.
    """
    policy = jail.policy
    if policy is None:
        return
    first_path, strictest = "", None
    for path in paths:
        first_path = first_path or path
        strictest = _stricter(strictest, policy.rule_of(path))
    if strictest is not None:
        is_itself = policy.rule_of(first_path) is strictest
        _refuse(jail, strictest, first_path if is_itself else f"something in {first_path}")


def check_tree(jail: Jail, call: Call, source: Place, target: str | None = None) -> None:
    """Do the same for an entry and everything in it, which would be removed, or moved to the target.

    PermissionDenied also for a directory that cannot be read, in which rules may hold.
    """
    policy = jail.policy
    if policy is None:
        return
    check_paths(jail, [source.path] if target is None else [source.path, target])
    here = policy.folder(source.path)
    there = here if target is None else policy.folder(target)
    if is_directory(source.status) and not (here.is_open and there.is_open):
        strictest = _strictest_in(call, source, (here, there))
        if strictest is not None:
            _refuse(jail, strictest, f"something in {source.path}")


def check_plan(jail: Jail, call: Call, items: Sequence[Item]) -> None:
    """Do the same for everything that a plan would make, move and remove."""
    if jail.policy is None:
        return
    for item in items:
        check_paths(jail, [path for path in (item.src_path, item.dest_path) if path])
        if item.op is Op.MOVE and item.node is NodeType.DIRECTORY:
            with jail.place(item.src_path, follow=False) as place:
                check_tree(jail, call, place, item.dest_path)


def is_visible(plan: Plan, jail: Jail) -> bool:
    """Return whether a change is one of the caller's: beneath its roots, and not of a path that is hidden from it."""
    if not all(is_beneath(root, jail.allowed_paths) for root in (plan.root_dir, plan.other_root) if root):
        return False
    return not plan.items or not hides_any(jail, (plan.first.src_path, plan.first.dest_path))


def hides_any(jail: Jail, paths: Iterable[str | None]) -> bool:
    """Return whether one of these real paths is hidden from the caller."""
    return jail.policy is not None and any(jail.hides(path) for path in paths if path)


def _strictest_in(call: Call, top: Place, policies: tuple[FolderPolicy, FolderPolicy]) -> PolicyRule | None:
    """Return the strictest rule for anything in a directory, where it is and where it would be."""
    strictest: PolicyRule | None = None
    pending = [(os.dup(top.parent_fd), top.name, policies)]
    try:
        while pending:
            parent_fd, name, (here, there) = pending.pop()
            call.check()
            try:
                fd = os.open(name, READ_DIRECTORY, dir_fd=parent_fd)
            except PermissionError:
                raise PermissionDenied(f"A directory in {top.path} cannot be read, so it may not move or go.") from None
            except OSError:
                continue  # it is gone, or something else by now, which its own name was checked for
            finally:
                os.close(parent_fd)
            try:
                with os.scandir(fd) as entries:
                    for entry in entries:
                        strictest = _stricter(strictest, here.rule_for(entry.name), there.rule_for(entry.name))
                        if entry.is_dir(follow_symlinks=False):
                            pending.append((os.dup(fd), entry.name, (here.enter(entry.name), there.enter(entry.name))))
            finally:
                os.close(fd)
    finally:
        for parent_fd, _, _ in pending:
            os.close(parent_fd)
    return strictest


def _stricter(*rules: PolicyRule | None) -> PolicyRule | None:
    """Return the strictest rule, the first of equals."""
    return max((rule for rule in rules if rule is not None), key=lambda rule: rule.access, default=None)


def _refuse(jail: Jail, rule: PolicyRule, what: str) -> None:
    if rule.access is Access.DENY:
        raise AccessDenied(f"Access denied: {what} is closed to this client. Nothing was changed.")
    if rule.access is Access.READ_ONLY:
        raise PermissionDenied(f"{what} is read-only by {rule.source}. Nothing was changed.")
    if rule.access is Access.REVIEW and not jail.is_approved:
        raise ReviewNeeded(f"{what} changes only with the user's approval, by {rule.source}. Nothing was changed.")
