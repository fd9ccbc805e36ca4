"""Pure: what one project of the store promises, by the shortest code that could be right; written from the contract.

A state is a mapping of live paths to their text. It is never changed in place: a change returns a new one.
"""

from collections.abc import Mapping
from typing import Any

State = dict[str, str]
Answer = tuple[Any, ...]

MUTATIONS = frozenset({"file_write", "file_delete", "file_rename"})


def step(state: State, tool: str, args: Mapping[str, Any]) -> tuple[Answer, State]:
    """Return what a call answers in a state, and the state after it; the same object when nothing changed."""
    if tool == "file_write":
        return _write(state, args["path"], args["content"], args["mode"], args.get("offset", 0))
    if tool == "file_delete":
        return _delete(state, args["path"], args.get("recursive", False))
    if tool == "file_rename":
        return _rename(state, args["from_path"], args["to_path"], args.get("overwrite", False))
    if tool == "file_read":
        return _read(state, args["path"]), state
    if tool == "file_stat":
        return _stat(state, args["path"]), state
    return _list(state, args.get("path", ""), args.get("depth", 1)), state


def _refused(code: str) -> Answer:
    return ("error", code)


def _inside(state: State, path: str) -> list[str]:
    return [name for name in state if name.startswith(path + "/")]


def _above(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(2, len(parts))}


def _has_file_above(state: State, path: str) -> bool:
    return any(name in state for name in _above(path))


def _write(state: State, path: str, text: str, mode: str, offset: int) -> tuple[Answer, State]:
    if _has_file_above(state, path):
        return _refused("NOT_DIRECTORY"), state
    if _inside(state, path):
        return _refused("IS_DIRECTORY"), state
    text_before = state.get(path, "")
    if mode == "OVERWRITE":
        if offset > len(text_before):
            return _refused("INVALID_OFFSET"), state
        text_after = text_before[:offset] + text + text_before[offset + len(text) :]
    else:
        text_after = text_before + text if mode == "APPEND" else text
    return ("ok", len(text)), {**state, path: text_after}


def _delete(state: State, path: str, recursive: bool) -> tuple[Answer, State]:
    deleted = [path] if path in state else _inside(state, path)
    if not deleted:
        return _refused("NOT_FOUND"), state
    if path not in state and not recursive:
        return _refused("NOT_EMPTY"), state
    return ("ok", len(deleted)), {name: text for name, text in state.items() if name not in deleted}


def _rename(state: State, source: str, target: str, overwrite: bool) -> tuple[Answer, State]:
    is_file = source in state
    moves = {name: target + name[len(source) :] for name in ([source] if is_file else _inside(state, source))}
    if not moves:
        return _refused("NOT_FOUND"), state
    if source == target:
        return ("ok", 0), state
    if target.startswith(source + "/"):
        return _refused("NOT_DIRECTORY" if is_file else "INVALID_PATH"), state
    if _has_file_above(state, target):
        return _refused("NOT_DIRECTORY"), state
    is_directory_there = bool(_inside(state, target))
    if (target in state or is_directory_there) and not overwrite:
        return _refused("ALREADY_EXISTS"), state
    if is_file and is_directory_there:
        return _refused("ALREADY_EXISTS"), state
    if not is_file:
        refused = _collision(state, target, list(moves.values()))
        if refused is not None:
            return refused, state
    rest = {name: text for name, text in state.items() if name not in moves}
    return ("ok", len(moves)), rest | {moves[name]: state[name] for name in moves}


def _collision(state: State, target: str, landings: list[str]) -> Answer | None:
    if target in state or any(name in state for name in landings):
        return _refused("ALREADY_EXISTS")
    if any(_has_file_above(state, name) for name in landings):
        return _refused("NOT_DIRECTORY")
    if any(_inside(state, name) for name in landings):
        return _refused("ALREADY_EXISTS")
    return None


def _read(state: State, path: str) -> Answer:
    if path in state:
        return ("ok", state[path])
    return _refused("IS_DIRECTORY" if _inside(state, path) else "NOT_FOUND")


def _stat(state: State, path: str) -> Answer:
    if path in state:
        return ("ok", True, "FILE", len(state[path]))
    return ("ok", True, "DIRECTORY", 0) if _inside(state, path) else ("ok", False, None, 0)


def _list(state: State, path: str, depth: int) -> Answer:
    files = _inside(state, path)
    if not files and path:
        return _refused("NOT_FOUND")
    most = path.count("/") + depth
    entries: dict[str, tuple[str, int]] = {}
    for name in files:
        parts = name.split("/")
        for count in range(path.count("/") + 2, min(len(parts), most + 1) + 1):
            head = "/".join(parts[:count])
            entries[head] = ("FILE", len(state[name])) if head == name else ("DIRECTORY", 0)
    return ("ok", tuple((name, *entries[name]) for name in sorted(entries)))
