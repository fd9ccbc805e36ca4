"""The person's tools for the policy: look at the rules, try them on a path, see what a rule is about, change them."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.config.settings import PolicySettings, RuleSettings
from holdfast.config_files.settings_rules import change_rules, read_rules
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.folders.access.policy import Policy
from holdfast.folders.access.policy_rules import Rules, build_rules, decide_access, describe_rules
from holdfast.folders.finding.walk import EntryType, Walk, open_start
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import display_name, quantity
from holdfast.tools.answer import Answer
from holdfast.tools.person.policy_shapes import (
    PolicyChange,
    PolicyChangeAnswer,
    PolicyRulesAnswer,
    PolicyRuleText,
    PolicyTest,
    PolicyTestAnswer,
    RuleInForce,
    RulePreview,
    RulePreviewAnswer,
)
from holdfast.tools.person.roots import list_known_roots
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.threads import Load

_PREVIEW_SECONDS = 3.0
_EXAMPLES = 5


@tool(
    "policy_rules",
    group=Group.CORE,
    effect=Effect.READ,
    title="Rules of the policy",
    output=PolicyRulesAnswer,
    audience=CallerKind.PERSON,
)
def policy_rules(app: App, _call: Call, _args: NoArguments) -> Answer:
    """Show the rules that say what agents may do with which paths, as the settings file has them, and those in force."""
    path = _settings_path(app)
    in_force = _rules_in_force(app)
    try:
        file = read_rules(path)
    except HoldfastError as fault:
        data = PolicyRulesAnswer(path=path, rules=[], in_force=in_force, problem=fault.message)
        return Answer.of(fault.message, data=data)
    rules = [PolicyRuleText.of(rule) for rule in file.rules]
    data = PolicyRulesAnswer(path=path, hash=file.hash, rules=rules, in_force=in_force)
    return Answer.of(f"{display_name(path)}: {quantity(len(rules), 'rule')}.", data=data)


@tool(
    "test_policy",
    group=Group.CORE,
    effect=Effect.READ,
    title="Try the policy on a path",
    output=PolicyTestAnswer,
    audience=CallerKind.PERSON,
)
def try_policy(app: App, _call: Call, args: PolicyTest) -> Answer:
    """Say which access a client has to a path, and by which rule; nothing needs to exist there."""
    if not args.path.startswith(("/", "~")) or "\0" in args.path:
        raise InvalidArgument(f"The path must be absolute, or begin with '~': {args.path!r:.100}")
    directories = [root.path for root in list_known_roots(app)]
    decision = decide_access(app.policy.current(), args.path, args.client, directories)
    data = PolicyTestAnswer(
        path=replace_lone_surrogates(decision.path),
        access=str(decision.access),
        may_read=decision.answer_for("read"),
        may_write=decision.answer_for("write"),
        rule=decision.rule.number or None if decision.rule else None,
        source=decision.source,
        directories=[replace_lone_surrogates(directory) for directory in directories],
    )
    return Answer.of(f"{display_name(decision.path)}: {decision.access} ({decision.source}).", data=data)


@tool(
    "preview_rule",
    group=Group.CORE,
    effect=Effect.READ,
    title="Preview a rule",
    output=RulePreviewAnswer,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def preview_rule(app: App, call: Call, args: RulePreview) -> Answer:
    """Count the files that a rule is about in the directories that Holdfast knows; links are not followed."""
    rule = RuleSettings(access="deny", root=args.root, glob=args.glob)
    (built,) = build_rules(PolicySettings(rules=[rule]), None)
    preview = _Preview(app, call, (built,))
    preview.look()
    data = RulePreviewAnswer(
        files=preview.matching,
        of=preview.files,
        examples=[replace_lone_surrogates(path) for path in preview.examples],
        is_complete=preview.is_complete,
        directories=[replace_lone_surrogates(directory) for directory in preview.directories],
    )
    return Answer.of(f"{data.files} of {quantity(data.of, 'file')}.", data=data)


@tool(
    "change_policy",
    group=Group.CORE,
    effect=Effect.CHANGE,
    title="Change the policy",
    output=PolicyChangeAnswer,
    audience=CallerKind.PERSON,
)
def change_policy(app: App, _call: Call, args: PolicyChange) -> Answer:
    """Replace the rules in the settings file, with its comments and everything else left as they are; in force at once.

    CONFLICT with present_hash when the file is not the one whose hash policy_rules told.
    """
    path = _settings_path(app)
    settings = PolicySettings(rules=[rule.as_settings() for rule in args.rules])
    build_rules(settings, path)
    with app.policy.changing:
        done = change_rules(path, args.expected_hash, settings.rules)
        app.policy.replace(done.loaded.settings.policy)
    rules = [PolicyRuleText.of(rule) for rule in done.written.rules]
    data = PolicyChangeAnswer(path=path, hash=done.written.hash, rules=rules, backup=done.backup)
    return Answer.of(f"{display_name(path)}: {quantity(len(rules), 'rule')}, in force.", data=data)


class _Preview:
    """Looks through the known directories for files that rules are about, for a few seconds at most."""

    def __init__(self, app: App, call: Call, rules: Rules) -> None:
        known = [root.path for root in list_known_roots(app)]
        self.directories = [path for path in known if not _is_within_another(path, known)]
        self.matching = self.files = 0
        self.examples: list[str] = []
        self.is_complete = True
        self._app, self._call, self._rules = app, call, rules
        self._policy = Policy(rules, known)

    def look(self) -> None:
        """Count in every directory that is there."""
        for directory in self.directories:
            for path, is_match in self._files_in(directory):
                self.files += 1
                self.matching += is_match
                if is_match and len(self.examples) < _EXAMPLES:
                    self.examples.append(path)

    def _files_in(self, directory: str) -> Iterator[tuple[str, bool]]:
        try:
            folders = self._app.folders_of(replace(self._call.caller, roots=(directory,), cwd="/"))
            with open_start(folders.jail, directory, ignore=False) as start:
                walk = Walk(folders.jail, self._call, start, ignore=False, seconds=_PREVIEW_SECONDS)
                for folder, entries in walk:
                    above = f"{start.path.rstrip('/')}/{folder.relative}"
                    policy = self._policy.folder(above.rstrip("/") or "/")
                    for name, kind in entries:
                        if kind is EntryType.FILE:
                            yield above + name, policy.rule_for(name) is not None
                self.is_complete &= not (walk.timed_out or walk.unreadable)
        except (HoldfastError, OSError):
            self._call.check()
            self.is_complete = False


def _is_within_another(path: str, known: list[str]) -> bool:
    return any(path != other and f"{path}/".startswith(other.rstrip("/") + "/") for other in known)


def _settings_path(app: App) -> str:
    assert app.policy.settings_path is not None, "a server knows its settings file"
    return app.policy.settings_path


def _rules_in_force(app: App) -> list[RuleInForce]:
    return [RuleInForce.model_validate(facts) for facts in describe_rules(app.policy.current())]
