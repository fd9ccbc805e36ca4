"""The kernel's word on who is at the other end."""

import os
import socket

import pytest

from holdfast.errors import PermissionDenied
from holdfast.transport.client.dial import peer_uid
from holdfast.transport.doors.socket import check_user


def test_the_user_at_the_other_end_is_known_and_another_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == os.geteuid()
        check_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(PermissionDenied, match="has no access"):
            check_user(ours)
