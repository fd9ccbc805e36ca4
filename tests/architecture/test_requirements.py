"""Every landed promise has a test, every acceptance test names a promise, and both checks can fail."""

from pathlib import Path

import pytest

from tests.architecture.requirements import Map, marked_tests, problems, read_map, spec_problems

TOP = Path(__file__).parents[2]
MAP = TOP / "tests" / "acceptance" / "requirements.toml"
SPEC = TOP.parent / "shared" / "spec"

SMALL = Map(
    {"FS-01": "folders", "FS-02": "folders", "FS-02.a": "folders", "RV-01": "changes"},
    frozenset({"folders"}),
    frozenset({"FS-02"}),
)


def test_every_landed_promise_has_a_test_and_every_acceptance_test_a_promise() -> None:
    lines = problems(read_map(MAP), marked_tests(TOP / "tests"))

    assert not lines, "\n" + "\n".join(lines)


def test_the_map_has_the_rows_of_the_specification_where_that_is_beside_the_checkout() -> None:
    lines = spec_problems(read_map(MAP), SPEC) if SPEC.is_dir() else []

    assert not lines, "\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('@pytest.mark.req("FS-01", "FS-02.a")\ndef test_both(): ...', []),
        ('pytestmark = pytest.mark.req("FS-01")\n@pytest.mark.req("FS-02.a")\nasync def test_by_module(): ...', []),
        (
            '@pytest.mark.req("FS-01")\nclass TestAll:\n    @pytest.mark.req("FS-02.a")\n    def test_by_class(self): ...',
            [],
        ),
        (
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("FS-01", "FS-02.a"))])\ndef test_by_param(x): ...',
            [],
        ),
        ('@pytest.mark.req("FS-01")\ndef test_one(): ...', ["FS-02.a has landed and no test names it"]),
        (
            '@pytest.mark.req("FS-01", "FS-02")\ndef test_a_row_is_not_its_clause(): ...',
            ["FS-02.a has landed and no test names it"],
        ),
        (
            '@pytest.mark.req("FS-01", "FS-02.a")\ndef test_ok(): ...\ndef test_none(): ...',
            ["test_it.py::test_none names no requirement"],
        ),
        (
            '@pytest.mark.req("FS-01", "FS-02.a", "FS-99")\ndef test_typo(): ...',
            ["test_it.py::test_typo names 'FS-99', which is not in the map"],
        ),
        ("", ["FS-01 has landed and no test names it", "FS-02.a has landed and no test names it"]),
    ],
)
def test_the_check_sees_what_is_missing(tmp_path: Path, source: str, expected: list[str]) -> None:
    folder = tmp_path / "acceptance"
    folder.mkdir()
    (folder / "test_it.py").write_text(source)

    assert problems(SMALL, marked_tests(tmp_path)) == expected


def test_a_unit_test_may_name_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        '@pytest.mark.req("FS-01", "FS-02.a")\ndef test_ok(): ...\ndef test_none(): ...'
    )

    assert problems(SMALL, marked_tests(tmp_path)) == []


def test_the_check_sees_a_row_that_only_one_side_has(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("- FS-01 x\n- FS-02 y\n- SV-09 z, see FS-02.a")

    assert spec_problems(SMALL, tmp_path) == [
        "SV-09 is specified and missing in the map",
        "RV-01 is in the map and not specified",
    ]


def test_a_part_nobody_knows_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "map.toml"
    file.write_text('landed = []\nparts = ["folders"]\n[rows.FS-01]\npart = "fodlers"\n')

    with pytest.raises(ValueError, match="fodlers"):
        read_map(file)
