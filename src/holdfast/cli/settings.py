"""Settings as a starting server wants them: with every tool and group name in them known."""

from holdfast.config.load import Loaded, check_names
from holdfast.config.settings import Settings
from holdfast.tools.registry import Group
from holdfast.wiring import TOOLS


def checked(loaded: Loaded) -> Settings:
    """Return the settings. Raises InvalidArgument when one switches a tool or group that nobody has."""
    check_names(loaded, [tool.name for tool in TOOLS], list(Group))
    return loaded.settings
