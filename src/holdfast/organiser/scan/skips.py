"""Pure: which entries a scan skips: by their names, by the files around them, or because their data is not on the disk.

Placeholders of iCloud, Nextcloud and ownCloud are known by their names; others by `is_dataless`.
"""

from collections.abc import Iterable

from holdfast.organiser.model import SkipReason

OWN_PREFIX = ".holdfast-"

_DEPENDENCIES = frozenset({"node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__"})
_ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
SYSTEM_NAMES = frozenset(
    {"$RECYCLE.BIN", "System Volume Information", "lost+found", "@eaDir", "#recycle", "Thumbs.db", "ehthumbs.db",
     "desktop.ini", "Desktop.ini", "Icon\r", "hiberfil.sys", "pagefile.sys", "swapfile.sys"}
)  # fmt: skip
_BUNDLES = frozenset(
    "app appex framework bundle plugin kext xpc prefpane saver qlgenerator mdimporter component vst vst3 "
    "photoslibrary photolibrary aplibrary musiclibrary tvlibrary imovielibrary fcpbundle lrdata lrlibrary "
    "sparsebundle backupbundle vmwarevm pvm utm parallels dsym xcarchive".split()
)
_DOWNLOADS = frozenset(
    "crdownload part partial download opdownload aria2 filepart !ut !qb bc! dctmp fdmdownload ytdl dlpart".split()
)
_CLOUD = frozenset({"icloud", "nextcloud", "owncloud"})
SPECIAL_SUFFIXES = _DOWNLOADS | _CLOUD
"""A name with another suffix, that starts with neither `.` nor `~` and is not in SYSTEM_NAMES, is never skipped."""
SPECIAL_STARTS = frozenset(".~")
_LOCKED_BY_OFFICE = "~$"
_LOCKED_BY_LIBREOFFICE = ".~lock."


def reason_for_file(name: str, *, include_hidden: bool) -> SkipReason | None:
    """Return why a file is skipped because of its name, None if it is not."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in SPECIAL_SUFFIXES and suffix != name.lower():
        return SkipReason.IN_PROGRESS if suffix in _DOWNLOADS else SkipReason.PLACEHOLDER
    return _by_name(name, include_hidden)


def reason_for_directory(name: str, *, include_hidden: bool) -> SkipReason | None:
    """Return why a directory is skipped because of its name, None if it is not."""
    if name in _DEPENDENCIES:
        return SkipReason.DEPENDENCIES
    suffix = name.rpartition(".")[2].lower()
    if suffix in _BUNDLES and suffix != name.lower():
        return SkipReason.BUNDLE
    if suffix in _DOWNLOADS and suffix != name.lower():
        return SkipReason.IN_PROGRESS
    return _by_name(name, include_hidden)


def reason_by_content(names: Iterable[str]) -> SkipReason | None:
    """Return why a directory is skipped because of the names in it, None if it is not."""
    return SkipReason.ENVIRONMENT if not _ENVIRONMENT_MARKS.isdisjoint(names) else None


def reasons_by_neighbours(names: Iterable[str]) -> dict[str, SkipReason]:
    """Return the files of one directory that are skipped because of others in it: open documents, unfinished downloads."""
    all_names = frozenset(names)
    reasons: dict[str, SkipReason] = {}
    for name in all_names:
        stem, dot, suffix = name.rpartition(".")
        if dot and suffix.lower() in _DOWNLOADS and stem in all_names:
            reasons[stem] = SkipReason.IN_PROGRESS
        elif name.startswith((_LOCKED_BY_OFFICE, _LOCKED_BY_LIBREOFFICE)):
            reasons.update(dict.fromkeys(_locked_by(name, all_names), SkipReason.IN_USE))
    return reasons


def affects_neighbours(name: str) -> bool:
    """Return whether a file with this name can make a scan skip its neighbours; ordinary directories have none."""
    return name.startswith((_LOCKED_BY_OFFICE, _LOCKED_BY_LIBREOFFICE)) or name.rpartition(".")[2].lower() in _DOWNLOADS


def is_dataless(size: int, blocks: int, flags: int) -> bool:
    """Return whether the bytes of a file are not on this disk: macOS sets a flag, elsewhere the file has no blocks."""
    return bool(flags & 0x40000000) or (size > 0 and blocks == 0)


def _by_name(name: str, include_hidden: bool) -> SkipReason | None:
    if name.startswith(OWN_PREFIX):
        return SkipReason.OWN
    if name in SYSTEM_NAMES or name.startswith("._"):
        return SkipReason.SYSTEM
    if name.startswith((_LOCKED_BY_OFFICE, _LOCKED_BY_LIBREOFFICE)):
        return SkipReason.IN_USE
    return SkipReason.HIDDEN if name[0] == "." and not include_hidden else None


def _locked_by(lock: str, names: frozenset[str]) -> list[str]:
    """Return the documents that a lock file belongs to; Word replaces up to two letters of the name by its prefix."""
    if lock.startswith(_LOCKED_BY_LIBREOFFICE):
        name = lock.removeprefix(_LOCKED_BY_LIBREOFFICE).removesuffix("#")
        return [name] if name in names else []
    rest = lock.removeprefix(_LOCKED_BY_OFFICE)
    return [name for name in names if name != lock and rest in (name, name[1:], name[2:])]
