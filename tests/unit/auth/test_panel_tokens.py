"""Tokens of panels: one decision of one tenant on one thing, for an hour, and nothing of them is kept but a hash."""

import pytest

from holdfast.auth import panel_tokens
from holdfast.auth.panel_tokens import LIFETIME_SECONDS, PanelSubject, PanelTokens
from holdfast.errors import Conflict, PermissionDenied

REVIEW, PLAN = PanelSubject.REVIEW, PanelSubject.PLAN


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_token_decides_once() -> None:
    tokens = PanelTokens()
    token = tokens.issue(REVIEW, "r1", "hash", "local").reveal()
    with tokens.spend(token, REVIEW, "local") as grant:
        assert (grant.subject_id, grant.shown_hash) == ("r1", "hash")
        with pytest.raises(PermissionDenied), tokens.spend(token, REVIEW, "local"):
            pass
    with pytest.raises(PermissionDenied):
        tokens.find(token, REVIEW, "local")


def test_a_decision_that_failed_leaves_the_token() -> None:
    tokens = PanelTokens()
    token = tokens.issue(REVIEW, "r1", "hash", "local").reveal()
    with pytest.raises(Conflict), tokens.spend(token, REVIEW, "local"):
        raise Conflict("It has changed.")
    assert tokens.find(token, REVIEW, "local").subject_id == "r1"


@pytest.mark.req("SV-45.d")
@pytest.mark.parametrize(("subject", "tenant"), [(REVIEW, "another"), (PLAN, "local"), (PLAN, "another")])
def test_a_token_of_another_tenant_or_of_another_kind_is_none(subject: PanelSubject, tenant: str) -> None:
    tokens = PanelTokens()
    token = tokens.issue(REVIEW, "r1", "hash", "local").reveal()
    with pytest.raises(PermissionDenied):
        tokens.find(token, subject, tenant)


@pytest.mark.req("SV-45.d")
def test_a_token_ends_after_an_hour() -> None:
    clock = Clock()
    tokens = PanelTokens(clock)
    token = tokens.issue(REVIEW, "r1", "hash", "local").reveal()
    clock.at = LIFETIME_SECONDS - 1
    assert tokens.find(token, REVIEW, "local")
    clock.at = LIFETIME_SECONDS
    with pytest.raises(PermissionDenied):
        tokens.find(token, REVIEW, "local")


def test_tokens_have_256_bits_and_only_their_hash_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_tokens, "_MAX_TOKENS", 3)
    tokens = PanelTokens()
    issued = [tokens.issue(REVIEW, f"r{at}", "hash", "local").reveal() for at in range(5)]
    assert all(len(token) == 43 for token in issued)
    assert len(set(issued)) == 5
    assert not any(token in repr(vars(tokens)) for token in issued)
    for token in issued[:2]:
        with pytest.raises(PermissionDenied):
            tokens.find(token, REVIEW, "local")
    assert [tokens.find(token, REVIEW, "local").subject_id for token in issued[2:]] == ["r2", "r3", "r4"]
