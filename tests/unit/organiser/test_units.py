"""What stays together."""

import pytest

from holdfast.organiser.model import Unit
from holdfast.organiser.scan.units import (
    find_groups,
    may_be_grouped,
    suffixes_of,
    unit_of_directory,
    unit_of_scanned_folder,
)


@pytest.mark.parametrize(
    ("name", "names", "unit"),
    [
        ("thing", {".git", "README.md"}, Unit.REPOSITORY),
        ("thing", {".hg"}, Unit.REPOSITORY),
        ("thing", {"CVS", "a.c"}, Unit.REPOSITORY),
        ("thing.git", {"HEAD", "config", "objects", "refs"}, Unit.REPOSITORY),
        ("thing", {"pyproject.toml", "src"}, Unit.PROJECT),
        ("thing", {"package.json"}, Unit.PROJECT),
        ("thing", {"Cargo.toml"}, Unit.PROJECT),
        ("thing", {"Thing.sln"}, Unit.PROJECT),
        ("thing", {"Thing.xcodeproj"}, Unit.PROJECT),
        ("thing", {"Assets", "ProjectSettings"}, Unit.PROJECT),
        ("thing", {"scene.blend", "textures"}, Unit.PROJECT),
        ("thing", {"scene.blend", "other.blend"}, None),
        ("Talk.key", {"index.apxl"}, Unit.BUNDLE),
        ("Novel.scriv", {"Files"}, Unit.BUNDLE),
        ("Invoices", {"a.pdf", "b.pdf"}, None),
    ],
)
def test_a_directory_that_is_one_thing_is_known(name: str, names: set[str], unit: Unit | None) -> None:
    assert unit_of_directory(name, names, suffixes_of(names)) is unit


def test_a_stray_project_file_makes_no_project_of_the_downloads() -> None:
    for names, unit in (
        ({"package.json", "a.pdf", "b.jpg"}, None),
        ({"package.json", "src", "README.md"}, Unit.PROJECT),
        ({".git", "a.pdf"}, Unit.REPOSITORY),
    ):
        assert unit_of_scanned_folder(names, suffixes_of(names)) is unit


@pytest.mark.parametrize(
    ("files", "unit"),
    [
        (["IMG_1.CR2", "IMG_1.JPG", "IMG_1.xmp"], ("IMG_1.CR2", "IMG_1.JPG", "IMG_1.xmp")),
        (["IMG_1.CR2", "IMG_1.CR2.xmp"], ("IMG_1.CR2", "IMG_1.CR2.xmp")),
        (["IMG_1.HEIC", "IMG_1.MOV", "IMG_1.AAE"], ("IMG_1.HEIC", "IMG_1.MOV", "IMG_1.AAE")),
        (["IMG_1.JPG", "IMG_1.MOV"], ("IMG_1.JPG", "IMG_1.MOV")),
        (["IMG_1.jpg", "IMG_1.jpg.json"], ("IMG_1.jpg", "IMG_1.jpg.json")),
        (["IMG_1.jpg", "IMG_1.json"], None),
        (["logo.png", "logo.jpg"], None),
        (["IMG_1.JPG", "IMG_2.JPG"], None),
        (["IMG_1.xmp", "IMG_1.mov"], None),
        (["clip.mov", "clip.png"], None),
    ],
)
def test_a_photo_keeps_its_sidecars(files: list[str], unit: tuple[str, ...] | None) -> None:
    assert find_groups(files, ()) == ([(Unit.PHOTO, unit)] if unit else [])


@pytest.mark.parametrize(
    ("files", "unit"),
    [
        (
            ["game.part1.rar", "game.part2.rar", "game.part10.rar"],
            ("game.part1.rar", "game.part10.rar", "game.part2.rar"),
        ),
        (["a.zip", "a.z01", "a.z02"], ("a.zip", "a.z01", "a.z02")),
        (["a.rar", "a.r00", "a.r01", "a.s00"], ("a.rar", "a.r00", "a.r01", "a.s00")),
        (["a.7z.001", "a.7z.002"], ("a.7z.001", "a.7z.002")),
        (["disk.001", "disk.002"], ("disk.001", "disk.002")),
        (["a.part1.exe", "a.part2.rar"], ("a.part1.exe", "a.part2.rar")),
        (["a.7z.001"], None),
        (["a.zip", "b.z01"], None),
        (["v1.100", "v2.200"], None),
    ],
)
def test_the_volumes_of_an_archive_stay_together(files: list[str], unit: tuple[str, ...] | None) -> None:
    assert find_groups(files, ()) == ([(Unit.ARCHIVE, unit)] if unit else [])


@pytest.mark.parametrize(
    ("files", "unit"),
    [
        (["film.mkv", "film.srt"], ("film.mkv", "film.srt")),
        (["Film.MP4", "film.de.srt", "film.en.srt", "other.srt"], ("Film.MP4", "film.de.srt", "film.en.srt")),
        (["film.srt", "film.idx"], None),
        (["film.mkv", "sequel.srt"], None),
        (["film.pdf", "film.srt"], None),
    ],
)
def test_a_video_keeps_its_subtitles(files: list[str], unit: tuple[str, ...] | None) -> None:
    assert find_groups(files, ()) == ([(Unit.FILM, unit)] if unit else [])


def test_a_saved_page_keeps_its_folder() -> None:
    assert find_groups(["News.html", "Other.htm"], {"News_files", "Invoices"}) == [
        (Unit.PAGE, ("News.html", "News_files"))
    ]


def test_no_file_is_in_two_units() -> None:
    names = ["a.jpg", "a.xmp", "a.zip", "a.z01", "a.html"]
    found = find_groups(names, {"a_files"})
    members = [name for _, unit in found for name in unit]
    assert len(members) == len(set(members)) == 6


def test_many_photos_are_grouped_in_no_time() -> None:
    names = [f"IMG_{n}.{suffix}" for n in range(20_000) for suffix in ("CR2", "JPG", "xmp")]
    assert len(find_groups(names, ())) == 20_000


def test_a_name_that_cannot_belong_to_others_is_passed_over() -> None:
    assert may_be_grouped("a.JPG")
    assert may_be_grouped("a.z01")
    assert may_be_grouped("a.html")
    assert may_be_grouped("a.srt")
    assert not may_be_grouped("a.pdf")
    assert not may_be_grouped("README")
