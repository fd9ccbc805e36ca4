"""Decisions on single files of a plan: which file and folder are meant, and how the moves and the notes change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.changes.model import Item
from holdfast.changes.names import collision_key, parent_of
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.errors import InvalidArgument
from holdfast.organiser.classify.taxonomy import clean_name
from holdfast.organiser.model import DestinationFolder, Notes, UncertainFile, Verdict
from holdfast.organiser.scan.survey import SurveyedFile

_MAX_DEPTH = 8


def resolve_folder(folder: str, destinations: Iterable[str]) -> str:
    """Return a chosen folder as a path from the planned folder, spelled like a destination if it is one.

    InvalidArgument for a name that cannot be a folder name, or a path that leads elsewhere.
    """
    known = list(destinations)
    if folder.strip("/") in known and not folder.startswith("/"):
        return folder.strip("/")
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if len(parts) > _MAX_DEPTH:
        raise InvalidArgument(f"a folder must lie at most {_MAX_DEPTH} levels below the planned one: {folder!r}")
    if folder.startswith("/") or not parts:
        raise InvalidArgument(
            f"a folder is named by its path from the planned one, such as 'Invoices/2024': {folder!r}"
        )
    clean = "/".join(clean_name(part) for part in parts)
    return next((name for name in known if collision_key(name) == collision_key(clean)), clean)


def resolve_file(path: str, folder: str, files: Mapping[str, SurveyedFile]) -> str:
    """Return the file that a path means, from the planned folder; a member of a unit means the unit's main file."""
    base = f"{folder.rstrip('/')}/"
    relative = path.removeprefix(base).removeprefix("./")
    if relative in files:
        return files[relative].file.relative
    raise InvalidArgument(f"{path!r} is not a file of this plan in {folder}.")


def index_by_path(files: Iterable[SurveyedFile]) -> dict[str, SurveyedFile]:
    """Return files by their paths from the scanned folder; a unit is listed under the path of each of its members too."""
    by_path: dict[str, SurveyedFile] = {}
    for entry in files:
        for file in (entry.file, *entry.file.members):
            by_path[file.relative] = entry
    return by_path


@dataclass(slots=True)
class PlanRevision:
    """Changes to the moves of a plan: new destinations by position (None removes a move), new reasons, added moves."""

    dests: dict[int, str | None] = field(default_factory=dict)
    reasons: dict[int, tuple[str, float]] = field(default_factory=dict)
    added: list[MoveRequest] = field(default_factory=list)


def compare_moves(moves: Sequence[Item], requests: Sequence[MoveRequest]) -> PlanRevision:
    """Return the revision that turns the moves of a plan into the wanted ones.

    A source that is a different file since the plan was made is removed and added again.
    """
    revision = PlanRevision()
    by_source = {request.src: request for request in requests}
    for item in moves:
        request = by_source.get(item.src_path)
        if request is None or (
            request.known_version is not None and request.known_version.composite_hash != item.composite_hash
        ):
            revision.dests[item.position] = None
            continue
        del by_source[item.src_path]
        if parent_of(request.dest) != parent_of(item.dest_path or ""):
            revision.dests[item.position] = request.dest
        revision.reasons[item.position] = (request.reasoning or "", request.confidence or 0.0)
    revision.added = list(by_source.values())
    return revision


def moves_to_keep(moves: Iterable[Item], folder: str, decisions: Mapping[str, str | None]) -> dict[str, Verdict]:
    """Return the moves of a plan that decisions on other files do not call into question, as verdicts by absolute path.

    The category of a verdict is the folder of the move. A folder that one of the decided files is kept from is in
    question, with every move to it.
    """
    base = f"{folder.rstrip('/')}/"
    verdicts: dict[str, Verdict] = {}
    withdrawn: set[str] = set()
    for item in moves:
        target = parent_of(item.dest_path or "").removeprefix(base)
        if (path := item.src_path.removeprefix(base)) not in decisions:
            verdicts[item.src_path] = Verdict(target, item.confidence or 0.0, reasoning=item.reasoning or "")
        elif decisions[path] != target:
            withdrawn.add(target)
    return {path: verdict for path, verdict in verdicts.items() if verdict.category not in withdrawn}


def revise_notes(
    notes: Notes, decisions: Mapping[str, str | None], uncertain: Iterable[UncertainFile], directories: Iterable[str]
) -> Notes:
    """Return the notes of a plan after decisions; `uncertain` are the chosen files that cannot be moved as decided.

    `directories` are the names of the directories in the planned folder.
    """
    undecided = tuple(file for file in notes.uncertain if file.relative not in decisions)
    added, existing = tuple(uncertain), set(directories)
    known = {destination.folder for destination in notes.destinations}
    new = dict.fromkeys(folder for folder in decisions.values() if folder and folder not in known)
    return replace(
        notes,
        destinations=(
            *notes.destinations,
            *(DestinationFolder(folder, folder, folder not in existing) for folder in new),
        ),
        uncertain=(*added, *undecided),
        uncertain_count=notes.uncertain_count - (len(notes.uncertain) - len(undecided)) + len(added),
        decisions={**notes.decisions, **decisions},
    )
