"""The store against a dictionary: whatever the script, both hold the same files and refuse the same requests."""

import random
from dataclasses import dataclass, field

import pytest

from holdfast.auth.context import AuthContext
from holdfast.errors import HoldfastError
from holdfast.store.model import PathType, WrittenFile
from holdfast.store.service import Store

NAMES = ["a", "a-", "a.b", "a0", "b", "A", "a%", "_"]
STEPS = 150


@dataclass
class Reference:
    """What the store promises, by the shortest code that could be right."""

    files: dict[str, str] = field(default_factory=dict)

    def inside(self, path: str) -> list[str]:
        return [name for name in self.files if name.startswith(path + "/")]

    def parents(self, path: str) -> set[str]:
        parts = path.split("/")
        return {"/".join(parts[:count]) for count in range(2, len(parts))}

    def write(self, path: str, text: str) -> str | int:
        if self.parents(path) & set(self.files):
            return "NOT_DIRECTORY"
        if self.inside(path):
            return "IS_DIRECTORY"
        self.files[path] = self.files.get(path, "") + text
        return len(text)

    def delete(self, path: str, recursive: bool) -> str | int:
        gone = [path] if path in self.files else self.inside(path)
        if not gone:
            return "NOT_FOUND"
        if path not in self.files and not recursive:
            return "NOT_EMPTY"
        for name in gone:
            del self.files[name]
        return len(gone)

    def rename(self, source: str, target: str, overwrite: bool) -> str | int:
        moving = [source] if source in self.files else self.inside(source)
        if not moving:
            return "NOT_FOUND"
        if source == target:
            return 0
        if target.startswith(source + "/"):
            return "NOT_DIRECTORY" if source in self.files else "INVALID_PATH"
        moves = {name: target + name[len(source) :] for name in moving}
        if self.parents(target) & set(self.files):
            return "NOT_DIRECTORY"
        is_there = target in self.files or bool(self.inside(target))
        if is_there and not overwrite:
            return "ALREADY_EXISTS"
        if source in self.files and self.inside(target):
            return "ALREADY_EXISTS"
        if source not in self.files:
            if target in self.files or set(moves.values()) & set(self.files):
                return "ALREADY_EXISTS"
            if any(self.parents(name) & set(self.files) for name in moves.values()):
                return "NOT_DIRECTORY"
            if any(self.inside(name) for name in moves.values()):
                return "ALREADY_EXISTS"
        texts = {moves[name]: self.files.pop(name) for name in moving}
        self.files.update(texts)
        return len(moves)

    def entries(self, path: str, depth: int) -> list[str]:
        below = path.count("/") + depth
        heads = {
            "/".join(name.split("/")[: count + 1])
            for name in self.inside(path)
            for count in range(path.count("/") + 1, below + 1)
        }
        return sorted(heads)


def attempt(store: Store, me: AuthContext, verb: str, *arguments: str, **options: bool) -> str | int:
    try:
        answer: int | WrittenFile = getattr(store, verb)(me, "p", *arguments, **options)
    except HoldfastError as error:
        return error.code
    return answer.bytes_written if isinstance(answer, WrittenFile) else answer


def some_path(choose: random.Random) -> str:
    return "".join(f"/{choose.choice(NAMES)}" for _ in range(choose.choice([1, 1, 2, 2, 3])))


@pytest.mark.req("ST-15", "ST-20", "ST-23", "ST-24", "ST-25", "ST-26", "ST-27", "ST-28", "ST-29", "ST-30")
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_store_is_the_dictionary(store: Store, me: AuthContext, seed: int) -> None:
    choose, reference = random.Random(seed), Reference()
    for _ in range(STEPS):
        path, other, flag = some_path(choose), some_path(choose), choose.random() < 0.5
        verb = choose.choice(["write", "write", "write", "rename", "delete"])
        if verb == "write":
            assert attempt(store, me, "write", path, "x") == reference.write(path, "x")
        elif verb == "rename":
            assert attempt(store, me, "rename", path, other, overwrite=flag) == reference.rename(path, other, flag)
        else:
            assert attempt(store, me, "delete", path, recursive=flag) == reference.delete(path, flag)
        where, depth, limit = choose.choice(["", some_path(choose)]), choose.randrange(1, 4), choose.randrange(1, 9)
        expected = reference.entries(where, depth)
        if expected or where == "":
            found = store.listing(me, "p", where, depth, limit)
            assert [entry.path for entry in found.entries] == expected[:limit]
            assert found.has_more is (len(expected) > limit)
    held = {entry.path for entry in store.listing(me, "p", "", 9, 1024).entries if entry.type is PathType.FILE}
    assert held == set(reference.files)
    assert {path: store.read(me, "p", path).text for path in held} == reference.files
    (summary,) = store.projects(me)
    assert (summary.file_count, summary.total_bytes) == (len(held), sum(map(len, reference.files.values())))
