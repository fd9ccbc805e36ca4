"""While a backup copies the before-images no file of theirs is removed, and afterwards none is forgotten."""

from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.changes.disk import image_lock
from holdfast.changes.disk.image_lock import hold_images
from holdfast.changes.disk.images import Images
from holdfast.config.settings import JournalSettings
from holdfast.errors import ResourceBusy


def test_files_that_nobody_needs_are_removed_after_the_backup(tmp_path: Path) -> None:
    journal = open_journal(str(tmp_path))
    images = Images(journal, str(tmp_path), JournalSettings())
    first, second = (images.from_bytes(bytes(100_000 + number)) for number in range(2))
    assert first.file is not None and second.file is not None
    with hold_images(str(tmp_path)):
        images.remove_files([first.file])
        assert (tmp_path / "images" / first.file).exists()
    images.remove_files([])
    assert not (tmp_path / "images" / first.file).exists()
    assert (tmp_path / "images" / second.file).exists()
    journal.close()


def test_without_any_backup_files_are_removed_and_no_lock_is_made(tmp_path: Path) -> None:
    journal = open_journal(str(tmp_path))
    images = Images(journal, str(tmp_path), JournalSettings())
    image = images.from_bytes(bytes(100_000))
    images.remove_files([image.file or ""])
    assert not (tmp_path / "images" / (image.file or "")).exists()
    assert not (tmp_path / "backup.lock").exists()
    journal.close()


def test_one_backup_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_lock, "_WAIT_SECONDS", 0.1)
    with hold_images(str(tmp_path)), pytest.raises(ResourceBusy, match="Another backup"), hold_images(str(tmp_path)):
        pass
    with hold_images(str(tmp_path)):
        pass
