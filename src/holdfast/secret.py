"""A key or token that masks itself wherever it is printed."""

import hmac


class Secret:
    """Holds a raw key; only reveal() returns it, and comparing takes constant time."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the raw value, for the one place that sends or hashes it."""
        return self._value

    def matches(self, candidate: str) -> bool:
        """Return whether the candidate is the same key."""
        return hmac.compare_digest(self._value.encode(), candidate.encode())

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__
