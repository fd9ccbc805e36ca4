"""The certificate of the HTTP door: what cannot be used is named, and a renewal that fails leaves the one in use."""

import logging
from pathlib import Path

import pytest

from holdfast.config.server_settings import TlsSettings
from holdfast.errors import InvalidArgument
from holdfast.transport.doors.tls import Certificate
from tests.helpers.certificates import Authority


def settings_of(files: tuple[Path, Path]) -> TlsSettings:
    return TlsSettings(certificate=str(files[0]), key=str(files[1]))


def test_a_renewed_pair_is_used_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    certificate = Certificate(settings_of(Authority().write(tmp_path)))
    first = certificate.context
    certificate.renew()
    assert certificate.context is first
    Authority().write(tmp_path)
    certificate.renew()
    assert certificate.context is not first


def test_a_pair_that_is_half_replaced_is_told_and_leaves_the_one_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Authority().write(tmp_path)
    certificate = Certificate(settings_of(files))
    first, key = certificate.context, files[1].read_bytes()
    other = Authority().write(tmp_path, "other")[0].read_bytes()
    files[0].write_bytes(other)
    with caplog.at_level(logging.WARNING):
        certificate.renew()
        certificate.renew()
    assert certificate.context is first
    assert [record.levelname for record in caplog.records] == ["WARNING"], "once for each change"
    assert "The one in use stays." in caplog.text
    files[1].write_bytes((tmp_path / "other.key").read_bytes())
    certificate.renew()
    assert certificate.context is not first
    assert key.decode() not in caplog.text


def test_a_pair_that_goes_leaves_the_one_in_use(tmp_path: Path) -> None:
    files = Authority().write(tmp_path)
    certificate = Certificate(settings_of(files))
    first = certificate.context
    files[1].unlink()
    certificate.renew()
    assert certificate.context is first


def test_a_home_folder_in_a_path_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Authority().write(tmp_path)
    Certificate(TlsSettings(certificate="~/localhost.pem", key="~/localhost.key"))


def test_text_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    files = Authority().write(tmp_path)
    files[0].write_text("hello")
    with pytest.raises(InvalidArgument, match="no pair of PEM files"):
        Certificate(settings_of(files))
