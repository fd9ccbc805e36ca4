"""Puts the token by which a panel decides beside an answer, where the client's panel gets it and its model does not."""

from dataclasses import replace

from holdfast.app import App
from holdfast.auth.context import Caller
from holdfast.auth.panel_tokens import PanelSubject
from holdfast.review.records import may_show_panels
from holdfast.tools.answer import Answer


def with_panel_token(
    app: App, caller: Caller, answer: Answer, subject: PanelSubject, subject_id: str, shown_hash: str
) -> Answer:
    """Return the answer with a token for one decision on what it is about; as it is for a client without panels."""
    if not may_show_panels(app.settings.review, caller):
        return answer
    token = app.panel_tokens.issue(subject, subject_id, shown_hash, caller.auth.apikey_hash)
    return replace(answer, for_panel={"token": token.reveal()})
