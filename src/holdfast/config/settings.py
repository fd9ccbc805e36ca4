"""Every setting with its unit, default and meaning; unknown keys are refused by name."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Base of every section: unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """The process and its doors."""

    host: str = Field("127.0.0.1", description="Address the HTTP door listens on.")
    port: int = Field(8124, ge=0, le=65535, description="Port of the HTTP door; 0 takes any free one.")
    allowed_hosts: list[str] = Field([], description="Host names accepted besides the loopback names.")
    allowed_origins: list[str] = Field([], description="Web origins that may call the HTTP door; none by default.")
    max_body_bytes: int = Field(16 * 1024 * 1024, gt=0, description="Largest request body or message, in bytes.")
    max_connections: int = Field(256, gt=0, description="Connections served at once, over all doors.")
    max_parallel_calls: int = Field(32, gt=0, description="Tool calls that run at once.")
    slow_client_seconds: float = Field(30.0, gt=0, description="Seconds a client may take to send its request.")
    idle_exit_seconds: float = Field(600.0, gt=0, description="Seconds after which an unused background server ends.")


class AuthSettings(Section):
    """Who may call."""

    mode: Literal["local", "listed", "open"] = Field("local", description="local, listed or open.")


class FolderSettings(Section):
    """Local folders."""

    read_only: bool = Field(False, description="Refuse every change to local files.")
    compat: bool = Field(False, description="List the older twins of two reference tools as well.")
    max_answer_tokens: int = Field(25_000, ge=500, description="Estimated tokens of one answer before it is cut.")
    max_edit_bytes: int = Field(50_000_000, gt=0, description="Largest file that can be edited, in bytes.")
    max_match_chars: int = Field(200_000, gt=0, description="Longest text to match in an edit, in characters.")
    max_document_bytes: int = Field(100_000_000, gt=0, description="Largest document or image that is read, in bytes.")
    image_max_pixels: int = Field(1_568, gt=0, description="Longest side of an image sent to a model, in pixels.")
    search_seconds: float = Field(20.0, gt=0, description="Seconds a name or content search may take.")


class JournalSettings(Section):
    """Before-images of changed files."""

    max_bytes: int = Field(200_000_000, gt=0, description="Bytes of before-images kept; the oldest go first.")
    keep_days: float = Field(30.0, gt=0, description="Days that a before-image is kept.")
    allow_unjournalled: bool = Field(False, description="Allow a change whose before-image alone exceeds max_bytes.")


class Switch(Section):
    """On or off."""

    enabled: bool = Field(True, description="Whether it can be listed and called.")


class McpSettings(Section):
    """Tool flags."""

    tools: dict[str, Switch] = Field({}, description="Single tools by name.")
    groups: dict[str, Switch] = Field({}, description="Tool groups by name.")

    def permits(self, name: str, group: str) -> bool:
        """Return whether neither the tool nor its group is switched off."""
        on = Switch()
        return self.tools.get(name, on).enabled and self.groups.get(group, on).enabled


class Settings(Section):
    """The whole tree under the file's root key `settings`."""

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    folders: FolderSettings = FolderSettings()
    journal: JournalSettings = JournalSettings()
    mcp: McpSettings = McpSettings()
