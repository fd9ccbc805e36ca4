"""What the folder tools of one caller work with: its jail and the limits that hold for it."""

from dataclasses import dataclass

from holdfast.config.settings import FolderSettings
from holdfast.folders.access.jail import Jail


@dataclass(frozen=True)
class Folders:
    """One per set of roots; shared by every call of the connections that were opened with them."""

    jail: Jail
    settings: FolderSettings
