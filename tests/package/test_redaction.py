"""Credentials never stay in what others read, whatever way a server spells them; other words do."""

from __future__ import annotations

import base64
import json
import logging
from functools import partial
from types import MethodType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import httpx
import pytest

from robustrag_integrations._util.redaction import HIDDEN, in_one_line, presentable, redacted, secrets_of

KEY = "my+very/secret:key=17"


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        KEY.upper(),
        f"Incorrect API key provided: {KEY}.",
        quote(KEY, safe=""),
        json.dumps({"headers": {"x-anything": KEY}}),
        base64.b64encode(KEY.encode()).decode(),
        f"{KEY[:12]}...",
        f"...{KEY[-10:]}",
        "".join(f"<{KEY}>" for _ in range(3)),
    ],
)
def test_a_known_secret_is_hidden_in_any_spelling_and_in_pieces(echo: str) -> None:
    shown = redacted(f"before {echo} after", [KEY])
    for piece in (KEY[:8], KEY[-8:], quote(KEY, safe="")[:12], base64.b64encode(KEY.encode()).decode()[:12]):
        assert piece.casefold() not in shown.casefold()
    assert shown.startswith("before ")
    assert HIDDEN in shown


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("you sent Authorization: Bearer abc.def-123", "abc.def-123"),
        ("Authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
        ("{'authorization': 'Bearer quitesecret'}", "quitesecret"),
        ('{"Authorization": "quitesecret"}', "quitesecret"),
        ("X-Api-Key: quitesecret", "quitesecret"),
        ("api-key=quitesecret", "quitesecret"),
        ("OPENAI_API_KEY=quitesecret", "quitesecret"),
        ("Cookie: session=quitesecret; other=alsosecret", "alsosecret"),
        ("bearer quitesecret", "quitesecret"),
        ("Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
        ("no such key: sk-proj-abc_DEF-123", "abc_DEF"),
        ("gsk_0123456789abcdefABCDEF", "0123456789"),
        ("hf_0123456789abcdefABCDEF", "0123456789"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJzdWIi"),
        ("GET https://api.example/v1?key=quitesecret&x=1", "quitesecret"),
        ("https://api.example/v1?access_token=quitesecret#top", "quitesecret"),
        ("proxy http://user:hunter2@proxy.example:8080 refused", "hunter2"),
        ("API key received: quitesecret is wrong", "quitesecret"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(said: str, secret: str) -> None:
    shown = redacted(said)
    assert secret not in shown
    assert HIDDEN in shown
    assert redacted(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "HTTP 400: blocked by policy",
        "This model's maximum context length is 4096 tokens. However, you requested max_tokens=5000",
        "the model 'm' on api.openai.com needs a key in OPENAI_API_KEY; for a server of your own give base_url",
        "https://api.example/v1/chat/completions?page=2 is gone",
        "logprobs must be at most 5; tokenizer=gpt2, stop_token=</s>",
    ],
)
def test_other_words_stay(said: str) -> None:
    assert redacted(said) == said


def test_keys_of_the_environment_are_secrets_and_placeholders_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "quite-secret-17")
    monkeypatch.setenv("SOME_VENDOR_MODE", "quite-public-17")
    assert redacted("quite-secret-17 quite-public-17") == f"{HIDDEN} quite-public-17"
    assert redacted("none of EMPTY", ["none", "EMPTY", ""]) == "none of EMPTY"


def test_a_text_that_is_cut_keeps_no_half_of_a_key() -> None:
    for before in range(270, 310):
        shown = in_one_line(RuntimeError("x" * before + KEY), [KEY])
        assert KEY[:4] not in shown
    assert KEY[:4] not in redacted("x" * 19_990 + KEY, [KEY])


class _Secret:
    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        return self._value


class _Inner:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_secrets_are_found_in_attributes_headers_and_addresses_through_wrappers() -> None:
    client = _Inner(
        bound=_Inner(
            openai_api_key=_Secret("one-secret"),
            default_headers={"X-Corp": "two-secret", "Authorization": "Bearer three-secret", "Accept": "text/html"},
            base_url="https://user:four-secret@host/v1?key=five-secret",
            kwargs={"extra_headers": {"X-Other": "six-secret"}},
            model_name="gpt",
        ),
        fallbacks=[_Inner(api_key="seven-secret", max_tokens=5, tokenizer="gpt2")],
    )
    client.itself = client

    found = secrets_of(client)
    for number in ("one", "two", "three", "four", "five", "six", "seven"):
        assert f"{number}-secret" in found
    assert not {"gpt", "gpt2", "text/html"} & set(found)
    assert "one-secret" in secrets_of(partial(MethodType(print, client), system="x"))
    assert "eight-secret" in secrets_of(partial(print, api_key="eight-secret"))


def test_a_chain_of_exceptions_that_shows_a_key_is_replaced_and_another_is_kept() -> None:
    def chained(words: str) -> Exception:
        try:
            try:
                raise ConnectionError(words)
            except ConnectionError as error:
                raise RuntimeError("outer") from error
        except RuntimeError as error:
            return error

    clean = chained("down")
    assert presentable(clean, [KEY]) is clean
    shown = presentable(chained(f"{KEY} is wrong"), [KEY])
    record = logging.LogRecord("x", 40, "", 0, "", (), (type(shown), shown, None))
    assert KEY not in logging.Formatter().format(record)
    assert shown.__cause__ is shown.__context__ is None
    assert (type(shown), str(shown)) == (RuntimeError, "outer")


class Said(Exception):
    """An exception whose words are made of what it has."""

    def __init__(self, response: Any) -> None:
        self.response = response

    def __str__(self) -> str:
        return f"{self.response.text} (status {self.response.status_code})"


@pytest.mark.parametrize("library", ["openai", "httpx", "key error", "own words", "several"])
def test_an_exception_that_shows_a_key_keeps_its_class_and_loses_the_request(library: str) -> None:
    request = httpx.Request("POST", "https://api.example/v1", headers={"Authorization": f"Bearer {KEY}"})
    response = httpx.Response(401, request=request, text=f"Incorrect API key provided: {KEY}")
    error: Exception = {
        "openai": lambda: pytest.importorskip("openai").AuthenticationError(
            response.text, response=response, body={"message": KEY}
        ),
        "httpx": lambda: httpx.HTTPStatusError(response.text, request=request, response=response),
        "key error": lambda: KeyError(f"no {KEY}"),
        "own words": lambda: Said(response),
        "several": lambda: ConnectionError(5, f"refused: {KEY}"),
    }[library]()
    shown = presentable(error, [KEY])
    assert isinstance(shown, type(error))
    assert type(shown).__name__ == type(error).__name__
    assert "***" in str(shown)
    assert KEY not in "".join(map(repr, (shown, str(shown), shown.args, vars(shown))))
    assert not hasattr(shown, "body")
    assert getattr(shown, "__dict__", {}).get("response") is None
    if library == "openai":
        assert (type(shown), shown.status_code) == (type(error), 401)  # type: ignore[attr-defined]


class Slotted(Exception):
    """An exception whose response stands in a slot."""

    __slots__ = ("response",)


@pytest.mark.parametrize("library", ["openai", "httpx", "urllib", "slots"])
def test_an_exception_that_holds_a_request_or_a_response_is_one_of_its_class_without(library: str) -> None:
    request = httpx.Request("POST", "https://api.example/v1", headers={"Authorization": f"Bearer {KEY}"})
    response = httpx.Response(429, request=request)
    error: Exception = {
        "openai": lambda: pytest.importorskip("openai").RateLimitError("slow down", response=response, body=None),
        "httpx": lambda: httpx.ConnectError("slow down", request=request),
        "urllib": lambda: HTTPError(str(request.url), 429, "slow down", request.headers, None),  # type: ignore[arg-type]
        "slots": lambda: Slotted("slow down"),
    }[library]()
    if library == "slots":
        error.response = response  # type: ignore[attr-defined]
    shown = presentable(error)
    assert isinstance(shown, type(error))
    assert str(shown) == str(error)
    assert not any(hasattr(value, "headers") for value in vars(shown).values())
    assert getattr(vars(shown), "request", None) is getattr(vars(shown), "response", None) is None
