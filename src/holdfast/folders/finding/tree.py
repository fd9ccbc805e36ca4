"""A directory as a JSON tree: the top first, as much of the rest as the budget holds, and a cursor for what is left.

Directories are opened out level by level. One that is too deep, too big or beyond the budget stays collapsed and says
how many entries it has. On later pages a directory whose parent was shown before is named by its path.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

from holdfast.call import Call
from holdfast.folders.finding.glob import Glob, State
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
from holdfast.text.display import display_name, is_plain

BIG_DIRECTORY = 1_000
"""A directory with more entries than this stays collapsed, unless the tree starts there."""

DEEPEST = 64
_COUNTED = 2_000
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
    barred: list[State]
    on_page: bool = False
    children: "list[str | TreeNode] | None" = None
    entries: int | None = None

    @property
    def place(self) -> tuple[int, PathKey]:
        """Return what sorts directories in the order that they are opened out."""
        return self.depth, path_key(self.relative)

    def text(self, name: str) -> str:
        """Return the node as JSON under the given name."""
        head = f'{{"name":{_quoted(name)},"type":"directory",'
        if self.children is not None:
            return f'{head}"children":[{_joined(self.children)}]}}'
        count = "" if self.entries is None else f'"entries":{self.entries},'
        return f'{head}{count}"collapsed":true}}'


@dataclass(frozen=True, slots=True)
class TreeCursor:
    """Where a page begins: in which directory, after which of its names."""

    folder: str = ""
    after: str = ""

    @classmethod
    def of(cls, cursor: str | None) -> "TreeCursor":
        """Return what a cursor stands for, the beginning when there is none."""
        if cursor is None:
            return cls()
        state = decode_cursor(cursor)
        folder, after = state.get("in"), state.get("after")
        if not isinstance(folder, str) or not isinstance(after, str):
            raise invalid_cursor()
        return cls(folder, after)

    def is_reached(self, node: TreeNode) -> bool:
        """Return whether a directory belongs to the page or a later one."""
        return node.place >= (self.folder.count("/"), path_key(self.folder))

    def rest(self, node: TreeNode, entries: Entries) -> Entries:
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
    """Return `[{"name","type","children"}]` as compact JSON, and a notice, empty when that is all.

    What .gitignore leaves out and git's own directory are not in it.
    """
    globs = [Glob(pattern) for text in exclude for pattern in _exclusions(text)]
    resume = TreeCursor.of(cursor)
    with open_start(folders.jail, path, ignore=True) as start:
        builder = _Builder(folders, WalkProgress(call, None), start, min(max_depth or DEEPEST, DEEPEST))
        return builder.build(TreeNode("", "", 0, start.rules, [glob.start for glob in globs]), resume)


class _Builder:
    def __init__(self, folders: Folders, pace: WalkProgress, start: WalkStart, max_depth: int) -> None:
        self.jail, self.pace, self.start, self.max_depth = folders.jail, pace, start, max_depth
        self.left = (folders.settings.max_answer_tokens - RESERVED_TOKENS) * _CHARS_PER_TOKEN
        self.tops: list[TreeNode] = []
        self.queue: deque[TreeNode] = deque()
        self.seen = 0
        self.counted = 0

    def build(self, root: TreeNode, resume: TreeCursor) -> tuple[str, str]:
        self.queue.append(root)
        stopped = self._open_out(resume)
        for node in self.queue:
            self._count(node)
        texts = [
            _joined(top.children or []) if top is root else top.text(top.relative.rstrip("/")) for top in self.tops
        ]
        return f"[{','.join(text for text in texts if text)}]", more_notice(stopped) if stopped else ""

    def _open_out(self, resume: TreeCursor) -> dict[str, str] | None:
        """Open out directory after directory; return the position of the first that found no room."""
        while self.queue:
            node = self.queue.popleft()
            self.pace.is_over(self.seen)
            entries = self._entries(node)
            if entries is None:
                continue
            below = {name: self._below(node, name) for name, kind in entries if kind is EntryType.DIRECTORY}
            if resume.is_reached(node):
                rest = resume.rest(node, entries)
                shown_until = self._show(node, rest, below)
                if shown_until < len(rest):
                    self.queue.appendleft(node)
                    self.queue.extend(below.values())
                    return {"in": node.relative, "after": rest[shown_until - 1][0] if shown_until else ""}
            self.queue.extend(below.values())
        return None

    def _entries(self, node: TreeNode) -> Entries | None:
        """Return what is in a directory; None when it stays collapsed."""
        if node.depth >= self.max_depth:
            self._count(node)
            return None
        fd = open_beneath(self.jail, self.start.fd, node.relative)
        if fd is None:
            return []
        try:
            entries, node.rules = list_unignored(self.jail, fd, self.start.folder + node.relative, node.rules)
        finally:
            os.close(fd)
        self.seen += len(entries)
        if len(entries) > BIG_DIRECTORY and node.depth:
            node.entries = len(entries)
            return None
        if not node.barred:
            return entries
        return [entry for entry in entries if not any(state.matches(entry[0]) for state in node.barred)]

    def _below(self, node: TreeNode, name: str) -> TreeNode:
        barred = [state.enter(name) for state in node.barred]
        return TreeNode(f"{node.relative}{name}/", name, node.depth + 1, node.rules, barred)

    def _show(self, node: TreeNode, entries: Entries, below: dict[str, TreeNode]) -> int:
        """Give a directory its children and return how many; none when there is room only on a page of its own."""
        children: list[str | TreeNode] = []
        left = self.left
        for name, kind in entries:
            child = below.get(name) or _leaf(name, kind)
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
        """Count the entries of a directory that is shown collapsed, ignored ones included, up to a number of directories."""
        if not node.on_page or node.children is not None or node.entries is not None or self.counted >= _COUNTED:
            return
        self.counted += 1
        self.pace.is_over(self.seen)
        fd = open_beneath(self.jail, self.start.fd, node.relative)
        if fd is not None:
            node.entries = len(list_names(fd))
            os.close(fd)


def _exclusions(pattern: str) -> list[str]:
    """Return what an exclude pattern stands for: without a star it bars that name at any depth."""
    return [pattern] if "*" in pattern else [pattern, f"**/{pattern}", f"**/{pattern}/**"]


def _leaf(name: str, kind: EntryType) -> str:
    return f'{{"name":{_quoted(name)},"type":"{"link" if kind is EntryType.LINK else "file"}"}}'


def _quoted(name: str) -> str:
    """Return a name as JSON; one that could mislead has its strange characters escaped."""
    if is_plain(name):
        return encode_basestring(name)
    try:
        name.encode()
    except UnicodeEncodeError:
        return json.dumps(display_name(name))
    return json.dumps(name)


def _cost(child: str | TreeNode) -> int:
    if isinstance(child, TreeNode):
        return _COLLAPSED_CHARS + estimate_tokens(child.name) * _CHARS_PER_TOKEN
    return len(child) + 1 if child.isascii() else (estimate_tokens(child) + 1) * _CHARS_PER_TOKEN


def _joined(children: Iterable[str | TreeNode]) -> str:
    return ",".join(child if isinstance(child, str) else child.text(child.name) for child in children)
