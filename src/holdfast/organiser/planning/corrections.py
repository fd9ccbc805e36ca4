"""What somebody decides about single files of a plan: which file is meant, which folder, and how the plan changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.changes.model import Item
from holdfast.changes.names import collision_key, parent_of
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.errors import InvalidArgument
from holdfast.organiser.classify.taxonomy import clean_name
from holdfast.organiser.model import DestinationFolder, Notes, UncertainFile
from holdfast.organiser.scan.survey import SurveyedFile

_MAX_DEPTH = 8


def chosen_folder(folder: str, known: Iterable[str]) -> str:
    """Return a folder that somebody chose, by its path from the planned one; one that is known in other letters is that.

    InvalidArgument for a name that cannot be, or a path that leads elsewhere.
    """
    shelves = list(known)
    if folder.strip("/") in shelves and not folder.startswith("/"):
        return folder.strip("/")
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if len(parts) > _MAX_DEPTH:
        raise InvalidArgument(f"a folder must lie at most {_MAX_DEPTH} levels below the planned one: {folder!r}")
    if folder.startswith("/") or not parts:
        raise InvalidArgument(
            f"a folder is named by its path from the planned one, such as 'Invoices/2024': {folder!r}"
        )
    clean = "/".join(clean_name(part) for part in parts)
    return next((one for one in shelves if collision_key(one) == collision_key(clean)), clean)


def meant_file(path: str, folder: str, files: Mapping[str, SurveyedFile]) -> str:
    """Return the file that a path means, from the planned folder; what goes with another file means that one."""
    base = f"{folder.rstrip('/')}/"
    relative = path.removeprefix(base).removeprefix("./")
    if relative in files:
        return files[relative].found.relative
    raise InvalidArgument(f"{path!r} is no file that the plan's scan found in {folder}.")


def by_path(files: Iterable[SurveyedFile]) -> dict[str, SurveyedFile]:
    """Return files by their paths from the scanned folder, and under each path of what goes with them too."""
    found: dict[str, SurveyedFile] = {}
    for one in files:
        for entry in (one.found, *one.found.members):
            found[entry.relative] = one
    return found


@dataclass(slots=True)
class PlanRevision:
    """How the moves of a plan change: other destinations or none by position, other reasons, further moves."""

    dests: dict[int, str | None] = field(default_factory=dict)
    reasons: dict[int, tuple[str, float]] = field(default_factory=dict)
    added: list[MoveRequest] = field(default_factory=list)


def redrawn(moves: Sequence[Item], wishes: Sequence[MoveRequest]) -> PlanRevision:
    """Return what turns the moves of a plan into those that are wished; a source that is another file by now counts anew."""
    result = PlanRevision()
    wanted = {wish.src: wish for wish in wishes}
    for item in moves:
        wish = wanted.get(item.src_path)
        if wish is None or (wish.seen is not None and wish.seen.composite_hash != item.composite_hash):
            result.dests[item.position] = None
            continue
        del wanted[item.src_path]
        if parent_of(wish.dest) != parent_of(item.dest_path or ""):
            result.dests[item.position] = wish.dest
        result.reasons[item.position] = (wish.reasoning or "", wish.confidence or 0.0)
    result.added = list(wanted.values())
    return result


def of_files(moves: Sequence[Item], paths: Iterable[str]) -> list[Item]:
    """Return the moves of these files."""
    meant = set(paths)
    return [item for item in moves if item.src_path in meant]


def relabelled(
    notes: Notes, chosen: Mapping[str, str | None], doubts: Iterable[UncertainFile], directories: Iterable[str]
) -> Notes:
    """Return the notes of a plan after decisions on single files; `doubts` are those that could not be carried out."""
    kept = tuple(doubt for doubt in notes.doubts if doubt.relative not in chosen)
    added, there = tuple(doubts), set(directories)
    known = {shelf.folder for shelf in notes.shelves}
    folders = dict.fromkeys(folder for folder in chosen.values() if folder and folder not in known)
    return replace(
        notes,
        shelves=(*notes.shelves, *(DestinationFolder(folder, folder, folder not in there) for folder in folders)),
        doubts=(*added, *kept),
        doubted=notes.doubted - (len(notes.doubts) - len(kept)) + len(added),
        decisions={**notes.decisions, **chosen},
    )
