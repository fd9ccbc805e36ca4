"""Addresses of models: which can be used, that the settings refuse the others, and that no password is repeated."""

import pytest
from pydantic import ValidationError

from holdfast.config.section import endpoint_fault
from holdfast.config.settings import Settings


@pytest.mark.parametrize("url", ["http://host", "https://host:8443/v1/embeddings?version=2", "http://[::1]:8080/x"])
def test_an_address_of_http_is_an_endpoint(url: str) -> None:
    assert endpoint_fault(url) is None


@pytest.mark.parametrize(
    "url", ["", "host/x", "ftp://host/x", "http://", "http://h:99999/x", "http://h:0/", "http://h/#x"]
)
def test_anything_else_is_a_fault_in_the_settings(url: str) -> None:
    assert endpoint_fault(url)
    with pytest.raises(ValidationError, match="an endpoint is http://HOST/PATH"):
        _settings({"embedder": {"kind": "openai", "endpoint": url}})
    if url:
        with pytest.raises(ValidationError, match="an endpoint is http://HOST/PATH"):
            _settings({"rerank": {"endpoint": url}})


@pytest.mark.parametrize("url", ["http://user:canary@host/x", "http://:canary@host:99999/", "ftp://a:canary@b/"])
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    fault = endpoint_fault(url)
    assert fault is not None
    assert "canary" not in fault


def test_weights_that_make_all_hits_alike_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be above 0"):
        _settings({"fallback": {"semantic_weight": 0, "lexical_weight": 0}})


def _settings(search: dict[str, object]) -> Settings:
    return Settings.model_validate({"mcp": {"files": {"search": search}}})
