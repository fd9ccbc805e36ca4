"""Reads files that lie in folders already, as examples of what belongs there: of a large folder an even part."""

from collections.abc import Iterable

from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.organiser.classify.taxonomy import MAX_EXAMPLES, folder_of
from holdfast.organiser.model import Example, FileType, ScannedFile
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.excerpts import why_deep
from holdfast.organiser.scan.read import PeekedFile, deepen, look
from holdfast.organiser.scan.walk import FolderScan


def known_files(
    jail: Jail, call: Call, folder: str, options: ScanOptions, max_bytes: int, most: int = MAX_EXAMPLES
) -> list[Example]:
    """Return at most so many files of each folder below one; `category` is the folder's path from there.

    Files that lie loose in the folder itself are no examples. Documents over `max_bytes` count by name and type alone.
    Raises what the jail raises for a folder outside the roots, and Cancelled or TimedOut as the call does.
    """
    chosen = _chosen((found for batch in FolderScan(jail, call, folder, options) for found in batch.found), most)
    looks = [one for one in look(jail, call, chosen) if one.skip is None]
    deep = [one for one in looks if why_deep(one.excerpt, one.found.suffix.removeprefix("."))]
    texts = deepen(jail, call, [(one.found, one.excerpt) for one in deep], max_bytes)
    read = {one.found.relative: excerpt for one, excerpt in zip(deep, texts, strict=True)}
    return [_example(one._replace(excerpt=read.get(one.found.relative, one.excerpt))) for one in looks]


def _chosen(files: Iterable[ScannedFile], most: int) -> list[ScannedFile]:
    folders: dict[str, list[ScannedFile]] = {}
    for found in files:
        if found.kind is FileType.FILE and found.folder:
            folders.setdefault(folder_of(found.folder), []).append(found)
    return [
        files[at * len(files) // kept]
        for files in folders.values()
        for kept in (min(most, len(files)),)
        for at in range(kept)
    ]


def _example(one: PeekedFile) -> Example:
    category = folder_of(one.found.folder)
    return Example(one.file_hash, one.found.name, category, one.excerpt.text, one.excerpt.content_type)
