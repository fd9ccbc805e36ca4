"""The table has every tool that a module of `holdfast.tools` defines."""

import importlib
import pkgutil

from holdfast import tools
from holdfast.tools.registry import Tool
from holdfast.tools.table import TOOLS


def test_no_tool_is_missing_in_the_table() -> None:
    names = [module.name for module in pkgutil.walk_packages(tools.__path__, "holdfast.tools.")]
    defined = {
        value.name: name
        for name in names
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, Tool)
    }

    assert len(defined) > 40
    assert defined.keys() == {tool.name for tool in TOOLS}
