"""Removes credentials from text that others will read: errors, reports, records.

Servers echo what they were sent, and client libraries put the echo into their exceptions. All clients (the core's own,
LangChain's and LlamaIndex's) pass what went wrong through `redacted` before it is shown or logged.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any
from urllib.parse import quote, unquote

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import INTERRUPTS, ModelError

HIDDEN = "***"

_LONGEST = 20_000  # characters that are searched; the rest is cut off, as half a key may be there
_SHORTEST = 4  # characters of a secret; shorter ones are words of other texts
_PIECE = 8  # characters of a longer secret that give it away
_LONG = 2 * _PIECE  # from this length on, pieces of a secret are hidden too
_DEPTH = 6  # of models inside wrappers inside wrappers
_MOST_OBJECTS = 500  # that are searched for settings
_PLACEHOLDERS = frozenset({  # placeholders for servers that need no key
    "anything", "dummy", "empty", "fake", "ignored", "lm-studio", "local", "no-key", "no-key-needed", "none",
    "not-needed", "not-used", "null", "ollama", "placeholder", "secret", "test", "token", "unused",
})  # fmt: skip

# A name that stands for a secret, in an environment, a header, a setting or a JSON object.
_NAME = (
    r"(?:api[-_ ]?key|(?:access|auth|azure[-_]ad|bearer|hub|id|refresh|security|session)[-_]?token|access[-_]key"
    r"|x-[a-z-]{0,40}(?:key|token)|subscription[-_]key|private[-_]key|secret(?:[-_]key)?|passw(?:or)?d|authorization"
    r"|credentials?)"
)
_SCHEME = r"(?:(?:bearer|basic|digest|token|apikey)\s{1,3})?"
_SECRET_NAME = re.compile(rf"(?i){_NAME}s?$|^token$|cookie$")
_ENVIRONMENT = re.compile(r"(?:_|^)(?:API_?KEY|ACCESS_KEY|KEY|SECRET|TOKEN|PASSWORD|PASSWD)$")
_MESSAGE = re.compile(r"(?i)request|response|headers|hdrs")  # of HTTP, by the name of an attribute
_HARMLESS_HEADER = re.compile(r"(?i)accept|content-|user-agent|x-stainless|http-referer|referer|x-title|openai-")

# Every pattern is linear in the text: repeats are bounded, or cannot begin within themselves.
# Per pattern, what is put in place of a match.
_PATTERNS = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"(?i)([a-z][a-z0-9+.-]{0,20}://)[^\s/\"'<>?#]{1,300}@", rf"\1{HIDDEN}@"),
        (
            r"(?i)([?&;][\w.-]{0,40}(?:key|token|secret|sig|signature|password|pwd|code|auth|credential)=)[^\s&\"'<>#;]+",
            rf"\1{HIDDEN}",
        ),
        (r"(?i)(cookie\d?[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3})[^\r\n\"']+", rf"\1{HIDDEN}"),
        (
            rf"(?i)({_NAME}s?[\"'\]\\]{{0,4}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{0,3}}{_SCHEME})[^\s\"',;&\\}})\]]+",
            rf"\1{HIDDEN}",
        ),
        (
            rf"(?i)({_NAME}s?\s{{1,3}}(?:provided|given|supplied|used|received|sent)\s{{0,3}}:?\s{{0,3}}[\"'(]?)[^\s\"',;)]+",
            rf"\1{HIDDEN}",
        ),
        (r"(?i)(\bbearer[\s:=]{1,3}[\"']?)[^\s\"',;&\\})\]]+", rf"\1{HIDDEN}"),
        (r"(\b[Bb]asic\s{1,3})(?=[A-Za-z+/]{0,60}[0-9=])[A-Za-z0-9+/]{8,}={0,2}", rf"\1{HIDDEN}"),
        (r"(?<![A-Za-z0-9])(?:sk|rk|pk)[-_][A-Za-z0-9_*.\-]{3,}", HIDDEN),
        (
            r"(?<![A-Za-z0-9])(?:gsk|xai|pplx|nvapi|hf|gh[pousr]|github_pat|glpat|xox[a-z]|r8|tgp|csk)[-_][\w*-]{16,}",
            HIDDEN,
        ),
        (r"(?<![A-Za-z0-9])(?:AIza[\w-]{16,}|A[KS]IA[A-Z0-9]{12,}|ya29\.[\w.-]{8,}|eyJ[\w-]{8,400}\.[\w.-]+)", HIDDEN),
    )
)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text with `***` in place of everything that is a credential, or looks like one.

    That is: the given secrets (such as a client's key; common placeholders are none), and those of this process's
    environment (`..._API_KEY`, `..._TOKEN` and the like), in any spelling (quoted, escaped, Base64) and in pieces; keys
    of well-known forms (`sk-...`); what follows `Bearer`, `Authorization:`, `X-Api-Key:` and the like; passwords and
    keys in addresses. Only the first 20,000 characters are looked at, and given back.
    """
    shown = text[:_LONGEST]
    ours = (value for name, value in os.environ.items() if len(value) >= _PIECE and _ENVIRONMENT.search(name))
    known = [s for s in (*secrets, *ours) if len(s) >= _SHORTEST and s.casefold() not in _PLACEHOLDERS]
    for secret in sorted({form for s in known for form in _forms(s)}, key=len, reverse=True):
        exact = re.escape(secret)
        shown = re.sub(exact if len(secret) >= _PIECE else rf"(?<!\w){exact}(?!\w)", HIDDEN, shown, flags=re.IGNORECASE)
    shown = _without_pieces(shown, [s for s in known if len(s) >= _LONG])
    for pattern, replacement in _PATTERNS:
        shown = pattern.sub(replacement, shown)
    return shown


def in_one_line(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Describe an exception in one line of at most 300 characters, without credentials."""
    try:
        words = printable(redacted(str(error), secrets), 300)
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exception's own `__str__` may fail, or exit
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def presentable(error: BaseException, secrets: Iterable[str] = ()) -> Exception:
    """Return the exception if it holds no credential; otherwise one of its class with its words redacted.

    Retries and fallbacks choose by the class. Of its attributes numbers and texts are kept, and no request or response,
    which have headers. A ModelError replaces what no exception can be made of, and what is not an `Exception`, such as
    the panics of libraries in Rust.

    Raise the result outside the `except` clause: inside, Python would chain the original to it.
    """
    known = tuple(secrets)
    if isinstance(error, Exception):
        if not (_shows_secrets(error, known) or any(map(_holds_headers, _chained(error)))):
            return error
        try:
            return _redacted(error, known)
        except INTERRUPTS:
            raise
        except BaseException:  # noqa: S110 - a class that makes no object without its own arguments
            pass
    return ModelError(in_one_line(error, known))


def _redacted(error: Exception, secrets: Iterable[str]) -> Exception:
    kind = type(error)
    words = redacted(error.args[0] if error.args and isinstance(error.args[0], str) else str(error), secrets)
    told = redacted(str(error), secrets)
    kept = {name: redacted(v, secrets) if isinstance(v, str) else v for name, v in vars(error).items() if _is_plain(v)}
    made_up = {"__str__": lambda _: told, "__getattr__": _lacking, "__module__": kind.__module__}
    own: Any = type(kind.__name__, (kind,), made_up)
    for like in (kind, own):
        made: Exception = like.__new__(like)
        made.args = (words,)
        vars(made).update(kept)
        with suppress(Exception):  # a class's own `__str__` may want what was left out
            if str(made) == told and not _shows_secrets(made, secrets):
                return made
    raise ValueError(f"no {kind.__name__} without credentials can be made")


def _lacking(error: Exception, name: str) -> Any:
    raise AttributeError(f"{type(error).__name__} was made without {name}, which may hold credentials")


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _holds_headers(error: BaseException) -> bool:
    """True if an attribute is a request or a response, or is named so."""
    slots = (name for kind in type(error).__mro__ for name in _slots_of(kind))
    held = {**vars(error), **{name: getattr(error, name, None) for name in slots}}
    return any(
        not _is_plain(value)
        and (_MESSAGE.search(name) or hasattr(type(value), "headers") or "headers" in getattr(value, "__dict__", ()))
        for name, value in held.items()
    )


def _slots_of(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def shown_in_one_line(error: BaseException, shown: Exception) -> str:
    """Describe an exception in one line, where `presentable` made the other one of it."""
    return in_one_line(shown) if isinstance(shown, type(error)) else str(shown)


def secrets_of(*clients: Any) -> tuple[str, ...]:
    """Return the keys, passwords and tokens in clients' settings: attributes, headers and addresses, also inside
    wrappers. What a function refers to is not searched."""
    seen: dict[int, Any] = {}
    return tuple(dict.fromkeys(found for client in clients for found in _secrets("", client, _DEPTH, seen)))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    raw = secret.encode("utf-8", "surrogatepass")
    yield quote(raw, safe="")
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield base64.b64encode(raw).decode()


def _without_pieces(text: str, secrets: list[str]) -> str:
    """Hide every stretch that a text shares with a secret, if it is long enough to give the secret away."""
    pieces = {s[at : at + _PIECE] for s in secrets for at in range(len(s) - _PIECE + 1)}
    if not pieces:
        return text
    shown: list[str] = []
    done = hidden = 0  # up to where the text is in `shown`, and up to where it is hidden
    for at in range(len(text) - _PIECE + 1):
        if text[at : at + _PIECE] in pieces:
            if at > hidden or not shown:
                shown += text[done:at], HIDDEN
            done = hidden = at + _PIECE
    return "".join((*shown, text[done:]))


def _chained(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _shows_secrets(error: BaseException, secrets: Iterable[str]) -> bool:
    """True if the messages or attributes of an exception, or of those that it is chained to, show a credential."""
    said = "".join(text for one in _chained(error) for text in _said(one))
    return redacted(said, secrets) != said


def _said(error: BaseException) -> Iterator[str]:
    yield from traceback.format_exception_only(type(error), error)
    try:
        yield repr((error.args, vars(error)))
    except Exception:  # so may an attribute's `__repr__`
        yield "Authorization: unreadable"  # counts as a credential


def _secrets(name: str, value: Any, depth: int, seen: dict[int, Any]) -> Iterator[str]:
    """Yield the secrets in a value of that name; computes nothing to get them."""
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if _SECRET_NAME.search(name) or (name.endswith(" header") and not _HARMLESS_HEADER.match(name)):
            yield from (text, text.partition(" ")[2])  # the token after Bearer or Basic
        yield from _in_address(text)
        return
    if isinstance(value, MethodType):  # of a client, whose settings hold its key
        value = value.__self__
    if isinstance(value, partial):
        value = {"func": value.func, "args": value.args, **value.keywords}
    if isinstance(value, (type, FunctionType, ModuleType)) or not depth or id(value) in seen:
        return
    seen[id(value)] = value  # kept alive: another object could get its number
    try:
        if callable(getattr(type(value), "get_secret_value", None)):
            parts = [("secret", value.get_secret_value())]
        elif isinstance(value, Mapping):
            suffix = " header" if "headers" in name else ""
            parts = [(f"{key}{suffix}", held) for key, held in value.items()]
        elif isinstance(value, (list, tuple)):
            parts = [(name, held) for held in value[:_MOST_OBJECTS]]
        else:
            parts = list(
                {**getattr(value, "__dict__", {}), **(getattr(value, "__pydantic_private__", None) or {})}.items()
            )
    except INTERRUPTS:
        raise
    except BaseException:  # settings refer to anybody's objects: proxies that answer at certain times only, for one
        return
    for inner, held in parts if len(seen) < _MOST_OBJECTS else ():
        yield from _secrets(inner, held, depth - 1, seen)


def _in_address(text: str) -> Iterator[str]:
    if "://" not in text[:30]:
        return
    user, at, _ = text.partition("://")[2].partition("/")[0].rpartition("@")
    if at:
        yield from (user, unquote(user), unquote(user.partition(":")[2]))
    for pair in text.partition("?")[2].partition("#")[0].split("&"):
        key, _, held = pair.partition("=")
        if re.search(r"(?i)key|token|secret|sig|password|auth|code", key):
            yield from (held, unquote(held))
