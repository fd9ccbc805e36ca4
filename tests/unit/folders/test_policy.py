"""Which access rules give to a path: patterns, roots, clients, spellings, and the strictest of several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidArgument
from holdfast.folders.access.policy import ACCESS_BY_NAME, Policy, PolicyRule, rules_near


def rule(access: str, glob: str = "", root: str = "", client: str = "", number: int = 1) -> PolicyRule:
    return PolicyRule(number, ACCESS_BY_NAME[access], (root,) if root else (), glob, client, f"rule {number}")


def access(rules: list[PolicyRule], path: str, allowed: tuple[str, ...] = ("/r",)) -> str:
    decided = Policy(rules, allowed).rule_of(path)
    return "allow" if decided is None else str(decided.access)


@pytest.mark.parametrize(
    ("glob", "covered", "free"),
    [
        (
            ".env",
            ["/r/.env", "/r/a/.env", "/r/a/.ENV", "/r/.env/x", "/r/.e\u200bnv"],
            ["/r/.env2", "/r/x.env", "/q/.env"],
        ),
        ("/.env", ["/r/.env", "/r/.env/x"], ["/r/a/.env"]),
        ("*.pem", ["/r/a.pem", "/r/b/A.PEM", "/r/\udcff.pem"], ["/r/a.pem2"]),
        ("src/**", ["/r/src/a", "/r/src/a/b", "/r/SRC/a"], ["/r/src", "/r/a/src/b"]),
        (".ssh/", ["/r/.ssh", "/r/a/.ssh/x/y"], ["/r/.sshx"]),
        ("{a,b}/**/c?", ["/r/a/c1", "/r/b/x/y/cX", "/r/b/C1/d"], ["/r/a/c", "/r/c/c1"]),
        ("café", ["/r/cafe\u0301", "/r/x/CAFÉ/y"], ["/r/cafe"]),
        ("[A-C]x", ["/r/Bx", "/r/bX"], ["/r/dx"]),
        ("x[!a]", ["/r/xb", "/r/xA"], ["/r/xa"]),
        ("", ["/r/a", "/r/a/b"], ["/q", "/"]),
        ("**", ["/r/a", "/r/a/b"], ["/r"]),
    ],
)
def test_a_pattern_covers_what_it_matches_and_everything_below(glob: str, covered: list[str], free: list[str]) -> None:
    for path in covered:
        assert access([rule("deny", glob)], path) == "deny", path
    for path in free:
        assert access([rule("deny", glob)], path) == "allow", path


def test_the_strictest_rule_wins_whatever_the_order_and_allow_takes_nothing_back() -> None:
    rules = [rule("allow", "a/**", number=1), rule("review", number=2), rule("read-only", "a/b", number=3)]
    rules.append(rule("deny", "a/b/c", number=4))
    for ordered in (rules, rules[::-1]):
        assert [access(ordered, path) for path in ("/r/x", "/r/a/x", "/r/a/b", "/r/a/b/x", "/r/a/b/c/d")] == [
            "review",
            "review",
            "read-only",
            "read-only",
            "deny",
        ]


def test_a_rule_with_a_root_holds_there_whatever_folder_was_given() -> None:
    bound = [rule("deny", "*.x", root="/r/p")]
    for allowed in ("/", "/r", "/r/p", "/r/p/q"):
        assert access(bound, "/r/p/q/a.x", (allowed,)) == "deny"
        assert access(bound, "/r/a.x", (allowed,)) == "allow"
    assert access([rule("read-only", root="/r/p")], "/r/p", ("/r",)) == "read-only"
    assert access([rule("deny", "in/**")], "/r/p/in/a", ("/r", "/r/p")) == "deny"


def test_rules_that_cannot_hold_beneath_the_given_folders_are_left_out() -> None:
    rules = [rule("deny", root="/r/p"), rule("deny", root="/r"), rule("deny", root="/other"), rule("deny", "x")]
    assert [one.roots for one in rules_near(rules, ["/r/p/q"])] == [("/r/p",), ("/r",), ()]
    assert rules_near([rule("deny", root="/rest")], ["/r"]) == ()


@pytest.mark.parametrize(
    ("pattern", "bound", "free"),
    [
        ("", ["", "x"], []),
        ("claude-*", ["claude-code", "Claude-Desktop"], ["", "my claude-code"]),
        ("*", ["", "x"], []),
    ],
)
def test_a_rule_binds_clients_by_the_name_they_declare(pattern: str, bound: list[str], free: list[str]) -> None:
    assert all(rule("deny", client=pattern).binds(name) for name in bound)
    assert not any(rule("deny", client=pattern).binds(name) for name in free)


@pytest.mark.parametrize(
    "glob", ["!a", "/", "//", "../a", "a/../b", "a\0b", "{" + "a," * 600 + "}", "!(a)", "x" * 5000]
)
def test_a_pattern_that_cannot_be_meant_is_refused(glob: str) -> None:
    with pytest.raises(InvalidArgument, match="rule 1"):
        rule("deny", glob).check()


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=()), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=1, max_size=20), NAMES)
def test_a_listing_hides_exactly_the_names_that_a_single_look_hides(names: list[str], other: str) -> None:
    rules = [rule("deny", glob, number=at) for at, glob in enumerate(["*a", "b*", "[c-e]?", "f", "g*h", "a/**"], 1)]
    policy = Policy([*rules, rule("review", "*x*")], ["/r"])
    for folder in ("/r", "/r/a", "/r/z"):
        here = policy.folder(folder)
        hidden = here.hidden_among([*names, other, "f", "ba", "Dé"])
        assert hidden == {name for name in [*names, other, "f", "ba", "Dé"] if here.hides(name)}


def test_a_deep_path_and_many_folders_are_no_trouble() -> None:
    policy = Policy([rule("deny", "secret")], ["/r"])
    assert policy.hides("/r/" + "d/" * 2_000 + "secret")
    for number in range(12_000):
        assert not policy.hides(f"/r/{number}/x")
    assert policy.hides("/r/11999/secret/x")
