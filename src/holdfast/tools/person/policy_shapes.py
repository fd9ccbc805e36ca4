"""Arguments and answers of the person's tools for the policy."""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.config.settings import RuleSettings
from holdfast.tools.registry import Arguments

AccessName = Literal["allow", "review", "read-only", "deny"]
_ROOT = "Directory that the rule is for, absolute or beginning with ~; empty: each allowed one."
_GLOB = "Pattern of paths beneath the root, without / at any depth; empty: all of it."


class PolicyRuleText(Arguments):
    """One rule, as the settings file has it."""

    access: AccessName = Field(description="What agents may do; the strictest rule that matches wins.")
    root: str = Field("", max_length=4_096, description=_ROOT)
    glob: str = Field("", max_length=4_096, description=_GLOB)
    client: str = Field(
        "", max_length=200, description="Pattern of the name that an MCP client declares; empty: every."
    )

    def as_settings(self) -> RuleSettings:
        """Return the rule as the settings hold it."""
        return RuleSettings(access=self.access, root=self.root, glob=self.glob, client=self.client)

    @classmethod
    def of(cls, rule: RuleSettings) -> "PolicyRuleText":
        """Return a rule of the settings."""
        return cls(access=rule.access, root=rule.root, glob=rule.glob, client=rule.client)


class RuleInForce(BaseModel):
    """One rule that binds agents now."""

    number: int | None = Field(None, description="its place in the settings, from 1; none is built in")
    access: str
    root: str | None = None
    glob: str | None = None
    client: str | None = None
    source: str


class PolicyRulesAnswer(BaseModel):
    """Answer of policy_rules: the rules as they are written, and those that are in force."""

    path: str = Field(description="the settings file")
    hash: str | None = Field(None, description="what change_policy takes; none when the file cannot be used")
    rules: list[PolicyRuleText]
    in_force: list[RuleInForce]
    problem: str | None = Field(None, description="why the file cannot be used; the rules in force stay as they were")


class PolicyTest(Arguments):
    """Arguments of test_policy."""

    path: str = Field(min_length=1, max_length=20_000, description="Path, absolute or beginning with ~.")
    client: str = Field("", max_length=200, description="Name that the MCP client declares; empty: any other.")


class PolicyTestAnswer(BaseModel):
    """Answer of test_policy."""

    path: str = Field(description="resolved through every link")
    access: str
    may_read: Literal["yes", "after your approval", "no"]
    may_write: Literal["yes", "after your approval", "no"]
    rule: int | None = Field(None, description="number of the rule that decides")
    source: str
    directories: list[str] = Field(description="directories that rules without a root are taken to be for")


class RulePreview(Arguments):
    """Arguments of preview_rule."""

    root: str = Field("", max_length=4_096, description=_ROOT)
    glob: str = Field("", max_length=4_096, description=_GLOB)


class RulePreviewAnswer(BaseModel):
    """Answer of preview_rule: which files the rule is about, of those in the directories that Holdfast knows."""

    files: int
    of: int = Field(description="files that were looked at")
    examples: list[str]
    is_complete: bool = Field(description="false when there was too much to look at: then both are at least that many")
    directories: list[str] = Field(description="where it looked")


class PolicyChange(Arguments):
    """Arguments of change_policy."""

    expected_hash: str = Field(max_length=100, description="The hash that policy_rules told.")
    rules: list[PolicyRuleText] = Field(max_length=1_000, description="All rules, in their order.")


class PolicyChangeAnswer(BaseModel):
    """Answer of change_policy; the rules are in force when it comes."""

    path: str
    hash: str
    rules: list[PolicyRuleText]
    backup: str | None = Field(None, description="the file as it was before Holdfast first wrote to it")
