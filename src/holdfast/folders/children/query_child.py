"""The child process that runs jq on a document and returns the first results as compact JSON.

The expression cannot load modules: a definition precedes it, and jq accepts `import` and `include` only at the very
start. The environment is empty.
"""

import base64
import datetime
import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from holdfast.folders.children.serve import ChildAnswer, ChildRefusal, serve
from holdfast.text.decode import decode, detect_encoding, replace_lone_surrogates

_PREAMBLE = 'def modulemeta: error("modules are not available");\n'
_MAX_EXPANDED_NODES = 20_000_000
_LINE_OF_ERROR = re.compile(r"line (\d+)")


def work(request: dict[str, Any], file: BinaryIO) -> ChildAnswer:
    """Return up to `max_results` results, together at most `max_chars` long."""
    program = _compile(request["expression"])
    text = _read_text(file)
    documents = iter([text]) if request["form"] == "json" else _yaml_documents(text)
    values: list[str] = []
    more, cut, room = False, False, request["max_chars"]
    for value in _run_program(program, documents):
        if len(values) == request["max_results"] or cut:
            more = True
            break
        cut = len(value) > room
        values.append(value[:room])
        room -= len(values[-1])
    return {"more": more, "cut": cut}, replace_lone_surrogates(json.dumps(values, ensure_ascii=False)).encode()


def _compile(expression: str) -> Any:
    """Compile the program. The expression is compiled alone first, so that it is complete and errors are about it only."""
    import jq

    try:
        jq.compile(_PREAMBLE + expression)
        return jq.compile(f"{_PREAMBLE}({expression}\n\n)|tojson")
    except ValueError as error:
        raise ChildRefusal(f"The jq expression is not valid: {_jq_message(str(error))}") from None


def _run_program(program: Any, documents: Iterator[str]) -> Iterator[str]:
    for document in documents:
        try:
            yield from program.input_text(document)
        except ValueError as error:
            message = str(error)
            is_parse_error = message.startswith("parse error: ")
            what = "The document is not valid JSON" if is_parse_error else "jq"
            raise ChildRefusal(f"{what}: {message.removeprefix('parse error: ')[:500]}") from None


def _read_text(file: BinaryIO) -> str:
    data = file.read()
    encoding = detect_encoding(data)
    if encoding is None:
        raise ChildRefusal("Binary file: JSON or YAML text was expected.")
    return decode(data, encoding, errors="replace")


def _yaml_documents(text: str) -> Iterator[str]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for document in yaml.load_all(text, Loader=loader):
            if "&" in text and _count_expanded(document, {}) > _MAX_EXPANDED_NODES:
                raise ChildRefusal(f"The YAML document's aliases expand to more than {_MAX_EXPANDED_NODES} values")
            yield json.dumps(document, default=_to_json_value, ensure_ascii=False)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ChildRefusal(f"The document is not valid YAML: {error.problem}{where}") from None
    except yaml.YAMLError as error:
        raise ChildRefusal(f"The document is not valid YAML: {type(error).__name__}") from None
    except (TypeError, ValueError, RecursionError):
        raise ChildRefusal("The YAML document has no JSON form: a cycle, or a key that is not a scalar") from None


def _count_expanded(node: object, sizes: dict[int, float]) -> float:
    """Return how many values a document has when every alias is expanded; infinity for a cycle."""
    if not isinstance(node, (dict, list)):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        children = node.values() if isinstance(node, dict) else node
        sizes[id(node)] = 1 + sum(_count_expanded(child, sizes) for child in children)
    return sizes[id(node)]


def _to_json_value(value: object) -> object:
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, set):
        return sorted(value, key=str)
    raise TypeError("no JSON form")


def _jq_message(message: str) -> str:
    """Return jq's error message with line numbers of the caller's expression."""
    first = message.removeprefix("jq: error: ").split("\n", 1)[0]
    return _LINE_OF_ERROR.sub(lambda match: f"line {max(1, int(match[1]) - 1)}", first)[:500].rstrip(":")


if __name__ == "__main__":
    serve(work)
