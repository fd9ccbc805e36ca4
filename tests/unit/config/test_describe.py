"""Every setting can be shown and explained."""

from typing import Any

from pydantic import SecretStr

from holdfast.config.describe import annotation_at, describe_type, setting_rows, setting_values
from holdfast.config.settings import Settings

FIXED = """
allow_root_wipe max_payload_bytes max_file_bytes max_project_bytes max_tenant_bytes list_limit_default list_limit_max lock_timeout_ms
delete_retention_days versions_kept version_days idempotency_days
search.enabled search.limit_default search.limit_max search.vector_candidates search.bm25_candidates
search.embedder.kind search.embedder.endpoint search.embedder.model search.embedder.api_key search.embedder.timeout_ms
search.embedder.path search.embedder.tokenizer search.embedder.threads
search.rerank.model search.rerank.endpoint search.rerank.timeout_ms search.fallback.semantic_weight
search.fallback.lexical_weight index.workers index.batch_size index.retry_max index.retry_backoff_ms index.slo_p95_seconds
security.encryption_keks.<name> security.credential_cache_prefix security.credential_cache_ttl_seconds
""".split()


def test_the_store_keeps_its_setting_names() -> None:
    prefix = "settings.mcp.files."

    assert [row.name.removeprefix(prefix) for row in setting_rows() if row.name.startswith(prefix)] == FIXED


def test_every_setting_says_what_it_means() -> None:
    assert [row.name for row in setting_rows() if not row.meaning.endswith(".")] == []
    assert [row.name for row in setting_rows() if row.kind == "nothing"] == []


def test_a_number_with_a_unit_names_it() -> None:
    units = {"_bytes": "bytes", "_ms": "illiseconds", "_seconds": "econds", "_days": "ays", "_pixels": "pixels"}
    meanings = {row.name: row.meaning.lower() + row.meaning for row in setting_rows()}

    wrong = [
        name
        for name, meaning in meanings.items()
        for suffix, unit in units.items()
        if name.endswith(suffix) and unit not in meaning
    ]

    assert wrong == []


def test_the_values_in_force_have_the_names_of_the_rows() -> None:
    named = {row.name for row in setting_rows() if "<" not in row.name}

    assert {name for name, _ in setting_values(Settings())} == named


def test_secrets_are_masked() -> None:
    text = {"k1": SecretStr("a secret of some length")}
    settings = Settings.model_validate({"mcp": {"files": {"security": {"encryption_keks": text}}}})

    assert dict(setting_values(settings))["settings.mcp.files.security.encryption_keks.k1"] == "****"


def test_what_is_expected_is_said_in_words() -> None:
    expected: dict[tuple[int | str, ...], str] = {
        ("server", "port"): "a whole number",
        ("folders", "roots"): "a list of text",
        ("folders", "roots", 0): "text",
        ("auth", "mode"): "one of local, listed, open, oauth",
        ("mcp", "tools", "x", "enabled"): "true or false",
        ("mcp", "files", "security", "encryption_keks", "k"): "secret text",
        ("server",): "a mapping",
    }

    assert {place: describe_type(annotation_at(place)) for place in expected} == expected
    nowhere: Any = annotation_at(("server", "none"))
    assert nowhere is None
