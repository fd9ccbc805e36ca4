"""What commit_review writes: the approved text, or its merge with what happened to the file since the proposal."""

from holdfast.errors import Conflict, EditRejected
from holdfast.review.model import Review, as_text
from holdfast.text.decode import decode, detect_encoding
from holdfast.text.diff import unified_diff
from holdfast.text.edit_text import encode_text
from holdfast.text.merge import merge


class CommitContent:
    """The content that a commit writes; `merged` is set when the file had changed since the proposal."""

    def __init__(self, review: Review) -> None:
        self.review = review
        self.merged: bytes | None = None

    def choose(self, present: bytes | None) -> bytes:
        """Return what to write, given the file's present bytes. Conflict when the two changes do not merge."""
        review = self.review
        if present == review.base:
            return review.text
        if present == review.text:
            self.merged = review.text
        else:
            self.merged = _merge(review, present)
        if self.merged is None:
            raise Conflict(
                f"{review.path} has changed since it was proposed, and the changes do not merge. Nothing was written.",
                hint="Read the file again and propose the change anew, without session_path.",
            )
        return self.merged

    @property
    def merged_diff(self) -> str:
        """Return how the written text differs from the approved one, empty when it does not."""
        if self.merged is None:
            return ""
        encoding = self.review.encoding
        written = as_text(self.merged, detect_encoding(self.merged) or encoding)
        return unified_diff(as_text(self.review.text, encoding), written, self.review.path)


def _merge(review: Review, present: bytes | None) -> bytes | None:
    """Return the merge in the encoding that the file has now, None when there is none."""
    encoding = None if present is None else detect_encoding(present)
    if present is None or encoding is None or review.base is None:
        return None
    try:
        base, approved = decode(review.base, review.encoding), decode(review.text, review.encoding)
        text = merge(base, approved, decode(present, encoding))
        return None if text is None else encode_text(text, encoding)
    except (UnicodeDecodeError, EditRejected):
        return None
