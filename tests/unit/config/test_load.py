"""The settings file: where it is found, what it may hold, and how a mistake is named."""

from pathlib import Path

import pytest

from holdfast.config.load import check_names, load, parse
from holdfast.errors import InvalidArgument


def refusal(text: str) -> str:
    """Return what the loader says about a text that it must refuse."""
    with pytest.raises(InvalidArgument) as caught:
        parse(text, "settings.yml")
    return caught.value.message


def test_without_a_file_every_value_is_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_SETTINGS", raising=False)
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path))

    loaded = load()

    assert loaded.settings.server.port == 8124
    assert loaded.path is None
    assert loaded.source_of("settings.server.port") == "default"


def test_a_value_remembers_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text("# mine\nsettings:\n  server:\n    port: 9000\n")

    loaded = load(str(file))

    assert loaded.settings.server.port == 9000
    assert loaded.source_of("settings.server.port") == f"{file}:4"
    assert loaded.source_of("settings.server.host") == "default"


def test_the_option_goes_before_the_variable_and_the_variable_before_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, port in (("option.yml", 1), ("variable.yml", 2), ("settings.yml", 3)):
        (tmp_path / name).write_text(f"settings: {{server: {{port: {port}}}}}")
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_SETTINGS", raising=False)

    assert load().settings.server.port == 3
    monkeypatch.setenv("HOLDFAST_SETTINGS", str(tmp_path / "variable.yml"))
    assert load().settings.server.port == 2
    assert load(str(tmp_path / "option.yml")).settings.server.port == 1


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read: No such file"):
        load(str(tmp_path / "none.yml"))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * 1_000_001])
def test_a_file_that_is_no_sound_text_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.yml"
    file.write_bytes(content)

    with pytest.raises(InvalidArgument, match=r"settings\.yml"):
        load(str(file))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "settings:\n  server:\n    prot: 1",
            "settings.yml:3: unknown setting settings.server.prot; did you mean settings.server.port?",
        ),
        ("settings: {port: 1}", "settings.yml:1: unknown setting settings.port; did you mean settings.server.port?"),
        ("settings:\n  sever: {}", "settings.yml:2: unknown setting settings.sever; did you mean settings.server?"),
        (
            "settings: {mcp: {files: {max_payload_byte: 1}}}",
            "settings.yml:1: unknown setting settings.mcp.files.max_payload_byte; "
            "did you mean settings.mcp.files.max_payload_bytes?",
        ),
        ("settings: {server: {zzzzz: 1}}", "settings.yml:1: unknown setting settings.server.zzzzz"),
        ("settings: {server: {port: abc}}", "settings.yml:1: settings.server.port: expected a whole number, got 'abc'"),
        ("settings: {server: {port: '1'}}", "settings.yml:1: settings.server.port: expected a whole number, got '1'"),
        (
            "settings: {folders: {read_only: 1}}",
            "settings.yml:1: settings.folders.read_only: expected true or false, got 1",
        ),
        (
            "settings: {folders: {roots: here}}",
            "settings.yml:1: settings.folders.roots: expected a list of text, got 'here'",
        ),
        ("settings: {folders: {roots: [1]}}", "settings.yml:1: settings.folders.roots.0: expected text, got 1"),
        (
            "settings: {auth: {mode: all}}",
            "settings.yml:1: settings.auth.mode: expected one of local, listed, open, oauth, got 'all'",
        ),
        (
            "settings: {server: {port: 70000}}",
            "settings.yml:1: settings.server.port: input should be less than or equal to 65535",
        ),
        (
            "settings: {server: {tls: {certificate: a.pem}}}",
            "settings.yml:1: settings.server.tls: a certificate and its key are two files: name both",
        ),
        (
            "settings: {server: {public_url: 'https://files.example/app'}}",
            "settings.yml:1: settings.server.public_url: an address without a path",
        ),
        (
            "settings: {server: {trusted_proxies: [0.0.0.0/0]}}",
            "settings.yml:1: settings.server.trusted_proxies: the networks that proxies are in, not every address",
        ),
        ("settings: {server: 1}", "settings.yml:1: settings.server: expected a mapping, got 1"),
        ("settings: 1", "settings.yml:1: settings: expected a mapping."),
        ("server: {port: 1}", "settings.yml:1: unknown key 'server'; the one key at the top is 'settings'."),
        ("[1]", "settings.yml: expected the one key 'settings' at the top."),
        (
            "settings:\n  server: {port: 1}\n  server: {port: 2}",
            "settings.yml:3: settings.server is set twice; first in line 2.",
        ),
        ("settings:\n  server: ]", "settings.yml:2: not valid YAML"),
        (
            "settings: {server: &a {host: x}, auth: *a}",
            "settings.yml:1: settings.auth is an alias; write the value out",
        ),
        (
            "settings: {server: {host: 2001-13-45}}",
            "settings.yml:1: settings.server.host: '2001-13-45' is not a plain value.",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, expected: str) -> None:
    assert refusal(text).startswith(expected)


def test_every_mistake_is_named_at_once() -> None:
    assert len(refusal("settings:\n  server:\n    prot: 1\n    port: x\n  auth:\n    mode: y\n").splitlines()) == 3


@pytest.mark.parametrize("text", ["", "# nothing\n", "settings:\n", "settings:\n  server:\n    # port: 1\n"])
def test_a_file_of_comments_is_empty(text: str) -> None:
    assert parse(text, "settings.yml").settings.server.port == 8124


def test_a_secret_is_never_part_of_a_message() -> None:
    short = refusal("settings: {mcp: {files: {security: {encryption_keks: {k1: tooshort}}}}}")
    wrong = refusal("settings: {mcp: {files: {security: {encryption_keks: {k1: 73646}}}}}")

    assert "shorter than 16" in short
    assert "tooshort" not in short
    assert "73646" not in wrong


def test_a_tool_nobody_has_is_refused_with_the_nearest() -> None:
    loaded = parse(
        "settings:\n  mcp:\n    tools:\n      raed_files: {enabled: false}\n    groups: {flies: {enabled: false}}",
        "s.yml",
    )

    with pytest.raises(InvalidArgument) as caught:
        check_names(loaded, ["read_files", "write_file"], ["files", "review"])

    assert caught.value.message.splitlines() == [
        "s.yml:4: unknown setting settings.mcp.tools.raed_files; did you mean settings.mcp.tools.read_files?",
        "s.yml:5: unknown setting settings.mcp.groups.flies; did you mean settings.mcp.groups.files?",
    ]


def test_known_tools_and_groups_pass() -> None:
    loaded = parse(
        "settings: {mcp: {tools: {read_files: {enabled: false}}, groups: {files: {enabled: true}}}}", "s.yml"
    )

    check_names(loaded, ["read_files"], ["files"])

    assert not loaded.settings.mcp.permits("read_files", "files")
    assert loaded.settings.mcp.permits("write_file", "files")
