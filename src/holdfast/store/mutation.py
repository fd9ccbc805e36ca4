"""One mutation from lock to answer: asked before, done now, counted, queued for the index, remembered."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.clock import utc_clock
from holdfast.errors import Conflict, InvalidArgument, QuotaExceeded
from holdfast.store.model import AppliedRequest, IndexJob, ProjectState, Stamp, StoreLimits, next_stamp
from holdfast.store.ports import Mutation, StoreDatabase

MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class Desk:
    """What every verb works with."""

    database: StoreDatabase
    limits: StoreLimits
    now: Callable[[], datetime] = utc_clock

    def days_ago(self, days: float) -> datetime:
        """Return a time so many days before now."""
        return self.now() - timedelta(days=days)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A caller's word that this is one request, however often it is sent."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation answers, and what it did to the project; no jobs means that nothing changed."""

    answer: int
    jobs: tuple[IndexJob, ...] = ()
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MutationContext:
    """A mutation under way. The stamp is asked for after the reading, so that all reads can go out together."""

    mutation: Mutation
    now: datetime

    @property
    def stamp(self) -> Stamp:
        """Return the number and time of this mutation."""
        return next_stamp(self.mutation.state, self.now)


Work = Callable[[MutationContext], MutationResult]


def once(key: str | None, tool: str, *arguments: object) -> IdempotentRequest | None:
    """Return the identity of a request, None when the caller gave no key; InvalidArgument for an unusable key."""
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise InvalidArgument(f"idempotency_key must be 1 to {MAX_KEY_CHARS} printable characters")
    asked = json.dumps([tool, *arguments]).encode()
    return IdempotentRequest(key, hashlib.sha256(asked).hexdigest())


def mutate(desk: Desk, tenant: str, project: str, request: IdempotentRequest | None, work: Work) -> int:
    """Run a mutation under the project's lock and return its answer; a request seen before is answered, not run."""
    with desk.database.mutation(tenant, project, desk.limits.lock_timeout_ms) as mutation:
        if request is not None:
            before = mutation.applied(request.key)
            if before is not None:
                return _same(request, before)
        turn = MutationContext(mutation, desk.now())
        outcome = work(turn)
        if outcome.jobs:
            applied = AppliedRequest(request.key, request.digest, outcome.answer) if request else None
            mutation.enqueue(outcome.jobs, turn.stamp)
            mutation.settle(_counted(mutation.state, outcome, turn.stamp, desk.limits), turn.stamp, applied)
        return outcome.answer


def _same(request: IdempotentRequest, before: AppliedRequest) -> int:
    if before.digest != request.digest:
        raise Conflict(f"idempotency_key was used for another request: {request.key[:80]!a}")
    return before.answer


def _counted(state: ProjectState, outcome: MutationResult, stamp: Stamp, limits: StoreLimits) -> ProjectState:
    total = state.total_bytes + outcome.bytes
    if outcome.bytes > 0 and total > limits.max_project_bytes:
        raise QuotaExceeded(f"the project would hold {total} bytes, over {limits.max_project_bytes}")
    return ProjectState(stamp.version, state.file_count + outcome.files, total, stamp.at)
