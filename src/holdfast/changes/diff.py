"""Pure: the unified diff of two texts, in time that follows the size of what differs."""

from difflib import SequenceMatcher

CONTEXT_LINES = 3
_MAX_COMPARED = 2_000_000


def unified_diff(before: str, after: str, path: str) -> str:
    """Return a git-style unified diff, empty when the texts are the same.

    Lines end at line feeds only; a last line without one is marked as git does. A difference too large to align
    is shown as one block removed and one block added.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    head = _same_lines(old, new)
    tail = _same_lines(old[head:][::-1], new[head:][::-1])
    first = max(0, head - CONTEXT_LINES)
    last = max(0, tail - CONTEXT_LINES)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    out = [f"--- a/{path.lstrip('/')}\n", f"+++ b/{path.lstrip('/')}\n"]
    for group in _groups(old, new):
        out.append(_header(group, first))
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                out.extend(_marked(" ", old[old_start:old_end]))
                continue
            out.extend(_marked("-", old[old_start:old_end]))
            out.extend(_marked("+", new[new_start:new_end]))
    return "".join(out)


Opcode = tuple[str, int, int, int, int]


def _groups(old: list[str], new: list[str]) -> list[list[Opcode]]:
    if len(old) * len(new) > _MAX_COMPARED:
        return [[("replace", 0, len(old), 0, len(new))]]
    matcher = SequenceMatcher(None, old, new)
    return [list(group) for group in matcher.get_grouped_opcodes(CONTEXT_LINES)]


def _header(group: list[Opcode], offset: int) -> str:
    old_range = _range(group[0][1] + offset, group[-1][2] + offset)
    new_range = _range(group[0][3] + offset, group[-1][4] + offset)
    return f"@@ -{old_range} +{new_range} @@\n"


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines]
    return [*kept, last] if last else kept


def _same_lines(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [
        f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n" for line in lines
    ]
