"""Pure: detects and replaces lone surrogates, which a Python string can hold and UTF-8 and JSON cannot."""

from typing import Any


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text cannot be encoded as UTF-8. Python holds a surrogate pair as one character, so any counts."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def replace_lone_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, such as one that stands for a byte of a name that is not UTF-8.

    Two surrogates that make a pair become the character that they encode.
    """
    if not has_lone_surrogate(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_in_data(value: Any) -> Any:
    """Return a JSON value with the lone surrogates of every text in it replaced, keys included."""
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, dict):
        return {replace_in_data(key): replace_in_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_in_data(item) for item in value]
    return value
