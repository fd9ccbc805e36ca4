"""Defines every setting with its unit, default and meaning; unknown keys are errors."""

from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from holdfast.config.observe_settings import ObserveSettings
from holdfast.config.section import Section, endpoint_fault
from holdfast.config.server_settings import AuthSettings, ServerSettings


class RateSettings(Section):
    """Calls a minute of one caller, by class of tools: none is limited unless it is set."""

    read_per_minute: int = Field(0, ge=0, description="Calls a minute that read; 0 is no limit.")
    write_per_minute: int = Field(0, ge=0, description="Calls a minute that change something; 0 is no limit.")
    search_per_minute: int = Field(0, ge=0, description="Calls a minute that search; 0 is no limit.")

    def of(self, rate: str) -> int:
        """Return the calls a minute of one class, 0 for no limit."""
        return {"read": self.read_per_minute, "write": self.write_per_minute, "search": self.search_per_minute}[rate]


class TenantRateSettings(RateSettings):
    """Calls a minute of each tenant whose key has no limits of its own."""

    read_per_minute: int = Field(1_200, ge=0, description="Calls a minute that read; 0 is no limit.")
    write_per_minute: int = Field(300, ge=0, description="Calls a minute that change something; 0 is no limit.")
    search_per_minute: int = Field(120, ge=0, description="Calls a minute that search; 0 is no limit.")


class LimitSettings(Section):
    """How often the user of this machine and each tenant may call."""

    local: RateSettings = RateSettings()
    tenant: TenantRateSettings = TenantRateSettings()


class FolderSettings(Section):
    """Local folders."""

    roots: list[str] = Field([], description="Allowed directories when a command names none; `~` is the home folder.")
    read_only: bool = Field(False, description="Refuse every change to local files.")
    compat: bool = Field(False, description="List the older names of some tools, and query_yaml, as well.")
    max_answer_tokens: int = Field(25_000, ge=500, description="Estimated tokens of one answer before it is cut.")
    max_edit_bytes: int = Field(50_000_000, gt=0, description="Largest file that can be edited, in bytes.")
    max_match_chars: int = Field(200_000, gt=0, description="Longest text to match in an edit, in characters.")
    max_document_bytes: int = Field(100_000_000, gt=0, description="Largest document or image that is read, in bytes.")
    image_max_pixels: int = Field(1_568, gt=0, description="Longest side of an image sent to a model, in pixels.")
    search_seconds: float = Field(20.0, gt=0, description="Seconds a name or content search may take.")


class RuleSettings(Section):
    """One rule of the policy: which access agents have to what; the strictest rule that matches a path wins."""

    access: Literal["allow", "review", "read-only", "deny"] = Field(
        description="deny: does not exist; read-only: cannot be changed; review: changes wait for you; allow: no rule."
    )
    root: str = Field(
        "", description="Directory that the rule is for; `~` is the home folder. Empty: each allowed one."
    )
    glob: str = Field("", description="Pattern of paths beneath the root, without `/` at any depth; empty: all of it.")
    client: str = Field("", description="Pattern of the name that an MCP client declares; empty: every client.")


class PolicySettings(Section):
    """What agents may do with which paths."""

    rules: list[RuleSettings] = Field([], max_length=1_000, description="Rules of access, root, glob and client.")


class JournalSettings(Section):
    """Before-images of changed files."""

    max_bytes: int = Field(
        0, ge=0, description="Bytes of before-images kept; 0 is 2 GB or a tenth of the free disk, whichever is less."
    )
    keep_days: float = Field(30.0, gt=0, description="Days that a before-image is kept.")
    allow_unjournalled: bool = Field(
        False, description="Allow changes without undo where their before-images do not fit."
    )


class ReviewChannels(Section):
    """The ways by which a person may decide on a proposed change."""

    console: bool = Field(True, description="Decide in the console.")
    terminal: bool = Field(True, description="Decide with `holdfast review`.")
    elicitation: bool = Field(
        True, description="Let an MCP client that came through the user's own relay ask its user, where it can."
    )
    elicitation_over_http: bool = Field(
        False,
        description="Also let clients over HTTP and WebSocket ask: an agent that is itself the client can then say yes.",
    )
    panel: bool = Field(
        False,
        description="Decide in a panel of an MCP client that shows some, came through the user's own relay, and keeps "
        "from its model what is for panels alone.",
    )
    panel_over_http: bool = Field(
        False,
        description="Also in clients over HTTP and WebSocket: an agent that is itself the client can then decide.",
    )
    vscode: bool = Field(False, description="Open a diff in VS Code and treat a save as the decision.")


class VscodeSettings(Section):
    """The editor that shows a proposed change."""

    command: list[str] = Field(
        ["code"], min_length=1, description="The program and its own options; --wait --diff and two files follow."
    )


class ReviewSettings(Section):
    """Review of proposed changes by a person."""

    wait_seconds: float = Field(50.0, ge=0, description="Seconds that a proposal waits for the person before PENDING.")
    expires_hours: float = Field(24.0, gt=0, description="Hours after which an open review is closed.")
    max_open_bytes: int = Field(200_000_000, gt=0, description="Bytes of the texts of a directory's open reviews.")
    max_question_chars: int = Field(
        6_000, gt=0, description="Longest diff, in characters, that an MCP client is given to ask its user about."
    )
    channels: ReviewChannels = ReviewChannels()
    vscode: VscodeSettings = VscodeSettings()


class ChatSettings(Section):
    """A chat model that classifies files, behind an OpenAI-compatible endpoint; its key is OPENAI_API_KEY."""

    endpoint: str = Field("", description="URL of /v1/chat/completions.")
    model: str = Field("gpt-4o-mini", description="Model name sent to the endpoint.")
    batch: int = Field(10, gt=0, le=100, description="Files of one request.")
    concurrency: int = Field(4, gt=0, le=64, description="Requests at once.")
    timeout_seconds: float = Field(60.0, gt=0, description="Seconds to wait for one answer.")
    max_tokens: int = Field(2_000_000, gt=0, description="Estimated tokens of a plan above which nothing is sent.")


class OrganiserSettings(Section):
    """Plans of moves."""

    require_approval: bool = Field(True, description="A plan is executed only after a person approved it.")
    confidence_gate: float = Field(
        0.6, ge=0, le=1, description="Confidence below which a file stays and is listed as uncertain."
    )
    deep_below: float = Field(0.8, ge=0, le=1, description="Confidence below which a file's whole text is read.")
    max_categories: int = Field(50, gt=0, description="Most folders that files are sorted into.")
    include_hidden: bool = Field(False, description="Organise hidden files as well.")
    allow_symlinks: bool = Field(False, description="Move symbolic links, as links that still lead where they led.")
    answer_seconds: float = Field(50.0, ge=0, description="Seconds to wait for a plan before answering SCANNING.")
    max_cached_files: int = Field(500_000, gt=0, description="Files that are remembered between scans.")
    classifier: Literal["embedded", "openai"] = Field(
        "embedded", description="embedded: classified on this machine; openai: by a chat model, see organiser.llm."
    )
    share_content: bool = Field(False, description="Allow names and excerpts of files to be sent to that model.")
    llm: ChatSettings = ChatSettings()

    @model_validator(mode="after")
    def _check_classifier(self) -> "OrganiserSettings":
        if self.classifier == "openai" and not self.share_content:
            raise ValueError("openai is sent names and excerpts of files: allow it with share_content: true")
        if self.classifier == "openai" and not self.llm.endpoint.startswith(("http://", "https://")):
            raise ValueError("openai needs llm.endpoint, which begins with http:// or https://")
        return self


class Switch(Section):
    """Whether one tool is on."""

    enabled: bool = Field(True, description="Whether the tool of that name can be listed and called.")


class GroupSwitch(Section):
    """Whether a group of tools is on."""

    enabled: bool = Field(
        True,
        description="Whether the tools of a group can be listed and called: core, files (on disk), review, organise, "
        "search (on disk), store (the project store).",
    )


class RerankSettings(Section):
    """The reranker behind search."""

    model: str = Field("rerank-v3.5", description="Model name sent to the reranker.")
    endpoint: str = Field("", description="URL of a Cohere-compatible reranker; empty means none.")
    timeout_ms: int = Field(6000, gt=0, description="Milliseconds to wait for the reranker.")

    @model_validator(mode="after")
    def _check_endpoint(self) -> "RerankSettings":
        if self.endpoint and (fault := endpoint_fault(self.endpoint)):
            raise ValueError(fault)
        return self


class EmbedderSettings(Section):
    """The model that turns texts into vectors, so that they are found by their meaning."""

    kind: Literal["minilm", "openai", "none"] = Field(
        "minilm",
        description="minilm: a model on this machine; openai: an OpenAI-compatible endpoint; none: words alone.",
    )
    endpoint: str = Field("", description="URL of /v1/embeddings; with openai.")
    model: str = Field("text-embedding-3-small", description="Model name sent to the endpoint; with openai.")
    api_key: SecretStr = Field(
        SecretStr(""), description="Key that the user of this machine has for the endpoint; others bring their own."
    )
    timeout_ms: int = Field(15_000, gt=0, description="Milliseconds to wait for the endpoint.")
    path: str = Field("", description="Another ONNX model instead of the built-in one; with minilm.")
    tokenizer: str = Field("", description="Its tokenizer.json or vocab.txt; empty: the one beside it.")
    threads: int = Field(1, gt=0, description="Threads that one embedding may use; with minilm.")

    @model_validator(mode="after")
    def _check_endpoint(self) -> "EmbedderSettings":
        if self.kind == "openai" and (fault := endpoint_fault(self.endpoint)):
            raise ValueError(f"with openai {fault}")
        return self


class FallbackSettings(Section):
    """Weights of the two retrievers when no reranker is set."""

    semantic_weight: float = Field(0.5, ge=0, le=1, description="Weight of meaning, 0 to 1.")
    lexical_weight: float = Field(0.5, ge=0, le=1, description="Weight of words, 0 to 1.")

    @model_validator(mode="after")
    def _check_weights(self) -> "FallbackSettings":
        if not self.semantic_weight + self.lexical_weight:
            raise ValueError("semantic_weight or lexical_weight must be above 0: all scores would be equal")
        return self


class SearchSettings(Section):
    """Search in the project store."""

    enabled: bool = Field(True, description="Whether stored files are indexed and searched.")
    limit_default: int = Field(5, gt=0, description="Hits when a search names no limit.")
    limit_max: int = Field(20, gt=0, description="Most hits of one search.")
    vector_candidates: int = Field(30, gt=0, description="Candidates taken by meaning.")
    bm25_candidates: int = Field(30, gt=0, description="Candidates taken by words.")
    embedder: EmbedderSettings = EmbedderSettings()
    rerank: RerankSettings = RerankSettings()
    fallback: FallbackSettings = FallbackSettings()


class FolderSearchSettings(Section):
    """The index behind search_folders, one for each allowed directory."""

    max_files: int = Field(50_000, gt=0, description="Files of one allowed directory that are indexed.")
    max_bytes: int = Field(200_000_000, gt=0, description="Bytes of text of one allowed directory that are indexed.")
    max_file_bytes: int = Field(5_000_000, gt=0, description="Largest text file that is indexed, in bytes.")
    keep_days: float = Field(30.0, gt=0, description="Days without a search after which an index is removed.")


class IndexSettings(Section):
    """The workers that index stored files."""

    workers: int = Field(2, ge=0, description="Index workers in the server; 0 leaves indexing to `holdfast worker`.")
    batch_size: int = Field(20, gt=0, description="Jobs that a worker claims at once.")
    retry_max: int = Field(5, ge=0, description="Attempts before a job counts as failed.")
    retry_backoff_ms: int = Field(1000, gt=0, description="Milliseconds before a retry, times the attempt.")
    slo_p95_seconds: float = Field(
        30.0, gt=0, description="Seconds within which 95 % of writes should be searchable; an alert compares."
    )


class SecuritySettings(Section):
    """Credentials that wait for a worker."""

    encryption_keks: dict[str, SecretStr] = Field(
        {}, description="Key encryption secrets by id, 16 characters or more; the longest id encrypts, all decrypt."
    )
    credential_cache_prefix: str = Field("holdfast:credential:", description="Prefix of the keys in Redis.")
    credential_cache_ttl_seconds: int = Field(300, gt=0, description="Seconds that a sealed credential is kept.")

    @field_validator("encryption_keks")
    @classmethod
    def _check_length(cls, keks: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, secret in keks.items():
            if len(secret.get_secret_value()) < 16:
                raise ValueError(f"the secret of {name!r} is shorter than 16 characters")
        return keks


class FilesSettings(Section):
    """The project store."""

    allow_root_wipe: bool = Field(False, description="Allow deleting a whole project at once.")
    max_payload_bytes: int = Field(2_000_000, gt=0, description="Largest content of one write, in bytes.")
    max_file_bytes: int = Field(10_000_000, gt=0, description="Largest stored file, in bytes.")
    max_project_bytes: int = Field(100_000_000, gt=0, description="Largest project, without versions, in bytes.")
    max_tenant_bytes: int = Field(10_000_000_000, ge=0, description="A tenant in all, with versions, in bytes; 0: any.")
    list_limit_default: int = Field(256, gt=0, description="Entries when a listing names no limit.")
    list_limit_max: int = Field(1024, gt=0, description="Most entries of one listing.")
    lock_timeout_ms: int = Field(3000, gt=0, description="Milliseconds to wait for a project's lock.")
    delete_retention_days: float = Field(30.0, ge=0, description="Days that a deleted file is kept.")
    versions_kept: int = Field(20, ge=0, description="Earlier versions kept of each stored file; the oldest go first.")
    version_days: float = Field(30.0, ge=0, description="Days that an earlier version of a stored file is kept.")
    idempotency_days: float = Field(7.0, ge=0, description="Days that an idempotency_key is remembered.")
    search: SearchSettings = SearchSettings()
    index: IndexSettings = IndexSettings()
    security: SecuritySettings = SecuritySettings()


class McpSettings(Section):
    """Tool flags, and the project store behind its tools."""

    files: FilesSettings = FilesSettings()
    tools: dict[str, Switch] = Field({}, description="Single tools by name.")
    groups: dict[str, GroupSwitch] = Field({}, description="Tool groups by name.")

    def permits(self, name: str, group: str) -> bool:
        """Return whether neither the tool nor its group is switched off."""
        return self.tools.get(name, Switch()).enabled and self.groups.get(group, GroupSwitch()).enabled


class Settings(Section):
    """The whole tree under the file's root key `settings`."""

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    limits: LimitSettings = LimitSettings()
    folders: FolderSettings = FolderSettings()
    policy: PolicySettings = PolicySettings()
    journal: JournalSettings = JournalSettings()
    organiser: OrganiserSettings = OrganiserSettings()
    search_folders: FolderSearchSettings = FolderSearchSettings()
    review: ReviewSettings = ReviewSettings()
    observe: ObserveSettings = ObserveSettings()
    mcp: McpSettings = McpSettings()

    @model_validator(mode="after")
    def _check_public_url(self) -> "Settings":
        if self.auth.mode == "oauth" and not self.server.public_url:
            raise ValueError("auth.mode oauth needs server.public_url: tokens are issued for that address")
        return self
