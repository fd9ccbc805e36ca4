"""How long an answer is, as those see it who decide where it is written."""

from pydantic import BaseModel

from holdfast.tools.answer import Answer, Media, Text, length_of
from holdfast.transport.mcp import wire


class Page(BaseModel):
    """Some data of an answer."""

    text: str = ""
    names: list[str] = []
    inner: "Page | None" = None


def test_a_long_text_counts_wherever_it_is() -> None:
    long = "x" * 100_000
    for answer in (
        Answer.of(long),
        Answer((Media("image", long.encode(), "image/png"),)),
        Answer((Text("short"),), Page(text=long)),
        Answer((), Page(inner=Page(names=["a", long]))),
        Answer((), Page(names=["name"] * 2_000)),
    ):
        assert answer.size >= 100_000
        assert wire.content_size(wire.answer_result(answer)) >= 100_000


def test_a_small_answer_is_small() -> None:
    answer = Answer.of("two words", data=Page(text="two words", names=["a", "b"]))
    assert answer.size < 100
    assert wire.content_size(wire.answer_result(answer)) < 200
    assert length_of(None) < 10
