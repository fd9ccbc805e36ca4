"""Pure: the shape of JSON and CSV text in one line: types, keys, columns, counts."""

import csv
import io
import json
from typing import Any

MAX_SHOWN_KEYS = 50
_DELIMITERS = ",;\t|"


def json_shape(text: str) -> str:
    """Return the type at the top of a JSON text, its keys or its length; where it breaks when it is not valid."""
    try:
        value = json.loads(text)
    except ValueError as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        return f"JSON: not valid{where}"
    except RecursionError:
        return "JSON: nested too deeply"
    if isinstance(value, dict):
        return f"JSON object, {len(value)} keys: {_names(value)}"
    if isinstance(value, list):
        return f"JSON array of {len(value)}" + _element_shape(value)
    return f"JSON {type(value).__name__}"


def _element_shape(values: list[Any]) -> str:
    if not values or not isinstance(values[0], dict):
        return ""
    return f", the first an object with keys: {_names(values[0])}"


def csv_shape(text: str, lines: int | None) -> str:
    """Return the columns and the rows of a CSV text; with `lines`, the text is a sample of that many lines."""
    header_line = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header_line.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(rows, [])
        count = f"{sum(1 for _ in rows)} rows" if lines is None else f"about {lines - 1} rows"
    except csv.Error as error:
        return f"CSV: not valid ({error})"
    return f"CSV, {len(header)} columns: {_names(header)}; {count}"


def _names(names: Any) -> str:
    shown = [json.dumps(str(name)[:80], ensure_ascii=False) for name in list(names)[:MAX_SHOWN_KEYS]]
    return ", ".join(shown) + (", …" if len(names) > MAX_SHOWN_KEYS else "")
