"""Reads the restrictions of a connection from the opening line of a socket or the query of a URL."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from holdfast.auth.context import Restrictions
from holdfast.errors import InvalidArgument
from holdfast.tools.registry import SELECTABLE_GROUPS

_FIELDS = ("read_only", "review", "tools")
_SWITCH = {"1": True, "true": True, "0": False, "false": False}


def parse_restrictions(fields: object) -> Restrictions:
    """Return restrictions from JSON. InvalidArgument for a name or a group that does not exist: a typo must not widen."""
    if fields is None:
        return Restrictions()
    if not isinstance(fields, Mapping):
        raise InvalidArgument("restrictions must be an object.")
    unknown = sorted(set(map(str, fields)) - set(_FIELDS))
    if unknown:
        raise InvalidArgument(f"There is no restriction {unknown[0]!r}; there are {', '.join(_FIELDS)}.")
    switches = {name: fields[name] for name in ("read_only", "review") if name in fields}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidArgument(f"{name} must be true or false.")
    return Restrictions(groups=parse_groups(fields["tools"]) if "tools" in fields else None, **switches)


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
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=len(_FIELDS))
    except ValueError:
        raise InvalidArgument(f"The query takes {', '.join(_FIELDS)}, each once at most.") from None
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidArgument(f"{name} is given twice.")
        fields[name] = value.split(",") if name == "tools" else _SWITCH.get(value, value)
    return parse_restrictions(fields)
