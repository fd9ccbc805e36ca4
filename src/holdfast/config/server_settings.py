"""Defines the settings of the server's process and its doors, and of who may call."""

import re
from ipaddress import ip_network
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from holdfast.config.section import Section, endpoint_fault

GATEWAY = "gateway"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class TlsSettings(Section):
    """The certificate of the HTTP door. Without one it speaks plain HTTP, to this machine and to trusted proxies alone."""

    certificate: str = Field("", description="PEM file with the certificate and those that vouch for it; empty: none.")
    key: str = Field("", description="PEM file with its private key. Both are read again when they are renewed.")

    @property
    def is_on(self) -> bool:
        """Return whether there is a certificate."""
        return bool(self.certificate)

    @model_validator(mode="after")
    def _check_pair(self) -> "TlsSettings":
        if bool(self.certificate) != bool(self.key):
            raise ValueError("a certificate and its key are two files: name both")
        return self


class ServerSettings(Section):
    """The process and its doors."""

    host: str = Field("127.0.0.1", description="Address the HTTP door listens on.")
    port: int = Field(8124, ge=0, le=65535, description="Port of the HTTP door; 0 takes any free one.")
    public_url: str = Field(
        "",
        description="Address by which clients and browsers reach the server, such as https://files.example.org; empty: by "
        "the address listened on.",
    )
    tls: TlsSettings = TlsSettings()
    allowed_hosts: list[str] = Field(
        [], description="Host names accepted besides the loopback names and that of public_url."
    )
    allowed_origins: list[str] = Field([], description="Web origins that may call the HTTP door; none by default.")
    max_body_bytes: int = Field(16 * 1024 * 1024, gt=0, description="Largest request body or message, in bytes.")
    trusted_proxies: list[str] = Field(
        [],
        description="Addresses or networks of proxies whose X-Forwarded-For, -Proto and -Host, or Forwarded, is believed; "
        "gateway: that of the network, by which a container's own machine connects.",
    )
    max_held_bytes: int = Field(
        256 * 1024 * 1024,
        gt=0,
        description="Bytes of requests that wait to be answered and of answers that wait to be read; one caller's at most "
        "half.",
    )
    max_connections: int = Field(
        256,
        gt=0,
        description="Connections served at once, over all doors. Never more than a third of the files that the server may open.",
    )
    max_sessions: int = Field(
        1_000, gt=0, description="Open sessions of HTTP clients; over half of them, a caller's oldest idle one ends."
    )
    max_parallel_calls: int = Field(
        32,
        gt=0,
        description="Tool calls that run at once, two at least: one caller's at most three quarters of them, and plans "
        "that are executed at most half.",
    )
    max_heavy_calls: int = Field(
        4,
        gt=0,
        description="Of these, the searches, walks of trees and edits; one caller's at most half, one at least.",
    )
    max_children: int = Field(
        6,
        gt=0,
        description="Child processes (jq, readers of documents, image scaling) that calls run at once; one caller's at "
        "most half, one at least.",
    )
    max_waiting_calls: int = Field(
        256, gt=0, description="Calls of one caller that wait for a thread, and as many that wait for a person."
    )
    slow_client_seconds: float = Field(30.0, gt=0, description="Seconds a client may take to send its request.")
    idle_exit_seconds: float = Field(600.0, gt=0, description="Seconds after which an unused background server ends.")

    @property
    def is_protected(self) -> bool:
        """Return whether other machines may connect: by TLS, or through a proxy that is named."""
        return self.tls.is_on or bool(self.trusted_proxies)

    @property
    def own_hosts(self) -> list[str]:
        """Return the host names of this server besides those of loopback."""
        public_host = urlsplit(self.public_url).hostname
        return [*self.allowed_hosts, *([public_host] if public_host else [])]

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (endpoint_fault(url) or parts.path.strip("/") or parts.query):
            raise ValueError(f"an address without a path, such as https://files.example.org: {url!r:.200}")
        return url.rstrip("/")

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, proxies: list[str]) -> list[str]:
        for proxy in proxies:
            if proxy == GATEWAY:
                continue
            try:
                is_everybody = ip_network(proxy, strict=False).prefixlen == 0
            except ValueError:
                raise ValueError(
                    f"an address such as 10.0.0.7, a network such as 10.0.0.0/8, or gateway: {proxy!r:.100}"
                ) from None
            if is_everybody:
                raise ValueError(f"the networks that proxies are in, not every address that there is: {proxy!r}")
        return proxies


class OAuthSettings(Section):
    """The authorization server whose access tokens are accepted, with mode oauth."""

    issuer: str = Field(
        "", description="Issuer of the tokens: the URL of the authorization server, as its metadata has it."
    )
    jwks_uri: str = Field("", description="URL of its keys; empty: where its metadata says, on the issuer's own host.")
    audience: str = Field("", description="Audience that a token must be for; empty: server.public_url with /mcp.")
    read_scope: str = Field("holdfast:read", description="Scope that every call needs; empty: none.")
    write_scope: str = Field("holdfast:write", description="Scope that every change needs as well; empty: none.")
    tenant_claim: str = Field("", description="Claim that names the tenant; empty: sub, so each user is a tenant.")
    leeway_seconds: int = Field(60, ge=0, le=600, description="Seconds by which the two clocks may differ.")

    @field_validator("issuer", "jwks_uri")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url and (fault := endpoint_fault(url)):
            raise ValueError(fault)
        if url.startswith("http:") and urlsplit(url).hostname not in _LOOPBACK_NAMES:
            raise ValueError(f"what comes by plain http from another machine can be forged; use https: {url!r:.200}")
        return url

    @field_validator("read_scope", "write_scope")
    @classmethod
    def _check_scope(cls, scope: str) -> str:
        if not re.fullmatch(r"[!#-\[\]-~]*", scope):
            raise ValueError(f"a scope is one word without quotes and backslashes: {scope!r:.100}")
        return scope


class AuthSettings(Section):
    """Who may call."""

    mode: Literal["local", "listed", "open", "oauth"] = Field(
        "local",
        description="local: the user of this machine; listed: keys of `holdfast keys`; open: every long key is a tenant; "
        "oauth: access tokens of an authorization server, see auth.oauth.",
    )
    oauth: OAuthSettings = OAuthSettings()

    @model_validator(mode="after")
    def _check_issuer(self) -> "AuthSettings":
        if self.mode == "oauth" and not self.oauth.issuer:
            raise ValueError("oauth needs oauth.issuer, the URL of the authorization server")
        return self
