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
from holdfast.folders.access.jail import MAX_LINKS
from holdfast.folders.access.policy import ACCESS_BY_NAME, Access, Policy, PolicyRule, rules_near
from holdfast.text.glob import has_magic

CHECK_SECONDS = 0.5
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
        own, common = (_hold_in_named_roots(rules, caller) for rules in (own, common))
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
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        with self._lock:
            if time.monotonic() - self._checked_at < CHECK_SECONDS:
                return
            self._checked_at = time.monotonic()
            try:
                settings = self._read_changed()
                if settings is not None:
                    self.replace(settings)
                    _log.info("the rules of the policy were read again: %d", len(settings.rules))
            except (InvalidArgument, OSError) as fault:
                _log.warning("the settings file changed and cannot be used; the rules stay as they were: %s", fault)


def _hold_in_named_roots(rules: Rules, caller: Caller) -> Rules:
    """Return the rules with those that begin at the directories that a person named, where the client narrowed these."""
    roots = tuple(root for root in caller.named_roots if root not in caller.roots)
    return (*rules, *(replace(rule, roots=roots) for rule in rules if roots and rule.is_anchored and not rule.roots))


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

    A rule that leads through symbolic links also holds for what they lead to at this time.
    """
    near = rules_near([*rules, *follow_links(rules, allowed)], allowed)
    return Policy(near, allowed) if near else None


def follow_links(rules: Sequence[PolicyRule], allowed: Sequence[str]) -> Rules:
    """Return further rules: for what the roots of rules, and the names at the beginning of patterns, lead to by links.

    And one for each such link, which may not move or go by itself: the rule would hold for something else then.
    """
    return tuple(further for rule in rules for further in _follow_links_of(rule, allowed))


def _follow_links_of(rule: PolicyRule, allowed: Sequence[str]) -> Iterator[PolicyRule]:
    segments = [segment for segment in rule.glob.split("/") if segment not in ("", ".")]
    names = list(itertools.takewhile(lambda segment: not has_magic(segment), segments)) if rule.is_anchored else []
    rest = "/".join(segments[len(names) :])
    for root in rule.roots or allowed:
        real, links = _resolve("/", os.path.join(root, *names))
        for link in links:
            yield replace(rule, access=min(rule.access, Access.READ_ONLY), roots=(link,), glob="")
        if links and rule.is_anchored:
            yield replace(rule, roots=(real,), glob=f"/{rest}" if rest else "")


def _resolve(folder: str, path: str, links_left: int = MAX_LINKS) -> tuple[str, list[str]]:
    """Return where a path leads from a real directory, and the real paths of the links on the way."""
    links: list[str] = []
    real = "/" if path.startswith("/") else folder
    for name in path.split("/"):
        if name == "..":
            real = os.path.dirname(real)
        elif name not in ("", "."):
            entry = os.path.join(real, name)
            try:
                target = os.readlink(entry) if links_left > len(links) else ""
            except OSError:
                target = ""
            if target:
                real, further = _resolve(real, target, links_left - len(links) - 1)
                links += [entry, *further]
            else:
                real = entry
    return real, links


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
    real_allowed = [os.path.realpath(Path(root).expanduser()) for root in allowed]
    policies = (
        policy_for([rule for rule in binding if not rule.roots], real_allowed),
        policy_for([rule for rule in binding if rule.roots], ["/"]),
    )
    matching = [rule for policy in policies if policy is not None and (rule := policy.rule_of(real)) is not None]
    rule = max(matching, key=lambda rule: (rule.access, -rule.number), default=None)
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
