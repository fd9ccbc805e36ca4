"""The person's tool for connecting MCP clients: what each needs in its configuration, by the code that installs it."""

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.config.environment import state_dir
from holdfast.config_files.machine import ClientHere, clients_here, entry_snippet
from holdfast.errors import InvalidArgument
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, tool


class ConnectClients(Arguments):
    """Arguments of connect_clients."""

    folders: list[str] = Field(
        [], max_length=50, description="Absolute paths of the directories that the client's agent may use."
    )


class ClientSetup(BaseModel):
    """How one client is connected."""

    client: str = Field(description="what `holdfast install` takes")
    title: str
    is_found: bool = Field(description="whether the client seems to be on this machine")
    is_installed: bool = Field(description="whether its configuration has Holdfast")
    config: str = Field(description="where its configuration usually is; empty when that is not known")
    snippet: str = Field(description="the configuration that holds the entry and nothing else")
    restart: str = Field(description="what makes the client take it up")
    needs_folder: bool = Field(description="whether it works only with a directory that is named")


class ConnectClientsAnswer(BaseModel):
    """Answer of connect_clients."""

    clients: list[ClientSetup]
    token_file: str = Field(description="the file with the token that the HTTP door takes")


@tool(
    "connect_clients",
    group=Group.CORE,
    effect=Effect.READ,
    title="Connect MCP clients",
    output=ConnectClientsAnswer,
    audience=CallerKind.PERSON,
)
def connect_clients(_app: App, _call: Call, args: ConnectClients) -> Answer:
    """List the MCP clients with the entry that `holdfast install` would write for these directories; nothing is written."""
    for folder in args.folders:
        if not folder.startswith("/") or "\0" in folder:
            raise InvalidArgument(f"folders must be absolute paths: {folder!r:.100}")
        if folder != replace_lone_surrogates(folder):
            raise InvalidArgument("A configuration cannot name a directory whose name is not valid Unicode text.")
    clients = [_setup(here, args.folders) for here in clients_here()]
    data = ConnectClientsAnswer(clients=clients, token_file=f"{state_dir()}/agent.token")
    return Answer.of(f"{quantity(len(clients), 'client')}.", data=data)


def _setup(here: ClientHere, folders: list[str]) -> ClientSetup:
    client = here.client
    return ClientSetup(
        client=client.id,
        title=client.title,
        is_found=here.is_found,
        is_installed=here.is_installed,
        config=replace_lone_surrogates(here.config),
        snippet=entry_snippet(client, folders),
        restart=client.restart,
        needs_folder=client.needs_folder,
    )
