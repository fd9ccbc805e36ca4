"""Renders a directory as a JSON tree: top level first, as much as the token budget holds, and a cursor for the rest.

Directories are expanded level by level. One that is too deep, too big or beyond the budget stays collapsed and shows its
number of entries. On later pages a directory whose parent was on an earlier page is named by its path.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

from holdfast.call import Call
from holdfast.folders.finding.ignore import IgnoreRules
from holdfast.folders.finding.walk import (
    EntryType,
    PathKey,
    WalkProgress,
    WalkStart,
    list_names,
    list_unignored,
    open_beneath,
    open_start,
    path_key,
)
from holdfast.folders.service import Folders
from holdfast.text.budget import RESERVED_TOKENS, decode_cursor, estimate_tokens, invalid_cursor, more_notice
from holdfast.text.decode import has_lone_surrogate
from holdfast.text.display import display_name, is_plain
from holdfast.text.glob import Glob, State

BIG_DIRECTORY = 1_000
"""A directory with more entries than this stays collapsed, unless the tree starts there."""

MAX_DEPTH = 64
_MAX_COUNTED_DIRECTORIES = 2_000
_COLLAPSED_CHARS = len('{"name":,"type":"directory","entries":9999,"collapsed":true},')
_CHARS_PER_TOKEN = 4

Entries = list[tuple[str, EntryType]]


@dataclass(slots=True, eq=False)
class TreeNode:
    """A directory of the tree; `children` is None while it is collapsed."""

    relative: str
    name: str
    depth: int
    rules: IgnoreRules
    excluded: list[State]
    on_page: bool = False
    children: "list[str | TreeNode] | None" = None
    entries: int | None = None

    @property
    def sort_key(self) -> tuple[int, PathKey]:
        """Return a key that sorts directories in the order in which they are expanded."""
        return self.depth, path_key(self.relative)

    def text(self, name: str) -> str:
        """Return the node as JSON under the given name."""
        head = f'{{"name":{_quote_name(name)},"type":"directory",'
        if self.children is not None:
            return f'{head}"children":[{_join_children(self.children)}]}}'
        count = "" if self.entries is None else f'"entries":{self.entries},'
        return f'{head}{count}"collapsed":true}}'


@dataclass(frozen=True, slots=True)
class TreeCursor:
    """Where a page begins: in this directory, after this name."""

    folder: str = ""
    after: str = ""

    @classmethod
    def of(cls, cursor: str | None) -> "TreeCursor":
        """Decode a cursor; the beginning when there is none. InvalidArgument when it is not a cursor of a tree."""
        if cursor is None:
            return cls()
        state = decode_cursor(cursor)
        folder, after = state.get("in"), state.get("after")
        if not isinstance(folder, str) or not isinstance(after, str):
            raise invalid_cursor()
        return cls(folder, after)

    def is_reached(self, node: TreeNode) -> bool:
        """Return whether a directory is on this page or a later one."""
        return node.sort_key >= (self.folder.count("/"), path_key(self.folder))

    def remaining(self, node: TreeNode, entries: Entries) -> Entries:
        """Return the entries that earlier pages have not shown."""
        if not self.after or node.relative != self.folder:
            return entries
        after = os.fsencode(self.after)
        return [entry for entry in entries if os.fsencode(entry[0]) > after]


def directory_tree(
    folders: Folders,
    call: Call,
    path: str,
    *,
    exclude: Sequence[str] = (),
    max_depth: int | None = None,
    cursor: str | None = None,
) -> tuple[str, str]:
    """Return `[{"name","type","children"}]` as compact JSON, and a notice, empty when the tree is complete.

    Ignored entries and `.git` are left out.
    """
    globs = [Glob(pattern) for text in exclude for pattern in _exclusions(text)]
    resume = TreeCursor.of(cursor)
    with open_start(folders.jail, path, ignore=True) as start:
        builder = _Builder(folders, WalkProgress(call, None), start, min(max_depth or MAX_DEPTH, MAX_DEPTH))
        return builder.build(TreeNode("", "", 0, start.rules, [glob.start for glob in globs]), resume)


class _Builder:
    def __init__(self, folders: Folders, progress: WalkProgress, start: WalkStart, max_depth: int) -> None:
        self.jail, self.progress, self.start, self.max_depth = folders.jail, progress, start, max_depth
        self.left = (folders.settings.max_answer_tokens - RESERVED_TOKENS) * _CHARS_PER_TOKEN
        self.tops: list[TreeNode] = []
        self.queue: deque[TreeNode] = deque()
        self.entry_count = 0
        self.counted_directories = 0

    def build(self, root: TreeNode, resume: TreeCursor) -> tuple[str, str]:
        self.queue.append(root)
        stopped = self._expand(resume)
        for node in self.queue:
            self._count(node)
        texts = [
            _join_children(top.children or []) if top is root else top.text(top.relative.rstrip("/"))
            for top in self.tops
        ]
        return f"[{','.join(text for text in texts if text)}]", more_notice(stopped) if stopped else ""

    def _expand(self, resume: TreeCursor) -> dict[str, str] | None:
        """Expand directories until the budget is used up; return the position of the first that did not fit."""
        while self.queue:
            node = self.queue.popleft()
            self.progress.is_overdue(self.entry_count)
            entries = self._entries(node)
            if entries is None:
                continue
            below = {name: self._child_node(node, name) for name, kind in entries if kind is EntryType.DIRECTORY}
            if resume.is_reached(node):
                remaining = resume.remaining(node, entries)
                shown_until = self._show(node, remaining, below)
                if shown_until < len(remaining):
                    self.queue.appendleft(node)
                    self.queue.extend(below.values())
                    return {"in": node.relative, "after": remaining[shown_until - 1][0] if shown_until else ""}
            self.queue.extend(below.values())
        return None

    def _entries(self, node: TreeNode) -> Entries | None:
        """Return the entries of a directory; None when it stays collapsed."""
        if node.depth >= self.max_depth:
            self._count(node)
            return None
        fd = open_beneath(self.jail, self.start, node.relative)
        if fd is None:
            return []
        try:
            entries, node.rules = list_unignored(
                self.jail, fd, self.start.root, self.start.folder + node.relative, node.rules
            )
        finally:
            os.close(fd)
        self.entry_count += len(entries)
        if len(entries) > BIG_DIRECTORY and node.depth:
            node.entries = len(entries)
            return None
        if not node.excluded:
            return entries
        return [entry for entry in entries if not any(state.matches(entry[0]) for state in node.excluded)]

    def _child_node(self, node: TreeNode, name: str) -> TreeNode:
        excluded = [state.enter(name) for state in node.excluded]
        return TreeNode(f"{node.relative}{name}/", name, node.depth + 1, node.rules, excluded)

    def _show(self, node: TreeNode, entries: Entries, below: dict[str, TreeNode]) -> int:
        """Set the children of a directory and return how many; 0 when they fit only on a page of their own."""
        children: list[str | TreeNode] = []
        left = self.left
        for name, kind in entries:
            child = below.get(name) or _leaf_json(name, kind)
            left -= _cost(child)
            if left < 0 and (self.tops or children):
                if self.tops:
                    return 0
                break
            children.append(child)
        self.left, node.children = left, children
        for child in children:
            if isinstance(child, TreeNode):
                child.on_page = True
        if not node.on_page:
            self.left -= len(node.relative) + _COLLAPSED_CHARS
            self.tops.append(node)
        return len(children)

    def _count(self, node: TreeNode) -> None:
        """Count the entries of a collapsed directory, ignored ones included, in _MAX_COUNTED_DIRECTORIES at most."""
        if (
            not node.on_page
            or node.children is not None
            or node.entries is not None
            or self.counted_directories >= _MAX_COUNTED_DIRECTORIES
        ):
            return
        self.counted_directories += 1
        self.progress.is_overdue(self.entry_count)
        fd = open_beneath(self.jail, self.start, node.relative)
        if fd is not None:
            names = list_names(fd)
            policy = self.jail.policy_in(self.start.root, self.start.folder + node.relative)
            node.entries = len(names) - (0 if policy is None else len(policy.hidden_among(names)))
            os.close(fd)


def _exclusions(pattern: str) -> list[str]:
    """Return the globs of an exclude pattern: without a star it excludes that name at any depth."""
    return [pattern] if "*" in pattern else [pattern, f"**/{pattern}", f"**/{pattern}/**"]


def _leaf_json(name: str, kind: EntryType) -> str:
    return f'{{"name":{_quote_name(name)},"type":"{"link" if kind is EntryType.LINK else "file"}"}}'


def _quote_name(name: str) -> str:
    """Return a name as a JSON string; invisible and misleading characters are escaped."""
    if is_plain(name):
        return encode_basestring(name)
    return json.dumps(display_name(name) if has_lone_surrogate(name) else name)


def _cost(child: str | TreeNode) -> int:
    if isinstance(child, TreeNode):
        return _COLLAPSED_CHARS + estimate_tokens(child.name) * _CHARS_PER_TOKEN
    return len(child) + 1 if child.isascii() else (estimate_tokens(child) + 1) * _CHARS_PER_TOKEN


def _join_children(children: Iterable[str | TreeNode]) -> str:
    return ",".join(child if isinstance(child, str) else child.text(child.name) for child in children)
