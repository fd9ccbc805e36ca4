"""Pure: the MCP clients whose configuration is documented: where it is, its format, and what an entry looks like there."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.config_files.config_format import ConfigFormat
from holdfast.config_files.edit_jsonc import JSONC
from holdfast.config_files.edit_toml import TOML
from holdfast.config_files.edit_yaml import YAML

_STDIO = {"type": "stdio"}
_WORKSPACE = "${workspaceFolder}"


@dataclass(frozen=True, slots=True)
class ConfigHomes:
    """The folders of this user that hold configuration, as the environment and the platform say."""

    home: str
    config: str
    application_support: str
    claude: str | None = None
    codex: str | None = None


@dataclass(frozen=True, slots=True)
class McpClient:
    """One client.

    `places` are where its user's configuration may be, the usual place first; the folder of that file, or one of
    `traces`, shows that the client is on this machine. `keys` are its names for `command`, `args` and `env`, and
    `defaults` further fields of a new entry. With `needs_folder` it starts its servers anywhere and declares no roots,
    so that a folder must be named. `project_folder` is what it replaces by the folder of the project, where it does.
    """

    id: str
    title: str
    places: tuple[str, ...]
    restart: str
    form: ConfigFormat = JSONC
    section: str = "mcpServers"
    project_place: str | None = None
    project_folder: str | None = None
    needs_folder: bool = False
    traces: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def fields(self, command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
        """Return the fields of an entry under this client's names; `env` is left out when it is empty."""
        values: dict[str, Any] = {"command": command, "args": args, **({"env": env} if env else {})}
        return {self.keys.get(key, key): value for key, value in values.items()}

    def command_of(self, entry: Mapping[str, Any]) -> list[str]:
        """Return the command and the arguments of an entry, as far as it has them."""
        args = entry.get(self.keys.get("args", "args"))
        words = [entry.get(self.keys.get("command", "command")), *(args if isinstance(args, list) else [])]
        return [word for word in words if isinstance(word, str)]

    def env_of(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of an entry."""
        env = entry.get(self.keys.get("env", "env"))
        return dict(env) if isinstance(env, dict) else {}


def all_clients(homes: ConfigHomes) -> list[McpClient]:
    """Return every client that can be configured, with the places of this user."""

    def support(name: str) -> str:
        return posixpath.join(homes.application_support, name)

    def config(name: str) -> str:
        return posixpath.join(homes.config, name)

    def home(name: str) -> str:
        return posixpath.join(homes.home, name)

    return [
        McpClient(
            "claude-desktop", "Claude Desktop", (support("Claude/claude_desktop_config.json"),),
            "Quit Claude Desktop, not only its window, and start it again.",
            needs_folder=True,
        ),
        McpClient(
            "claude-code", "Claude Code", (posixpath.join(homes.claude or homes.home, ".claude.json"),),
            "Start a new session of `claude`; /mcp shows the server.",
            project_place=".mcp.json", traces=(homes.claude or home(".claude"),), defaults=_STDIO,
        ),
        McpClient(
            "cursor", "Cursor", (home(".cursor/mcp.json"),),
            "Cursor takes it up by itself; Settings > MCP shows the server.",
            project_place=".cursor/mcp.json", project_folder=_WORKSPACE, needs_folder=True,
        ),
        McpClient(
            "vscode", "VS Code", (support("Code/User/mcp.json"),),
            "VS Code takes it up by itself; `MCP: List Servers` in the command palette starts it.",
            section="servers", project_place=".vscode/mcp.json", project_folder=_WORKSPACE, defaults=_STDIO,
        ),
        McpClient(
            "windsurf", "Windsurf", (home(".codeium/windsurf/mcp_config.json"),),
            "Press the refresh button of the MCP servers in Cascade.",
            needs_folder=True,
        ),
        McpClient(
            "zed", "Zed", (posixpath.join(homes.config, "zed/settings.json"),),
            "Zed takes it up by itself; the settings of the Agent Panel show the server.",
            section="context_servers",
        ),
        McpClient(
            "gemini", "Gemini CLI", (home(".gemini/settings.json"),),
            "Start `gemini` again; /mcp shows the server.",
            project_place=".gemini/settings.json",
        ),
        McpClient(
            "codex", "Codex CLI", (posixpath.join(homes.codex or home(".codex"), "config.toml"),),
            "Start `codex` again; /mcp shows the server.",
            form=TOML, section="mcp_servers", project_place=".codex/config.toml",
        ),
        McpClient(
            "goose", "Goose", (config("goose/config.yaml"),),
            "Start a new session of Goose.",
            form=YAML, section="extensions", keys={"command": "cmd", "env": "envs"},
            defaults={"enabled": True, "type": "stdio", "name": "holdfast", "description": "Files with undo", "timeout": 300},
        ),
        McpClient(
            "lm-studio", "LM Studio", (home(".lmstudio/mcp.json"), home(".cache/lm-studio/mcp.json")),
            "LM Studio takes it up by itself; the Program tab shows the server.",
            needs_folder=True,
        ),
    ]  # fmt: skip


GENERIC = McpClient("other", "any other client", (), "Restart the client.", needs_folder=True)
"""The form that most clients understand, for a client that is not listed."""
