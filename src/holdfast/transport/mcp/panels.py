"""Serves the panels, the pages that an MCP client shows inside its chat, as resources: static, the same for everybody.

They are of one file each and load nothing, so a client may give them no network at all. What a panel shows and by which
token it decides comes to it through the client.
"""

from functools import cache
from importlib.resources import files

import mcp_types as types

from holdfast.auth.context import PANEL_MEDIA_TYPE
from holdfast.errors import NotFound
from holdfast.tools.registry import Panel

_TITLES = {Panel.REVIEW: "Review of a change", Panel.PLAN: "Plan to tidy a folder"}
_META = {"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}}


def list_panels() -> types.ListResourcesResult:
    """Return the result of `resources/list` for a client that shows panels."""
    return types.ListResourcesResult.model_validate(
        {
            "resources": [
                {
                    "uri": panel.value,
                    "name": panel.name.lower(),
                    "title": title,
                    "mimeType": PANEL_MEDIA_TYPE,
                    "_meta": _META,
                }
                for panel, title in _TITLES.items()
            ]
        }
    )


def read_panel(uri: str) -> types.ReadResourceResult:
    """Return the result of `resources/read`. NotFound for any other resource, and where the panels were not built."""
    if uri not in set(Panel):
        raise NotFound("There is no such resource.")
    content = {"uri": uri, "mimeType": PANEL_MEDIA_TYPE, "text": _read_page(Panel(uri)), "_meta": _META}
    return types.ReadResourceResult.model_validate({"contents": [content]})


@cache
def _read_page(panel: Panel) -> str:
    name = panel.value.rpartition("/")[2]
    try:
        return files("holdfast.console").joinpath("static", "panels", name).read_text("utf-8")
    except OSError:
        raise NotFound("The panels of this copy are not built: run `make web` in the checkout.") from None
