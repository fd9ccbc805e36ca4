"""Parameters of search statements that both databases share."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.search.model import IndexedFile, Scope


def file_parameters(tenant: str, project: str, path: str) -> dict[str, Any]:
    """Return the parameters that identify a file."""
    return {"apikey_hash": tenant, "project": project, "path": path}


def indexed_file_parameters(file: IndexedFile, stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that identify a file, with the tenant of the stamp that it is written with."""
    return file_parameters(stamp["apikey_hash"], file.project, file.path)


def scope_parameters(tenant: str, scope: Scope) -> dict[str, Any]:
    """Return the parameters that restrict a statement to a scope."""
    return {"apikey_hash": tenant, "project": scope.project, "low": scope.span.low, "high": scope.span.high}


def json_list(values: Sequence[object]) -> str:
    """Return values as one JSON parameter."""
    return json.dumps(list(values))
