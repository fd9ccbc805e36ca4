"""Pure: units, which stay together: directories that are one thing, and files that belong together by their names."""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from holdfast.organiser.model import Unit

_REPOSITORY_MARKS = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", "_darcs", "CVS"})
_BARE_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
_PROJECT_MARKS = frozenset(
    {"pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "package.json", "deno.json", "Cargo.toml", "go.mod", "pom.xml",
     "build.gradle", "build.gradle.kts", "settings.gradle", "build.sbt", "CMakeLists.txt", "Makefile", "makefile",
     "meson.build", "configure.ac", "WORKSPACE", "MODULE.bazel", "Gemfile", "composer.json", "mix.exs", "rebar.config",
     "pubspec.yaml", "Package.swift", "Podfile", "stack.yaml", "dune-project", "shard.yml", "build.zig", "flake.nix",
     "Dockerfile", "docker-compose.yml", "compose.yaml", "ProjectSettings", "project.godot", "_config.yml",
     "mkdocs.yml", "book.toml", "dbt_project.yml", "platformio.ini"}
)  # fmt: skip
_PROJECT_SUFFIXES = frozenset(
    "sln csproj fsproj vbproj vcxproj xcodeproj xcworkspace uproject cabal gemspec nimble iml code-workspace kicad_pro "
    "aep prproj ptx flp als cpr rpp drp veg".split()
)
_COMPANIONS = frozenset(
    "src lib app tests test spec node_modules target build dist cmd pkg public Assets ProjectSettings Packages "
    "include docs Content Sources".split()
)
_SCENES = frozenset({"blend", "c4d", "max", "ma", "mb", "skp"})
_TEXTURES = frozenset({"textures", "Textures", "maps", "tex", "assets"})
_BUNDLE_SUFFIXES = frozenset(
    "pages numbers key rtfd epub scriv ulysses logicx band garageband oo3 graffle xmind textbundle "
    "playground workflow scptd webarchive nib xib dtbase2".split()
)
_RAW = frozenset(
    "dng cr2 cr3 crw nef nrw arw srf sr2 raf orf rw2 rwl pef srw 3fr fff iiq x3f mrw kdc erf mef mos gpr heic heif".split()
)
_PICTURES = _RAW | frozenset("jpg jpeg png tif tiff webp avif".split())
_SIDECARS = frozenset("xmp aae thm pp3 dop on1 cos arp nksc vrd wav json".split())
_CLIPS = frozenset("mov mp4".split())
_FILMS = _CLIPS | frozenset("mkv avi webm m4v mpg mpeg wmv ts".split())
_SUBTITLES = frozenset("srt sub idx ass ssa vtt smi".split())
_WEAK_SIDECARS = frozenset("json wav mov mp4".split())
_PAGES = frozenset("html htm xhtml mht".split())
_PAGE_FOLDERS = ("_files", "_Dateien", "_fichiers", "_archivos", ".files")
_VOLUMES = (
    re.compile(r"(?P<stem>.+)\.part\d{1,4}\.(?P<kind>rar|exe|zip|7z)\Z", re.IGNORECASE),
    re.compile(
        r"(?P<stem>.+)\.(?P<kind>7z|zip|tar|rar|gz|tgz|bz2|xz|zst|iso|img|mkv|mp4|bin)\.\d{2,4}\Z", re.IGNORECASE
    ),
    re.compile(r"(?P<stem>.+)\.(?P<kind>z|r|s|a)\d{2,3}\Z", re.IGNORECASE),
    re.compile(r"(?P<stem>.+)\.(?P<kind>)\d{3}\Z"),
)
_HEAD_OF = {"z": "zip", "r": "rar", "s": "rar", "a": "ace", "exe": "rar"}
GROUP_SUFFIXES = _PICTURES | _SIDECARS | _FILMS | _SUBTITLES | _PAGES | frozenset({"rar", "zip", "7z", "exe"})

Group = tuple[Unit, tuple[str, ...]]


def suffixes_of(names: Iterable[str]) -> frozenset[str]:
    """Return the distinct suffixes of names, in lower case; a name without a dot is its own suffix."""
    return frozenset([end.lower() for end in {name[name.rfind(".") + 1 :] for name in names}])


def unit_of_directory(name: str, names: AbstractSet[str], suffixes: AbstractSet[str]) -> Unit | None:
    """Return what unit a directory is, by its name and the names in it; None if its files are sorted one by one."""
    if _is_repository(names):
        return Unit.REPOSITORY
    if _suffix(name) in _BUNDLE_SUFFIXES:
        return Unit.BUNDLE
    return Unit.PROJECT if _is_project(names, suffixes) or _is_scene(names, suffixes) else None


def unit_of_scanned_folder(names: AbstractSet[str], suffixes: AbstractSet[str]) -> Unit | None:
    """Return what unit the scanned folder is; a stray project file among downloads does not make it a project."""
    if _is_repository(names):
        return Unit.REPOSITORY
    return Unit.PROJECT if _is_project(names, suffixes) and not _COMPANIONS.isdisjoint(names) else None


def may_be_grouped(name: str) -> bool:
    """Return whether a file with this name can belong to a group."""
    suffix = _suffix(name)
    return suffix in GROUP_SUFFIXES or suffix[-1:].isdigit()


def find_groups(files: Sequence[str], directories: Iterable[str]) -> list[Group]:
    """Return the groups among the entries of one directory, each with its main file first; no name is in two."""
    grouped_names: set[str] = set()
    groups: list[Group] = []
    for unit, members in (
        *_archive_groups(files),
        *_page_groups(files, frozenset(directories)),
        *_photo_groups(files),
        *_film_groups(files),
    ):
        free = tuple(name for name in members if name not in grouped_names)
        if len(free) > 1:
            grouped_names.update(free)
            groups.append((unit, free))
    return groups


def _is_repository(names: AbstractSet[str]) -> bool:
    return not _REPOSITORY_MARKS.isdisjoint(names) or names >= _BARE_REPOSITORY


def _is_project(names: AbstractSet[str], suffixes: AbstractSet[str]) -> bool:
    return not (_PROJECT_MARKS.isdisjoint(names) and _PROJECT_SUFFIXES.isdisjoint(suffixes))


def _is_scene(names: AbstractSet[str], suffixes: AbstractSet[str]) -> bool:
    """Return whether a 3D scene lies beside the textures that it refers to by relative paths."""
    return not (_TEXTURES.isdisjoint(names) or _SCENES.isdisjoint(suffixes))


def _archive_groups(files: Sequence[str]) -> list[Group]:
    """Group the volumes of split archives, each with the volume that opens it first."""
    volumes: dict[tuple[str, str], list[str]] = {}
    for name in files:
        for pattern in _VOLUMES:
            if match := pattern.match(name):
                kind = match["kind"].lower()
                volumes.setdefault((match["stem"].lower(), _HEAD_OF.get(kind, kind)), []).append(name)
                break
    by_lower = {name.lower(): name for name in files}
    groups: list[Group] = []
    for (stem, kind), names in volumes.items():
        head = by_lower.get(f"{stem}.{kind}")
        groups.append((Unit.ARCHIVE, (*([head] if head else []), *sorted(names))))
    return groups


def _page_groups(files: Sequence[str], directories: frozenset[str]) -> list[Group]:
    """Group saved web pages with the folders that a browser put beside them."""
    if not directories:
        return []
    groups: list[Group] = []
    for name in files:
        if _suffix(name) in _PAGES:
            beside = [folder for end in _PAGE_FOLDERS if (folder := name.rpartition(".")[0] + end) in directories]
            if beside:
                groups.append((Unit.PAGE, (name, *beside)))
    return groups


def _photo_groups(files: Sequence[str]) -> list[Group]:
    """Group pictures with the files that cameras and editors write beside them: RAW, JPEG, XMP, AAE, clips of live photos.

    `IMG_1.CR2`, `IMG_1.JPG`, `IMG_1.xmp` and `IMG_1.CR2.xmp` are one group. A clip counts only beside a picture
    of a phone or a camera (HEIC, JPEG); a PNG beside a JPEG of the same name is a picture of its own.
    """
    by_stem: dict[str, list[str]] = {}
    for name in files:
        suffix = _suffix(name)
        if suffix in _PICTURES or suffix in _SIDECARS or suffix in _CLIPS:
            by_stem.setdefault(_photo_stem(name), []).append(name)
    groups: list[Group] = []
    for names in by_stem.values():
        members = _photo_group(names)
        if len(members) > 1:
            groups.append((Unit.PHOTO, members))
    return groups


def _photo_group(names: Sequence[str]) -> tuple[str, ...]:
    suffixes = {name: _suffix(name) for name in names}
    pictures = [name for name in names if suffixes[name] in _PICTURES]
    raw = [name for name in pictures if suffixes[name] in _RAW]
    plain = [name for name in pictures if suffixes[name] in ("jpg", "jpeg")]
    main = (raw or plain or pictures)[:1]
    together = main + [name for name in (*raw, *plain) if name not in main] if raw else main
    beside = [
        name for name in names if name not in pictures and _goes_with(suffixes[name], name, main, bool(raw or plain))
    ]
    return (*together, *beside) if main else ()


def _goes_with(suffix: str, name: str, main: Sequence[str], from_camera: bool) -> bool:
    if suffix == "json":  # Google Takeout writes IMG_1.jpg.json; a plain IMG_1.json may be anything
        return name.lower().rpartition(".")[0] in [picture.lower() for picture in main]
    return suffix not in _WEAK_SIDECARS or from_camera


def _film_groups(files: Sequence[str]) -> list[Group]:
    """Group videos with their subtitles: `film.mkv`, `film.srt` and `film.en.srt`."""
    subtitles = [name for name in files if _suffix(name) in _SUBTITLES]
    films = {name.rpartition(".")[0].lower(): name for name in files if _suffix(name) in _FILMS} if subtitles else {}
    members: dict[str, list[str]] = {}
    for name in subtitles:
        stem = name.rpartition(".")[0].lower()
        film = films.get(stem) or films.get(stem.rpartition(".")[0])
        if film is not None:
            members.setdefault(film, []).append(name)
    return [(Unit.FILM, (film, *names)) for film, names in members.items()]


def _photo_stem(name: str) -> str:
    stem = name.rpartition(".")[0].lower()
    inner, dot, suffix = stem.rpartition(".")
    return inner if dot and suffix in _PICTURES else stem


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name[1:] else ""
