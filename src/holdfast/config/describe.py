"""Lists every setting as one flat row: name, type, default, meaning; and every value in force."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from holdfast.config.section import Section
from holdfast.config.settings import Settings

ROOT = "settings"
MASK = "****"

_TYPE_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    SecretStr: "secret text",
}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. `name` is dotted from the file's root key; a part in angle brackets stands for any name."""

    name: str
    kind: str
    default: Any
    meaning: str


def setting_rows(section: type[BaseModel] = Settings, prefix: str = ROOT) -> Iterator[SettingRow]:
    """Return every setting that exists, in the order of the file."""
    for key, field in section.model_fields.items():
        name = f"{prefix}.{key}"
        inner = _value_type(field.annotation)
        if _is_section(field.annotation):
            yield from setting_rows(field.annotation, name)  # type: ignore[arg-type]  # _is_section has just checked it
        elif _is_section(inner):
            yield from setting_rows(inner, f"{name}.<name>")
        elif _is_section(_item_type(field.annotation)):
            yield SettingRow(name, "a list", _default(field), field.description or "")
            yield from setting_rows(_item_type(field.annotation), f"{name}.<number>")
        elif inner is not None:
            yield SettingRow(f"{name}.<name>", describe_type(inner), None, field.description or "")
        else:
            yield SettingRow(name, describe_type(field.annotation), _default(field), field.description or "")


def setting_values(section: BaseModel, prefix: str = ROOT) -> Iterator[tuple[str, Any]]:
    """Return every value in force by its dotted name, secrets masked."""
    for key in type(section).model_fields:
        yield from _values_of(getattr(section, key), f"{prefix}.{key}")


def describe_type(annotation: Any) -> str:
    """Return in words what a value must be."""
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(annotation))
    if get_origin(annotation) is list:
        return "a list of " + describe_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(describe_type(choice) for choice in get_args(annotation))
    if get_origin(annotation) is dict or _is_section(annotation):
        return "a mapping"
    return _TYPE_NAMES.get(annotation, "nothing")


def annotation_at(location: tuple[int | str, ...]) -> Any:
    """Return the type that is expected at a place in the tree, None where the tree has no such place."""
    current: Any = Settings
    for step in location:
        inner = _value_type(current)
        if _is_section(current):
            field = current.model_fields.get(str(step))
            current = field.annotation if field else None
        else:
            current = inner if inner is not None else next(iter(get_args(current)), None)
    return current


def _values_of(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Section):
        yield from setting_values(value, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _values_of(item, f"{name}.{key}")
    elif isinstance(value, list) and any(isinstance(item, Section) for item in value):
        yield name, [item.model_dump() for item in value]
    else:
        yield name, _mask(value)


def _mask(value: Any) -> Any:
    """Return a value that can be shown: a secret is masked, one that is not set stays empty."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    return value


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _value_type(annotation: Any) -> Any:
    return get_args(annotation)[1] if get_origin(annotation) is dict else None


def _item_type(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is list else None


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)
