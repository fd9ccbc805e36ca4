"""Runs one mutation under the project lock: idempotency check, work, quota, index jobs, stored answer."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from holdfast.errors import Conflict, InvalidArgument, QuotaExceeded
from holdfast.store.model import AppliedRequest, IndexJob, ProjectState, Stamp, StoreLimits, next_stamp
from holdfast.store.ports import Mutation

MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A caller's idempotency key, and the hash of the request that it stands for."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation answers, and by how much it changed the project; no jobs means that nothing changed."""

    answer: int
    jobs: tuple[IndexJob, ...] = ()
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MutationContext:
    """An open mutation with its limits and its time.

    The stamp needs the project's state, so it is read after all other reads have been sent: they go out together.
    """

    mutation: Mutation
    limits: StoreLimits
    now: datetime

    @property
    def stamp(self) -> Stamp:
        """Return the version and time of this mutation."""
        return next_stamp(self.mutation.state, self.now)


Work = Callable[[MutationContext], MutationResult]


def identify_request(key: str | None, tool: str, *arguments: object) -> IdempotentRequest | None:
    """Return the identity of a request, None when the caller gave no key; InvalidArgument for an unusable key."""
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise InvalidArgument(f"idempotency_key must be 1 to {MAX_KEY_CHARS} printable characters")
    request = json.dumps([tool, *arguments]).encode()
    return IdempotentRequest(key, hashlib.sha256(request).hexdigest())


def run_mutation(context: MutationContext, request: IdempotentRequest | None, work: Work) -> int:
    """Do the work and return its answer; a request that was applied before gets its first answer again.

    Conflict when the idempotency key was used for another request, QuotaExceeded when the project would grow too large.
    """
    mutation = context.mutation
    if request is not None:
        applied = mutation.find_applied(request.key)
        if applied is not None:
            if applied.digest != request.digest:
                raise Conflict(f"idempotency_key was used for another request: {request.key[:80]!a}")
            return applied.answer
    result = work(context)
    if not result.jobs:
        return result.answer
    state, stamp = mutation.state, context.stamp
    total_bytes = state.total_bytes + result.bytes
    if result.bytes > 0 and total_bytes > context.limits.max_project_bytes:
        raise QuotaExceeded(
            f"the project would hold {total_bytes} bytes; the limit is {context.limits.max_project_bytes}"
        )
    mutation.enqueue(result.jobs, stamp)
    mutation.settle(
        ProjectState(stamp.version, state.file_count + result.files, total_bytes, stamp.at),
        stamp,
        AppliedRequest(request.key, request.digest, result.answer) if request else None,
    )
    return result.answer
