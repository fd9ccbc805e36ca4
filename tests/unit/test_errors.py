"""Errors that come back from another process are the errors that were raised there."""

import pytest

from holdfast.errors import HoldfastError, Internal, NotFound, RateLimited, error_class, error_from_payload


@pytest.mark.parametrize("kind", HoldfastError.__subclasses__(), ids=lambda kind: kind.__name__)
def test_every_error_is_found_again_by_its_code(kind: type[HoldfastError]) -> None:
    assert error_class(kind.code) is kind


def test_an_unknown_code_is_an_error_all_the_same() -> None:
    error = error_from_payload({"code": "FROM_A_LATER_VERSION", "message": "no"})
    assert (type(error), error.message, error.exit_status) == (HoldfastError, "no", 1)
    assert error_class("INTERNAL") is Internal


def test_a_payload_keeps_its_message_and_details() -> None:
    before = RateLimited("Too many calls.", retry_after_seconds=3)
    after = error_from_payload(before.payload())
    assert (type(after), after.payload()) == (RateLimited, before.payload())
    assert error_from_payload(NotFound("gone").payload()).exit_status == NotFound.exit_status
