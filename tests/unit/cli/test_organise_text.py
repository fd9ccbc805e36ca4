"""A plan as a person reads it in a terminal."""

from typing import Any

import click

from holdfast.cli.commands.organise.plan_text import executed_lines, list_lines, next_lines, plan_lines
from holdfast.text.display import display_width


def plan(status: str, **totals: int) -> dict[str, Any]:
    return {
        "plan_id": "3f2a" * 8,
        "status": status,
        "folder": "/in",
        "totals": {"moves": sum(totals.values()), "uncertain": 0, **totals},
        "folders": [{"folder": "Music", "files": sum(totals.values()), "confidence": 0.75, "is_new": True}],
        "uncertain": [],
        "skipped": {},
        "measures": {"files": 3, "cache_hit_rate": 0.0, "tokens_saved": 0, "do_nothing_ratio": 0.0},
    }


def headline(status: str, **totals: int) -> str:
    return click.unstyle(list(plan_lines(plan(status, **totals), [], every=False))[1])


def test_a_plan_that_waits_says_that_nothing_has_moved() -> None:
    assert headline("CREATED", PENDING=3) == "3 files would move to 1 new folder. Nothing has moved yet."
    assert headline("APPROVED", PENDING=1) == "1 file will move to 1 new folder. Nothing has moved yet."


def test_a_plan_that_was_interrupted_says_what_has_moved_and_how_to_go_on() -> None:
    said = headline("RUNNING", DONE=2, PENDING=3)
    assert said == "2 of 5 files moved to 1 new folder. It was interrupted before the end."
    told = "\n".join(
        click.unstyle(line) for line in next_lines(plan("RUNNING", DONE=2, PENDING=3), "k3x7mq2p", every=True)
    )
    assert "holdfast organise execute 3f2a3f2a  continue it" in told
    assert "holdfast organise undo 3f2a3f2a     undo it" in told


def test_a_plan_that_was_taken_back_in_part_says_both() -> None:
    assert headline("EXECUTED", DONE=2, UNDONE=3) == "2 of 5 files moved to 1 new folder. 3 came back."
    assert headline("UNDONE", UNDONE=5) == "5 of 5 files came back from 1 new folder."


def test_what_moved_nothing_is_not_offered_to_be_taken_back() -> None:
    done = {**plan("FAILED", ERROR=1), "problems": []}
    assert not any("undo" in line for line in executed_lines(done))


def test_a_file_without_a_guess_shows_why_and_its_line_ends_with_its_name() -> None:
    lost = {"path": "a.txt", "folder": "", "confidence": 0.12, "why": "It is not clearly like the files of any folder."}
    unsure = {**plan("CREATED", PENDING=1), "uncertain": [lost, {**lost, "path": "a much longer name.txt"}]}
    unsure["totals"]["uncertain"] = 2
    for every in (False, True):
        lines = [click.unstyle(line) for line in plan_lines(unsure, [], every=every)]
        assert any("It is not clearly" in line for line in lines)
        assert not any("?" in line for line in lines)
        assert all(line == line.rstrip() for line in lines if ".txt" in line or "clearly" in line)


def test_names_in_any_script_leave_the_next_column_where_it_is() -> None:
    names = ("会议记录会议记录 2024.txt", "🎉 party.txt", "plain.txt", "Ku\u0308rbis.txt", "会" * 60)
    lost = [{"path": name, "folder": "Music", "confidence": 0.5, "why": "Who knows."} for name in names]
    unsure = {**plan("CREATED", PENDING=1), "uncertain": lost}
    unsure["totals"]["uncertain"] = len(lost)
    lines = [click.unstyle(line) for line in plan_lines(unsure, [], every=False)]
    columns = {display_width(line.partition("Music?")[0]) for line in lines if "Music?" in line}
    assert columns == {80 - len("Music? 50%")}, "the guesses are short, so the names have the rest of the line"


def test_what_does_not_reach_the_gate_is_not_rounded_up_to_it() -> None:
    doubt = {"path": "a.txt", "folder": "Music", "confidence": 0.597, "why": "Who knows."}
    unsure = {**plan("CREATED", PENDING=1), "uncertain": [doubt]}
    unsure["totals"]["uncertain"] = 1
    assert any("Music? 59%" in click.unstyle(line) for line in plan_lines(unsure, [], every=False))


def test_a_reason_is_whole_in_eighty_columns_beside_any_name() -> None:
    why = "Neither its type nor its name says where it belongs."
    lost = [{"path": name, "folder": "", "confidence": 0.1, "why": why} for name in ("a.txt", "b" * 230 + ".txt")]
    unsure = {**plan("CREATED", PENDING=1), "uncertain": lost}
    unsure["totals"]["uncertain"] = 2
    lines = [click.unstyle(line) for line in plan_lines(unsure, [], every=False)]
    assert sum(line.endswith(why) for line in lines) == 2
    assert max(map(display_width, lines)) <= 80


def test_large_numbers_have_commas_and_no_line_of_measures_is_broken_in_a_word() -> None:
    large = {**plan("CREATED", PENDING=3_000), "uncertain": []}
    large["totals"]["uncertain"] = 2_980
    large["measures"] = {"files": 6_016, "cache_hit_rate": 0.001, "tokens_saved": 40_000, "do_nothing_ratio": 0.5}
    lines = [click.unstyle(line) for line in plan_lines(large, [], every=False)]
    assert "3,000  Music/" in "\n".join(lines)
    assert "  and 2,980 more" in lines
    assert not any("known before" in line for line in lines), "none in a hundred is no news"
    assert max(map(len, lines)) <= 80


def test_a_list_of_plans_has_its_columns_below_each_other() -> None:
    plans = [
        {"plan_id": "3f2a" * 8, "status": status, "folder": "/in", "moves": moves, "created_at": "2026-01-31T10:00:00Z"}
        for status, moves in (("UNDONE", {"UNDONE": 3_000}), ("CREATED", {"PENDING": 1}))
    ]
    lines = [click.unstyle(line) for line in list_lines(plans)]
    assert len({line.index("/in") for line in lines}) == 1
    assert "3,000 of 3,000 moved back" in lines[0]
