"""Edits of one file as an agent makes them, and the answers about changes that it gets."""

import hashlib
from pathlib import Path
from typing import Any

from tests.helpers.agent import Agent, Reply


def edit(agent: Agent, path: Path | str, *edits: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Edit one file by edit_files and return its outcome; a call that edits no file is an error."""
    replacements = [{"old_string": old, "new_string": new} for old, new in edits]
    reply = agent.call("edit_files", files=[{"path": str(path), "edits": replacements, **more}])
    outcome: dict[str, Any] = reply.data["files"][0]
    assert reply.is_error == (outcome["status"] == "failed"), reply.text
    return outcome


def failure(agent: Agent, path: Path | str, *edits: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return the error of an edit that must fail."""
    outcome = edit(agent, path, *edits, **more)
    assert outcome["status"] == "failed", outcome
    error: dict[str, Any] = outcome["error"]
    return error


def changes(agent: Agent) -> list[dict[str, Any]]:
    """Return the newest changes as an agent is told of them."""
    listed: list[dict[str, Any]] = agent.call("list_changes").ok().data["changes"]
    return listed


def change_of(reply: Reply) -> str:
    """Return the id of the change that an answer names."""
    return reply.ok().text.rsplit("change ", 1)[1].strip()


def sha256(data: bytes) -> str:
    """Return a hash in the form that answers give."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
