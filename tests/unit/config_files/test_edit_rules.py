"""The rules of the policy are replaced in the text of the settings file, and nothing else: not a comment, not a byte."""

import pytest
import yaml

from holdfast.config_files.config_format import CannotEdit
from holdfast.config_files.edit_rules import replace_rules

pytestmark = pytest.mark.req("RV-13.i")

DENY = {"access": "deny", "glob": ".env"}
REVIEW = {"access": "review", "root": "/home/u/my project", "glob": "src/**"}
READER = {"access": "read-only", "client": "reader-*"}
WRITTEN = """# mine
settings:
  server:
    port: 8124 # as ever
  policy:
    # who may do what
    rules:  # the strictest wins
      # secrets stay here
      - {access: deny, glob: .env}

      # work of others
      - access: review  # look first
        root: "/home/u/my project"
        glob: src/**
      - access: read-only
        client: reader-*
    # the end of the policy
  folders:
    read_only: false
"""


def test_rules_that_stay_keep_their_lines_and_comments_wherever_they_move() -> None:
    assert replace_rules(WRITTEN, [DENY, REVIEW, READER]) == WRITTEN
    turned = replace_rules(WRITTEN, [READER, REVIEW, DENY])
    assert sorted(turned.splitlines()) == sorted(WRITTEN.splitlines())
    assert turned.index("reader-*") < turned.index("# work of others") < turned.index("# secrets stay here")
    assert replace_rules(turned, [DENY, REVIEW, READER]) == WRITTEN


def test_a_rule_that_is_added_or_taken_out_changes_its_own_lines_alone() -> None:
    added = replace_rules(WRITTEN, [DENY, REVIEW, READER, {"access": "allow", "glob": 'a "b": c #d'}])
    assert added == WRITTEN.replace(
        "        client: reader-*\n",
        '        client: reader-*\n      - access: allow\n        glob: "a \\"b\\": c #d"\n',
    )
    assert replace_rules(added, [DENY, REVIEW, READER]) == WRITTEN
    without = replace_rules(WRITTEN, [DENY, READER])
    assert "my project" not in without
    assert all(comment in without for comment in ("# mine", "# as ever", "# secrets", "# the strictest", "# the end"))


def test_a_rule_that_is_changed_keeps_the_comment_above_it() -> None:
    changed = replace_rules(WRITTEN, [DENY, {**REVIEW, "access": "deny"}, READER])
    assert changed.index("# work of others") < changed.index("- access: deny\n") < changed.index("reader-*")


def test_a_list_that_becomes_empty_can_be_filled_again() -> None:
    empty = replace_rules(WRITTEN, [])
    assert "    rules: []  # the strictest wins\n" in empty
    again = replace_rules(empty, [DENY])
    assert yaml.safe_load(again)["settings"]["policy"]["rules"] == [DENY]
    assert "# the strictest wins" in again


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "settings:\n",
        "settings: {}\n",
        "settings:\n  server:\n    port: 1\n",
        "settings:\n  server: {port: 1}",
        "settings:\r\n  server:\r\n    port: 1\r\n",
        "settings:\n  policy:\n  # later\n  server:\n    port: 1\n",
        "settings:\n  policy: {}\n",
        "settings:\n  policy:\n    rules:\n",
        "settings:\n  policy:\n    rules: []  # none\n",
        "settings:\n  policy:\n    rules: [{access: deny}, {access: review,\n      glob: a}]  # two\n",
        "settings:\n  policy: {rules: []}\n",
        "settings: {policy: {rules: [{access: deny}]}, server: {port: 1}}\n",
        '{"settings": {"server": {"port": 1}}}',
        '{"settings": {"policy": {"rules": [{"access": "deny"}]}}}',
        "settings:\n  policy:\n    rules:\n    - access: deny\n    -   access: review\n        glob: x\n",
        "settings:\n  policy:\n    rules:\n      - access: deny",
        "settings:\n  policy:\n    rules:\n      -\n        access: deny\n        glob: >\n          x\n",
    ],
)
@pytest.mark.parametrize("rules", [[DENY, REVIEW], [READER], []])
def test_every_form_of_a_settings_file_is_filled_in(text: str, rules: list[dict[str, str]]) -> None:
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(replace_rules(text, rules))
    assert after["settings"]["policy"]["rules"] == rules
    assert (before.get("settings") or {}).get("server") == after["settings"].get("server")
    assert replace_rules(replace_rules(text, [DENY]), rules) is not None
    if "\r" in text:
        assert "\n" not in replace_rules(text, rules).replace("\r\n", "")


@pytest.mark.parametrize(
    "text",
    [
        "settings:\n  a: &x []\n  policy:\n    rules: *x\n",
        "settings:\n  policy: 5\n",
        "settings:\n  policy:\n    rules: {access: deny}\n",
        "settings:\n  policy:\n    rules: &all\n      - access: deny\n",
    ],
)
def test_a_form_that_is_not_edited_is_refused_and_not_guessed(text: str) -> None:
    with pytest.raises(CannotEdit):
        replace_rules(text, [DENY])
