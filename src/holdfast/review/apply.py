"""What is written when an approved review is committed: the approved text, or its merge with what came in between."""

from collections.abc import Callable

from holdfast.errors import Conflict, EditRejected
from holdfast.review.model import Review, as_text
from holdfast.text.decode import decode, detect_encoding
from holdfast.text.diff import unified_diff
from holdfast.text.edit_text import encode_text
from holdfast.text.merge import merge


class Applied:
    """A review on its way into its file; `merged` is what was written when the file had changed in between."""

    def __init__(self, review: Review) -> None:
        self.review = review
        self.merged: bytes | None = None

    @property
    def merged_diff(self) -> str:
        """Return how the written text differs from the approved one, empty when it does not."""
        if self.merged is None:
            return ""
        encoding = self.review.encoding
        written = as_text(self.merged, detect_encoding(self.merged) or encoding)
        return unified_diff(as_text(self.review.text, encoding), written, self.review.path)


def content_of(applied: Applied) -> Callable[[bytes | None], bytes]:
    """Return what says, given the file's present bytes, which ones to write. Conflict when both do not go together."""
    review = applied.review

    def content(present: bytes | None) -> bytes:
        if present == review.base:
            return review.text
        merged = None if present is None or review.base is None else _merged(review, present)
        if present == review.text:
            merged = present
        if merged is None:
            raise Conflict(
                f"{review.path} has changed since it was proposed, and the changes do not go together. "
                "Nothing was written.",
                hint="Read the file again and propose the change anew, without session_path.",
            )
        applied.merged = merged
        return merged

    return content


def _merged(review: Review, present: bytes) -> bytes | None:
    """Return the merge in the encoding that the file has now, None when there is none."""
    encoding = detect_encoding(present)
    if encoding is None or review.base is None:
        return None
    try:
        base, approved = decode(review.base, review.encoding), decode(review.text, review.encoding)
        text = merge(base, approved, decode(present, encoding))
        return None if text is None else encode_text(text, encoding)
    except (UnicodeDecodeError, EditRejected):
        return None
