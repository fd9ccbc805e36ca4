"""Pure: text as a person can trust it: no character in it moves a cursor, hides, or turns the writing around."""

from holdfast.text.names import is_seen


def visible(text: str) -> str:
    """Return a line with every control, format and invisible character, but tabs, shown by its number."""
    return "".join(char if is_seen(char) or char == "\t" else f"\\x{ord(char):02x}" for char in text)


def visible_lines(body: str) -> list[str]:
    """Return the lines of a text; carriage returns are left out where every line has one, and shown where some do."""
    lines = body.removesuffix("\n").split("\n")
    ends_alike = all(line.endswith("\r") for line in lines)
    return [visible(line.removesuffix("\r") if ends_alike else line) for line in lines]
