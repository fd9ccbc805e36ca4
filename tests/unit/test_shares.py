"""Places are divided between callers by one rule: whoever holds many may not take what others may need next."""

from collections import Counter

import pytest

from holdfast.shares import HALF, LARGE, Shares


def fill(shares: Shares, *callers: str) -> Counter[str]:
    """Let callers take places in turns until none may take another, and return how many each holds."""
    while ready := [caller for caller in callers if shares.has_room(caller)]:
        shares.take(min(ready, key=shares.count))
    return Counter({caller: shares.count(caller) for caller in callers})


@pytest.mark.parametrize(
    ("total", "factor", "held"), [(32, LARGE, 24), (8, HALF, 4), (6, HALF, 3), (4, LARGE, 3), (1, HALF, 1)]
)
def test_alone_a_caller_gets_its_part_and_the_rest_stays_free(total: int, factor: int, held: int) -> None:
    assert fill(Shares(total, factor), "a") == {"a": held}


@pytest.mark.parametrize("flooders", range(1, 9))
def test_however_many_take_all_they_may_a_newcomer_finds_a_place(flooders: int) -> None:
    shares = Shares(32, LARGE)
    held = fill(shares, *(f"flooder {number}" for number in range(flooders)))
    assert max(held.values()) - min(held.values()) <= 1
    assert shares.has_room("newcomer")


def test_what_is_given_back_can_be_taken_by_another() -> None:
    shares = Shares(2, HALF)
    shares.take("a")
    assert not shares.has_room("a")
    shares.take("b")
    assert not shares.has_room("c")
    shares.give_back("a")
    assert shares.has_room("c")
    assert shares.taken_places == 1
