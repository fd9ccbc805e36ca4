"""Which folders are too wide to organise."""

import pytest

from holdfast.organiser.scan.scope import FolderScope, scope_of

HOME = "/home/me"


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/", FolderScope.SYSTEM),
        ("/etc", FolderScope.SYSTEM),
        ("/etc/ssl/certs", FolderScope.SYSTEM),
        ("/usr/share/doc", FolderScope.SYSTEM),
        ("/var", FolderScope.SYSTEM),
        ("/var/log", FolderScope.SYSTEM),
        ("/home", FolderScope.SYSTEM),
        ("/System/Library", FolderScope.SYSTEM),
        ("/Library", FolderScope.SYSTEM),
        ("/mnt/c", FolderScope.SYSTEM),
        ("/mnt/c/Windows/System32", FolderScope.SYSTEM),
        (HOME, FolderScope.HOME),
        (f"{HOME}/Downloads", FolderScope.FOLDER),
        (f"{HOME}/etc", FolderScope.FOLDER),
        (f"{HOME}-old", FolderScope.FOLDER),
        ("/etcetera", FolderScope.FOLDER),
        ("/var/folders/x1/T/tidy", FolderScope.FOLDER),
        ("/private/var/folders/x1/T/tidy", FolderScope.FOLDER),
        ("/run/media/me/stick", FolderScope.FOLDER),
        ("/mnt/c/Users/me/Downloads", FolderScope.FOLDER),
        ("/data", FolderScope.FOLDER),
    ],
)
def test_the_scope_of_a_folder(path: str, scope: FolderScope) -> None:
    assert scope_of(path, HOME) is scope


def test_a_home_folder_that_is_a_folder_of_the_system_is_still_asked_about() -> None:
    assert scope_of("/opt", "/opt") is FolderScope.HOME
