"""Builds a server from its settings, and index workers and keys for processes that are no server."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from holdfast.adapters.counters import MemoryCounters
from holdfast.adapters.issuer import IssuerEndpoint
from holdfast.adapters.langfuse import CLOUD, LangfuseAccess, LangfuseObserver
from holdfast.adapters.models.build import build_embedder, build_reranker, for_queries
from holdfast.adapters.models.chat import ChatClassifier
from holdfast.adapters.models.static import StaticEmbedder
from holdfast.adapters.models.static import is_installed as has_static_vectors
from holdfast.adapters.open_store import (
    StorePorts,
    open_store,
    search_limits_from_settings,
    store_limits_from_settings,
)
from holdfast.adapters.otlp import Collector, OtlpExporter
from holdfast.adapters.otlp import is_installed as has_otlp
from holdfast.adapters.redis import RedisCounters, RedisKeyStore
from holdfast.adapters.sqlite.calls import LocalCalls
from holdfast.adapters.sqlite.search.folder_index import SqliteFolderIndex
from holdfast.adapters.sqlite.state.file_cache import open_file_cache
from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.adapters.sqlite.state.keys import SqliteKeys
from holdfast.adapters.sqlite.state.plan_notes import open_plan_notes
from holdfast.adapters.sqlite.state.reviews import SqliteReviews, reviews_beside
from holdfast.adapters.vscode import VscodePresenter
from holdfast.adapters.watching import watch_directories
from holdfast.app import App
from holdfast.auth.context import LOCAL_TENANT
from holdfast.auth.keys import ApiKeys
from holdfast.auth.limits import Admission
from holdfast.auth.tokens import IssuerKeys
from holdfast.bulletin import Bulletin
from holdfast.changes.service import Changes
from holdfast.config.environment import variable
from holdfast.config.load import PolicyFile
from holdfast.config.server_settings import AuthSettings
from holdfast.config.settings import EmbedderSettings, FilesSettings, Settings
from holdfast.credentials.envelope import KeyEncryptionKeys
from holdfast.credentials.sealed_keys import MemoryKeyStore
from holdfast.credentials.service import Credentials
from holdfast.errors import InvalidArgument
from holdfast.folders.access.policy_rules import PolicyRules
from holdfast.folders.children.confine import CHILDREN
from holdfast.folders.service import OpenFolders
from holdfast.observe.call_log import CallLog, CallLogLimits
from holdfast.observe.metrics import Metrics, Reading
from holdfast.observe.observer import Observer
from holdfast.observe.redact import Redactor
from holdfast.observe.spans import Tracer, add_part
from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.planning.build_plan import MeasuredPlans, OrganiserState
from holdfast.organiser.ports import Classifier, PlanObserver
from holdfast.organiser.service import Organiser
from holdfast.review.service import Reviews
from holdfast.review.sessions import Sessions
from holdfast.search.folders.indexed_root import IndexingContext
from holdfast.search.folders.model import FolderLimits
from holdfast.search.folders.service import FolderSearch
from holdfast.search.index import Indexer
from holdfast.search.ports import Embedder
from holdfast.search.service import Search
from holdfast.secret import Secret
from holdfast.store.service import Store
from holdfast.tools import table
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Group
from holdfast.wiring.server_parts import OrganiserDatabases, ServerParts
from holdfast.worker.indexing_stats import IndexingStats, TimedEmbedder
from holdfast.worker.loop import JobPolicy, Loop, ModelKeys
from holdfast.worker.model_keys import JobKeys, NoKeys
from holdfast.worker.purge import OutdatedVectors, Purge
from holdfast.worker.service import Workers

_log = logging.getLogger(__name__)


def build(
    settings: Settings, state_dir: str, settings_path: str | None = None, *, is_measured: bool = False
) -> ServerParts:
    """Put the parts together for one process that holds the lock of this state folder; only an `is_measured` one counts.

    `settings_path` is the file that the settings came from, if it is not the usual one: its policy may change.
    """
    metrics = open_metrics(settings) if is_measured and settings.observe.metrics.enabled else Metrics()
    exporter = _exporter(settings, metrics) if is_measured else None
    CHILDREN.watch(metrics)
    bulletin = Bulletin()
    policy = PolicyFile(settings_path)
    folders = OpenFolders(settings.folders, state_dir, PolicyRules(settings.policy, policy.path, policy.read_changed))
    journal = open_journal(state_dir)
    changes = Changes(
        journal,
        state_dir,
        settings.journal,
        require_approval=settings.organiser.require_approval,
        metrics=metrics,
        bulletin=bulletin,
    )
    changes.recover()
    reviews = _reviews(settings, reviews_beside(journal), changes, state_dir, metrics, bulletin)
    store_ports = open_store(state_dir, variable("DATABASE_URL"), partial(_record_lock_wait, metrics))
    store = Store(store_ports.database, store_limits_from_settings(settings.mcp.files))
    embedder = _embedder(settings.mcp.files)
    tracer = Tracer(exporter.add, settings.observe.traces.sample_ratio) if exporter is not None else None
    lanes = settings.mcp.files.index.workers
    workers = _workers(settings.mcp.files, store_ports, store, embedder, lanes, metrics, tracer)
    search = _search(settings.mcp.files, store_ports, embedder, metrics)
    memory = OrganiserDatabases(open_file_cache(state_dir), open_plan_notes(state_dir))
    langfuse = _langfuse()
    plan_observer = LangfuseObserver(langfuse) if langfuse is not None else None
    organiser = _organiser(settings, changes, memory, embedder, MeasuredPlans(metrics, plan_observer), bulletin)
    metrics.watch(Reading.SCANS_RUNNING, lambda: len(organiser.jobs.running()))
    in_folders = _folder_search(settings, state_dir, embedder)
    observer = _observer(settings, state_dir, store_ports, metrics, tracer)
    app_parts = (changes, store, search, in_folders, reviews, organiser, observer, workers.on_model_key)
    app = App(settings, folders.folders_of, *app_parts, bulletin, folders.connected_roots, policy=folders.rules)
    keys = open_keys(state_dir) if settings.auth.mode == "listed" else None
    admission = _admission(settings, keys)
    dispatcher = Dispatcher(app, table.TOOLS, settings, admission, observer)
    issuer_keys = _issuer_keys(settings.auth)
    return ServerParts(
        dispatcher, folders, app, admission, store_ports, workers, memory, keys, plan_observer, exporter, issuer_keys
    )


@contextmanager
def open_workers(
    settings: Settings, state_dir: str, lanes: int, metrics: Metrics | None = None, *, needs_keys: bool = False
) -> Iterator[Workers]:
    """Give index workers for a process that is no server; they are not started yet.

    With a model that wants tenants' keys, which only the servers have, such a process does words alone;
    InvalidArgument when it `needs_keys` and cannot get them.
    """
    exporter = _exporter(settings, metrics) if lanes else None
    tracer = Tracer(exporter.add, settings.observe.traces.sample_ratio) if exporter is not None else None
    store_ports = open_store(state_dir, variable("DATABASE_URL"))
    store = Store(store_ports.database, store_limits_from_settings(settings.mcp.files))
    embedder = _embedder(settings.mcp.files)
    if embedder is not None and embedder.needs_key and settings.auth.mode != "local" and not _has_shared_keys(settings):
        if needs_keys:
            store_ports.close()
            raise InvalidArgument(
                "a separate worker needs Redis to get tenants' keys: set REDIS_URL and "
                "settings.mcp.files.security.encryption_keks as the servers have them"
            )
        workers = _workers(settings.mcp.files, store_ports, store, None, lanes, metrics, tracer, is_alone=False)
    else:
        workers = _workers(settings.mcp.files, store_ports, store, embedder, lanes, metrics, tracer)
    try:
        yield workers
    finally:
        workers.stop()
        store_ports.close()
        if exporter is not None:
            exporter.close()


def _embedder(files: FilesSettings) -> Embedder | None:
    return build_embedder(files.search.embedder) if files.search.enabled else None


def _search(files: FilesSettings, store_ports: StorePorts, embedder: Embedder | None, metrics: Metrics) -> Search:
    own_key = files.search.embedder.api_key.get_secret_value()
    reranker = build_reranker(files.search.rerank)
    return Search(
        store_ports.index,
        search_limits_from_settings(files.search),
        for_queries(embedder),
        _built_in(files.search.embedder) if embedder else None,
        reranker,
        local_key=Secret(own_key) if own_key else None,
        metrics=metrics,
    )


def _folder_search(settings: Settings, state_dir: str, embedder: Embedder | None) -> FolderSearch:
    """Return search in local folders; their text stays on this machine, so a remote model or reranker has no part."""
    files, own = settings.mcp.files, settings.search_folders
    limits = FolderLimits(
        own.max_files, own.max_bytes, own.max_file_bytes, settings.folders.max_document_bytes, own.keep_days
    )
    local = _built_in(files.search.embedder) if files.search.embedder.kind == "openai" else embedder
    index = SqliteFolderIndex(os.path.join(state_dir, "folders"))
    return FolderSearch(
        IndexingContext(index, limits, watch_directories, local), search_limits_from_settings(files.search)
    )


def _built_in(settings: EmbedderSettings) -> Embedder | None:
    """Return the built-in model if another one is chosen: its vectors are searched until the other has replaced them."""
    return build_embedder(EmbedderSettings()) if settings.kind == "openai" or settings.path else None


def _workers(
    files: FilesSettings,
    store_ports: StorePorts,
    store: Store,
    embedder: Embedder | None,
    lanes: int,
    metrics: Metrics | None = None,
    tracer: Tracer | None = None,
    *,
    is_alone: bool = True,
) -> Workers:
    stats = IndexingStats(metrics, tracer=tracer)
    timed = TimedEmbedder(embedder, stats) if embedder else None
    needs_key = timed is not None and timed.needs_key
    keys: ModelKeys = NoKeys()
    if needs_key:
        keys = JobKeys(store_ports.queue, _credentials(files), Secret(files.search.embedder.api_key.get_secret_value()))
    index = files.index
    policy = JobPolicy(index.batch_size, index.retry_max, index.retry_backoff_ms)
    loop = Loop(store_ports.queue, Indexer(store_ports.index, timed), keys, needs_key, policy, stats)
    outdated = OutdatedVectors(store_ports.index, timed, loop.stop.is_set) if timed else None
    purge = Purge(store, store_ports.upkeep, vectors=outdated)
    return Workers(
        loop, store_ports.index, purge, timed, lanes, is_on=files.search.enabled, is_alone=is_alone, metrics=metrics
    )


def open_metrics(settings: Settings) -> Metrics:
    """Return metrics for Prometheus, whose library is loaded here and nowhere else."""
    from holdfast.adapters.prometheus import PrometheusMetrics

    metrics = PrometheusMetrics(entry.name for entry in table.TOOLS if entry.group is Group.STORE and entry.mutates)
    metrics.watch(Reading.INDEX_SLO_SECONDS, lambda: settings.mcp.files.index.slo_p95_seconds)
    return metrics


def _record_lock_wait(metrics: Metrics, wait_ms: float) -> None:
    metrics.lock_waited(wait_ms)
    add_part("lock of the project", wait_ms)


def _exporter(settings: Settings, metrics: Metrics | None) -> OtlpExporter | None:
    """Return what sends spans to the collector of the settings, None when there is none or the extra is missing."""
    traces = settings.observe.traces
    if traces.endpoint and not has_otlp():
        _log.warning("calls are not traced: settings.observe.traces.endpoint is set; install holdfast[otel]")
    if not traces.endpoint or not has_otlp():
        return None
    headers = {name: Secret(value.get_secret_value()) for name, value in traces.headers.items()}
    return OtlpExporter(Collector(traces.endpoint, headers), (metrics or Metrics()).spans_ended)


def _observer(
    settings: Settings, state_dir: str, store_ports: StorePorts, metrics: Metrics, tracer: Tracer | None
) -> Observer:
    call_settings = settings.observe.calls
    if not call_settings.enabled:
        return Observer(None, metrics, tracer)
    redactor = Redactor(table.TOOLS.vocabulary, call_settings.preview_bytes if call_settings.preview else 0)
    tenants = store_ports.open_calls(settings.auth.mode in ("listed", "oauth"))
    limits = CallLogLimits(call_settings.keep_days, call_settings.max_rows)
    log = CallLog(LOCAL_TENANT, LocalCalls(state_dir), tenants, redactor, limits, metrics.calls_dropped)
    return Observer(log, metrics, tracer)


def _has_shared_keys(settings: Settings) -> bool:
    return bool(variable("REDIS_URL") and settings.mcp.files.security.encryption_keks)


def _credentials(files: FilesSettings) -> Credentials:
    """Return where keys wait for workers: in Redis when there is one and a secret to seal them under, else in memory."""
    security, url = files.security, variable("REDIS_URL")
    keks = {name: Secret(secret.get_secret_value()) for name, secret in security.encryption_keks.items()}
    ttl_seconds = security.credential_cache_ttl_seconds
    if url and keks:
        return Credentials(RedisKeyStore(url, security.credential_cache_prefix), KeyEncryptionKeys(keks), ttl_seconds)
    if url:
        _log.warning("keys for index jobs stay in this process: set security.encryption_keks to share them by Redis")
    return Credentials(
        MemoryKeyStore(), KeyEncryptionKeys(keks) if keks else KeyEncryptionKeys.for_this_process(), ttl_seconds
    )


def _reviews(
    settings: Settings, book: SqliteReviews, changes: Changes, state_dir: str, metrics: Metrics, bulletin: Bulletin
) -> Reviews:
    shown_by = [VscodePresenter(settings.review.vscode.command)] if settings.review.channels.vscode else []
    reviews = Reviews(book, changes, Sessions(state_dir), settings.review, shown_by, metrics, bulletin)
    reviews.recover()
    return reviews


def _organiser(
    settings: Settings,
    changes: Changes,
    memory: OrganiserDatabases,
    embedder: Embedder | None,
    observer: PlanObserver | None,
    bulletin: Bulletin,
) -> Organiser:
    embedder_settings = settings.mcp.files.search.embedder
    sentences = (
        embedder if embedder is not None and embedder_settings.kind == "minilm" else build_embedder(EmbedderSettings())
    )
    static = StaticEmbedder() if has_static_vectors() else None
    embedded = Cascade(sentences, static, settings.organiser.deep_below)
    classifier: Classifier = embedded
    if settings.organiser.classifier == "openai":
        key = variable("OPENAI_API_KEY")
        classifier = ChatClassifier(settings.organiser.llm, Secret(key) if key else None)
    keeping = OrganiserState(memory.files, memory.files, memory.notes)
    return Organiser(changes.plans, keeping, classifier, settings.organiser, embedded, observer, bulletin)


def _langfuse() -> LangfuseAccess | None:
    public_key, secret_key = variable("LANGFUSE_PUBLIC_KEY"), variable("LANGFUSE_SECRET_KEY")
    if public_key and secret_key:
        return LangfuseAccess(public_key, Secret(secret_key), variable("LANGFUSE_HOST") or CLOUD)
    if public_key or secret_key:
        _log.warning("plans are not recorded: Langfuse needs LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    return None


def _admission(settings: Settings, keys: ApiKeys | None) -> Admission:
    url, local = variable("REDIS_URL"), MemoryCounters()
    tenants = RedisCounters(url) if url else local
    return Admission(settings.limits, tenants, local, keys.find if keys else None)


def _issuer_keys(auth: AuthSettings) -> IssuerKeys | None:
    """Return the keys that access tokens are checked with, not fetched yet, when the settings name their issuer."""
    if auth.mode != "oauth":
        return None
    return IssuerKeys(IssuerEndpoint(auth.oauth.issuer, auth.oauth.jwks_uri).fetch_keys)


def open_keys(state_dir: str, *, is_alone: bool = True) -> ApiKeys:
    """Open the list of keys of a state folder: `is_alone` for the holder of the server's lock, else beside it."""
    return ApiKeys(SqliteKeys(os.path.join(state_dir, "state.db"), is_alone=is_alone))
