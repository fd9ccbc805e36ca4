"""Sends records of plans to Langfuse: a trace for each plan, a generation for each model call, four scores.

It needs the extra `langfuse`. Ids, counts, times and names of models are sent, never the name or the text of a file. A
thread of its own loads the library and sends, so that a plan never waits; a failure is logged once.
"""

import importlib.util
import json
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.organiser.model import Measures, ModelCall, PlanRecord
from holdfast.secret import Secret

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

CLOUD = "https://cloud.langfuse.com"
_MAX_WAITING = 256
_LOADING_SECONDS = 20.0
_CLOSING_SECONDS = 3.0
_TIMEOUT_SECONDS = 5
_LIBRARIES = ("langfuse", "opentelemetry", "httpx")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LangfuseAccess:
    """The address of a Langfuse server, and the two keys of a project there."""

    public_key: str
    secret_key: Secret
    host: str = CLOUD


def is_installed() -> bool:
    """Return whether the extra is installed, without loading it."""
    return importlib.util.find_spec("langfuse") is not None


def access_fault(access: LangfuseAccess) -> str | None:
    """Return why plans cannot be recorded, None if the keys open a project; asks Langfuse, for a few seconds at most."""
    if not is_installed():
        return "the package langfuse is not installed"
    from langfuse.api import LangfuseAPI

    api = LangfuseAPI(
        base_url=access.host,
        username=access.public_key,
        password=access.secret_key.reveal(),
        timeout=_TIMEOUT_SECONDS,
    )
    try:
        return None if api.projects.get().data else "the keys are not valid for any project"
    except Exception as error:  # noqa: BLE001 - whatever the library raises, its text may quote an answer
        status = getattr(error, "status_code", None)
        return f"it answered with status {status}" if status else f"it does not answer ({type(error).__name__})"


class LangfuseObserver:
    """A PlanObserver. The library is loaded and the thread started with the first record; call `close()` at the end."""

    def __init__(self, access: LangfuseAccess) -> None:
        self._access = access
        self._waiting: Queue[PlanRecord | None] = Queue(_MAX_WAITING)
        self._lock = threading.Lock()
        self._loaded = threading.Event()
        self._thread: threading.Thread | None = None

    def record(self, record: PlanRecord) -> None:
        """Queue a record for the thread; if too many are waiting, it is dropped."""
        with suppress(Full):
            self._waiting.put_nowait(record)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_records, name="holdfast-langfuse", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Send the waiting records, within three seconds once the library is loaded; the rest is dropped."""
        if self._thread is None:
            return
        while True:
            try:
                self._waiting.put_nowait(None)
                break
            except Full:
                with suppress(Empty):
                    self._waiting.get_nowait()
        self._loaded.wait(_LOADING_SECONDS)
        self._thread.join(_CLOSING_SECONDS)

    def _send_records(self) -> None:
        sender: _Sender | None = None
        try:
            while (record := self._waiting.get()) is not None:
                sender = sender or _Sender(self._access)
                self._loaded.set()
                sender.send(record)
            if sender is not None:
                sender.close()
        except ImportError:
            _log.warning("plans are not recorded: Langfuse is configured and the package langfuse is not installed")
        except Exception as error:  # noqa: BLE001 - a library's fault; plans are made all the same
            _log.warning("plans are not recorded: Langfuse's library failed (%s)", type(error).__name__)
        finally:
            self._loaded.set()


class _Sender:
    """The library, configured to send these records and nothing else; used by one thread."""

    def __init__(self, access: LangfuseAccess) -> None:
        from langfuse import Langfuse, LangfuseOtelSpanAttributes
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        class PlanIds(RandomIdGenerator):
            """Gives a trace the id of its plan."""

            trace_id = 0

            def generate_trace_id(self) -> int:
                return self.trace_id

        _replace_log_messages(access.host)
        self._names = LangfuseOtelSpanAttributes
        self._ids = PlanIds()
        # A provider of its own: the global one would also send what other libraries trace, arguments of tools included.
        self._provider = TracerProvider(
            resource=Resource({"service.name": "holdfast"}), shutdown_on_exit=False, id_generator=self._ids
        )
        self._client = Langfuse(
            public_key=access.public_key,
            secret_key=access.secret_key.reveal(),
            base_url=access.host,
            timeout=_TIMEOUT_SECONDS,
            tracer_provider=self._provider,
            should_export_span=lambda _span: True,
        )
        self._tracer = self._provider.get_tracer("holdfast")

    def send(self, record: PlanRecord) -> None:
        """Hand a record to the library, which sends it soon."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        self._ids.trace_id = int(record.plan_id, 16)
        names = self._names
        counts = {f"{names.OBSERVATION_METADATA}.{name}": json.dumps(count) for name, count in record.counts.items()}
        span = self._tracer.start_span(
            f"plan.{record.event}",
            Context(),
            start_time=record.started_ns,
            attributes={names.TRACE_NAME: "organise", names.OBSERVATION_TYPE: "span", **counts},
        )
        for call in record.calls:
            self._send_generation(call, set_span_in_context(span, Context()))
        self._end_span(span, record.ended_ns, record.fault)
        if record.measures is not None:
            self._send_scores(record.plan_id, record.measures)

    def close(self) -> None:
        """Send the rest."""
        self._client.shutdown()
        self._provider.shutdown()

    def _send_generation(self, call: ModelCall, parent: "Context") -> None:
        names = self._names
        attributes = {
            names.OBSERVATION_TYPE: "generation",
            names.OBSERVATION_MODEL: call.model,
            names.OBSERVATION_USAGE_DETAILS: json.dumps(dict(call.usage)),
            f"{names.OBSERVATION_METADATA}.files": json.dumps(call.files),
        }
        span = self._tracer.start_span("classify", parent, start_time=call.started_ns, attributes=attributes)
        self._end_span(span, call.ended_ns, call.fault)

    def _end_span(self, span: "Span", ended_ns: int, fault: str) -> None:
        if fault:
            span.set_attribute(self._names.OBSERVATION_LEVEL, "ERROR")
            span.set_attribute(self._names.OBSERVATION_STATUS_MESSAGE, fault)
        span.end(ended_ns)

    def _send_scores(self, plan_id: str, measures: Measures) -> None:
        scores: dict[str, float] = {
            "cache_hit_rate": measures.cache_hit_rate,
            "tokens_saved": measures.tokens_saved,
            "safety_skips": measures.safety_skips,
            "do_nothing_ratio": measures.do_nothing_ratio,
        }
        for name, value in scores.items():
            self._client.create_score(
                name=name, value=value, trace_id=plan_id, score_id=f"{plan_id}-{name}", data_type="NUMERIC"
            )


def _replace_log_messages(host: str) -> None:
    """Replace the log messages of the libraries, which may quote an answer, by one warning."""
    handler = _LogOnce(urlsplit(host).hostname or "Langfuse")
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False


class _LogOnce(logging.Handler):
    """Logs one warning for the first message, and nothing for later ones."""

    def __init__(self, host: str) -> None:
        super().__init__(logging.WARNING)
        self._host = host

    def emit(self, record: logging.LogRecord) -> None:
        """Log the warning the first time."""
        if self._host:
            _log.warning("plans are not recorded: %s rejects records from %s", self._host, record.name)
        self._host = ""
