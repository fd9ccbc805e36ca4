"""The rules of the policy as the settings have them, and which of them bind a caller; they change while a server runs."""

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from holdfast.auth.context import Caller, CallerKind
from holdfast.config.settings import PolicySettings
from holdfast.errors import InvalidArgument
from holdfast.folders.access.policy import ACCESS_BY_NAME, Access, Policy, PolicyRule, rules_near
from holdfast.text.glob import has_magic

_CHECK_SECONDS = 0.5
_log = logging.getLogger(__name__)

Rules = tuple[PolicyRule, ...]


class PolicyRules:
    """Every rule in force, with the built-in one that hides the settings file. Safe to share between threads.

    `read_changed` gives new settings when their file has changed, None while it has not. A file that cannot be used
    leaves the rules as they are. Whoever writes that file holds `changing` meanwhile.
    """

    def __init__(
        self,
        settings: PolicySettings | None = None,
        settings_path: str | None = None,
        read_changed: Callable[[], PolicySettings | None] = lambda: None,
    ) -> None:
        self.settings_path = settings_path
        self.changing = threading.Lock()
        self._read_changed = read_changed
        self._lock = threading.Lock()
        self._checked_at = time.monotonic()
        self.rules = build_rules(settings or PolicySettings(), settings_path)

    def binding(self, caller: Caller) -> tuple[Rules, Rules]:
        """Return the rules that bind a caller, and those that bind every client.

        A person and a command of the person are bound by none.
        """
        self._refresh()
        common = tuple(rule for rule in self.rules if not rule.client and rule.access is not Access.ALLOW)
        if caller.kind is CallerKind.PERSON or caller.client.is_command:
            return (), common
        own = tuple(rule for rule in self.rules if rule.access is not Access.ALLOW and rule.binds(caller.client.name))
        if caller.restrictions.review:
            own += (PolicyRule(len(self.rules) + 1, Access.REVIEW, source="the option --review of this connection"),)
        return own, common

    def current(self) -> Rules:
        """Return every rule in force, those of a file that was changed meanwhile among them."""
        self._refresh()
        return self.rules

    def replace(self, settings: PolicySettings) -> None:
        """Put other rules in force. InvalidArgument when one of them cannot be used; then nothing changes."""
        self.rules = build_rules(settings, self.settings_path)

    def _refresh(self) -> None:
        if time.monotonic() - self._checked_at < _CHECK_SECONDS:
            return
        with self._lock:
            if time.monotonic() - self._checked_at < _CHECK_SECONDS:
                return
            self._checked_at = time.monotonic()
            try:
                settings = self._read_changed()
                if settings is not None:
                    self.replace(settings)
                    _log.info("the rules of the policy were read again: %d", len(settings.rules))
            except (InvalidArgument, OSError) as fault:
                _log.warning("the settings file changed and cannot be used; the rules stay as they were: %s", fault)


def build_rules(settings: PolicySettings, settings_path: str | None) -> Rules:
    """Return the rules of the settings, in their order, and the built-in one. InvalidArgument when one cannot be used."""
    rules = [
        PolicyRule(
            number,
            ACCESS_BY_NAME[rule.access],
            _spellings(rule.root) if rule.root else (),
            rule.glob,
            rule.client,
            f"settings policy rule {number}",
        )
        for number, rule in enumerate(settings.rules, start=1)
    ]
    for rule, rule_settings in zip(rules, settings.rules, strict=True):
        rule.check()
        if rule_settings.root and not os.path.isabs(os.path.expanduser(rule_settings.root)):
            raise InvalidArgument(
                f"{rule.source}: root must be an absolute path or begin with '~': {rule_settings.root!r:.100}"
            )
    if settings_path:
        rules.append(
            PolicyRule(0, Access.DENY, _spellings(settings_path), source="the settings file is not for agents")
        )
    return tuple(rules)


def policy_for(rules: Sequence[PolicyRule], allowed: Sequence[str]) -> Policy | None:
    """Return the policy of these rules in allowed directories, None where no rule can hold.

    A pattern that leads through a symbolic link also holds for what the link leads to at this time.
    """
    near = rules_near(rules, allowed)
    linked = rules_near([each for rule in near for each in _follow_links(rule, allowed)], allowed)
    return Policy([*near, *linked], allowed) if near else None


def _follow_links(rule: PolicyRule, allowed: Sequence[str]) -> Iterator[PolicyRule]:
    """Yield the rule for the real paths that the names at the beginning of its pattern lead to, where they differ."""
    if "/" not in rule.glob.removeprefix("./").rstrip("/"):
        return
    segments = [segment for segment in rule.glob.split("/") if segment not in ("", ".")]
    names = list(itertools.takewhile(lambda segment: not has_magic(segment), segments))
    rest = "/".join(segments[len(names) :])
    for root in rule.roots or allowed:
        written = os.path.join(root, *names)
        real = os.path.realpath(written)
        if real != written:
            yield replace(rule, roots=(real,), glob=f"/{rest}" if rest else "")


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Which access a client has to a path, and the rule that decides; None when no rule matches."""

    path: str
    access: Access
    rule: PolicyRule | None

    @property
    def source(self) -> str:
        """Return where the decision comes from."""
        return "no rule matches" if self.rule is None else self.rule.source

    def answer_for(self, purpose: Literal["read", "write"]) -> Literal["yes", "after your approval", "no"]:
        """Return whether an agent may read or write it by itself, or has to wait for the person."""
        if self.access is Access.ALLOW or (purpose == "read" and self.access is not Access.DENY):
            return "yes"
        return "after your approval" if self.access is Access.REVIEW else "no"


def decide_access(rules: Rules, path: str, client: str, allowed: Sequence[str]) -> PolicyDecision:
    """Return what a client may do with a path, resolved through every link; nothing needs to exist there.

    `allowed` are the allowed directories of the connection, for rules that name no root.
    """
    real = os.path.realpath(Path(path).expanduser())
    binding = [rule for rule in rules if rule.binds(client) and rule.access is not Access.ALLOW]
    policy = policy_for(binding, [os.path.realpath(Path(root).expanduser()) for root in allowed])
    rule = None if policy is None else policy.rule_of(real)
    return PolicyDecision(real, Access.ALLOW if rule is None else rule.access, rule)


def describe_rules(rules: Sequence[PolicyRule]) -> list[dict[str, object]]:
    """Return the rules as plain values, in their order."""
    return [
        {
            "number": rule.number or None,
            "access": str(rule.access),
            "root": rule.roots[0] if rule.roots else None,
            "glob": rule.glob or None,
            "client": rule.client or None,
            "source": rule.source,
        }
        for rule in rules
    ]


def _spellings(path: str) -> tuple[str, ...]:
    """Return an absolute path as it is written, with its directory's links resolved, and with all of them resolved."""
    absolute = os.path.abspath(Path(path).expanduser())
    folder, name = os.path.split(absolute)
    return tuple(dict.fromkeys((os.path.realpath(absolute), os.path.join(os.path.realpath(folder), name), absolute)))
