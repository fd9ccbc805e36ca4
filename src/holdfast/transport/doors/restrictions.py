"""Reads the restrictions of a connection from the opening line of a socket or the query of a URL."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from holdfast.auth.context import Restrictions
from holdfast.errors import InvalidArgument
from holdfast.tools.registry import SELECTABLE_GROUPS

_FIELDS = ("read_only", "review", "tools")
_SWITCH = {"1": True, "true": True, "0": False, "false": False}


def parse_restrictions(given: object) -> Restrictions:
    """Return restrictions from JSON. InvalidArgument for a name or a group that does not exist: a typo must not widen."""
    if given is None:
        return Restrictions()
    if not isinstance(given, Mapping):
        raise InvalidArgument("restrictions must be an object.")
    unknown = sorted(set(map(str, given)) - set(_FIELDS))
    if unknown:
        raise InvalidArgument(f"There is no restriction {unknown[0]!r}; there are {', '.join(_FIELDS)}.")
    switches = {name: given[name] for name in ("read_only", "review") if name in given}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidArgument(f"{name} must be true or false.")
    return Restrictions(groups=parse_groups(given["tools"]) if "tools" in given else None, **switches)


def parse_groups(names: object) -> frozenset[str]:
    """Return tool groups by name. InvalidArgument when one does not exist, or none is named."""
    valid = ", ".join(SELECTABLE_GROUPS)
    if not isinstance(names, list | tuple) or not names:
        raise InvalidArgument(f"tools needs at least one group of {valid}.")
    for name in names:
        if name not in list(SELECTABLE_GROUPS):
            raise InvalidArgument(f"There is no tool group {name!r:.80}; the groups are {valid}.")
    return frozenset(names)


def restrictions_from_query(query: str) -> Restrictions:
    """Return the restrictions that the query of a URL names, as in `tools=files,review&read_only=1`."""
    try:
        fields = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=len(_FIELDS))
    except ValueError:
        raise InvalidArgument(f"The query takes {', '.join(_FIELDS)}, each once at most.") from None
    given: dict[str, object] = {}
    for name, value in fields:
        if name in given:
            raise InvalidArgument(f"{name} is given twice.")
        given[name] = value.split(",") if name == "tools" else _SWITCH.get(value, value)
    return parse_restrictions(given)
