"""The kernel's word on who is at the other end."""

import os
import socket
from pathlib import Path

import pytest

from holdfast.errors import PermissionDenied
from holdfast.transport.client.dial import connect, peer_uid
from holdfast.transport.doors.streams.socket import check_user
from holdfast.transport.state_folder import StateFault, StateFolder


def test_the_user_at_the_other_end_is_known_and_another_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == os.geteuid()
        check_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(PermissionDenied, match="has no access"):
            check_user(ours)


def test_a_client_speaks_to_no_other_users_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(str(tmp_path))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(folder.file("server.sock"))
        listener.listen()
        own = os.geteuid()
        connect(folder).close()
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(StateFault, match=f"A process of user {own} listens at .*, not one of yours \\(4711\\)"):
            connect(folder)
