"""The model keys that jobs need: sealed when their tenant calls, opened for the job, forgotten when it ends."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

from holdfast.auth.context import LOCAL_TENANT, AuthContext
from holdfast.clock import utc_clock
from holdfast.credentials.envelope import Binding
from holdfast.credentials.service import Credentials
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, OpenJob
from holdfast.store.ports import IndexQueue

_log = logging.getLogger(__name__)

_JOBS_AT_ONCE = 1_000
_MAX_REMEMBERED = 50_000
_DEBOUNCE_SECONDS = 0.05


class NoKeys:
    """For models that need no key."""

    def on_model_key(self, auth: AuthContext) -> None:
        """Do nothing: no job needs a key."""

    def key_for(self, job: ClaimedJob) -> Secret | None:  # noqa: ARG002 - there is none for any
        """Return None: no job needs a key."""
        return None

    def await_key(self, job: ClaimedJob) -> None:
        """Do nothing: no job waits for a key."""

    def forget_key(self, job: ClaimedJob) -> None:
        """Do nothing: no key was kept."""

    def close(self) -> None:
        """Do nothing: nothing was opened."""


class JobKeys:
    """Keys of every tenant for its own jobs. The user of this machine has one in the settings; nobody else gets that.

    `on_model_key` only stores the key; a thread of its own looks for the tenant's jobs, so that no call waits for it.
    """

    def __init__(
        self,
        queue: IndexQueue,
        credentials: Credentials,
        local_key: Secret,
        now: Callable[[], datetime] = utc_clock,
    ) -> None:
        self._queue = queue
        self._credentials = credentials
        self._local_key = local_key
        self._now = now
        self._new_keys: dict[str, Secret] = {}
        self._sealed: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def on_model_key(self, auth: AuthContext) -> None:
        """Seal the caller's key, soon, for its jobs that have none; jobs that waited for it are due again."""
        if auth.model_key is None or auth.is_local:
            return
        with self._changed:
            self._new_keys[auth.apikey_hash] = auth.model_key
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="holdfast-keys", daemon=True)
                self._thread.start()
            self._changed.notify()

    def key_for(self, job: ClaimedJob) -> Secret | None:
        """Return the key that a job may use, None when its tenant must bring one."""
        if job.tenant == LOCAL_TENANT:
            return self._local_key
        return self._credentials.take(_binding(job.tenant, job))

    def await_key(self, job: ClaimedJob) -> None:
        """Let a job wait for a key; one that was sealed meanwhile makes the job due at once."""
        with self._changed:
            self._sealed.pop((job.tenant, job.id), None)
        if self._queue.await_key(job, self._now()) and self._credentials.has(_binding(job.tenant, job)):
            self._queue.rearm(job.tenant, job.project, job.id, self._now())

    def forget_key(self, job: ClaimedJob) -> None:
        """Forget the key of a job that has ended."""
        if job.tenant != LOCAL_TENANT:
            self._credentials.forget(_binding(job.tenant, job))

    def close(self) -> None:
        """End the thread and close the store of sealed keys."""
        with self._changed:
            self._is_closed = True
            self._new_keys.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(5)
        self._credentials.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._new_keys or self._is_closed)
                if self._is_closed:
                    return
                new_keys, self._new_keys = self._new_keys, {}
            for tenant, key in new_keys.items():
                try:
                    self._seal_for_jobs(tenant, key)
                except Exception as error:  # noqa: BLE001 - the next call tries again
                    _log.warning("keys for waiting jobs were not sealed: %s", type(error).__name__)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, _DEBOUNCE_SECONDS)

    def _seal_for_jobs(self, tenant: str, key: Secret) -> None:
        """Seal a key for a tenant's open jobs, then make those that wait for one due.

        The order matters: a lane lets its job wait first and then looks for a key, so one of the two sees the other.
        """
        sealed = set()
        for job in self._queue.list_open_jobs(tenant, _JOBS_AT_ONCE):
            if job.is_waiting or (tenant, job.id) not in self._sealed:
                if not self._credentials.keep(_binding(tenant, job), key):
                    break
                with self._changed:
                    self._sealed[tenant, job.id] = None
                    while len(self._sealed) > _MAX_REMEMBERED:
                        self._sealed.popitem(last=False)
                sealed.add(job.id)
        for job in self._queue.list_open_jobs(tenant, _JOBS_AT_ONCE) if sealed else ():
            if job.is_waiting and job.id in sealed:
                self._queue.rearm(tenant, job.project, job.id, self._now())


def _binding(tenant: str, job: ClaimedJob | OpenJob) -> Binding:
    return Binding(tenant, job.project, job.path, job.id)
