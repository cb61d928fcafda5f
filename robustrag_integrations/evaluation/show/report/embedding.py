"""Data, script and style in one page: data that cannot end its element, and a policy that names the rest."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from robustrag_integrations.drawing.text import one_line, visible

BLOCK = 256  # shared parts per element
_SHORTEST = 32  # characters; below that a number saves nothing
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# JSON's own escapes for what HTML could take for the end of a script element or the start of a comment.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class SharedParts:
    """Texts and elements that many rows share (a question, a passage, a group's reply), kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.size = 0

    def number(self, part: Any) -> Any:
        """The number of a part that is worth sharing; a small one comes back as it is."""
        if isinstance(part, int) or (isinstance(part, str) and len(part) < _SHORTEST - 2):
            return part
        written = json_text(part)
        if len(written) < _SHORTEST:
            return part
        if written not in self._numbers:
            self._numbers[written] = len(self._numbers)
            self.size += len(written)
        return self._numbers[written]

    def scripts(self) -> list[str]:
        """The parts as data elements of `BLOCK` each."""
        parts = list(self._numbers)
        blocks = [parts[i : i + BLOCK] for i in range(0, len(parts), BLOCK)]
        return [data_element(f"parts-{i}", f"[{','.join(block)}]") for i, block in enumerate(blocks)]


def data_script(name: str, data: Any) -> str:
    """Data in an element that no browser runs."""
    return data_element(name, json_text(data))


def data_element(name: str, written: str) -> str:
    """The element for what `json_text` gave."""
    return f'<script type="application/json" id="{name}">{written}</script>'


def json_text(data: Any) -> str:
    """JSON with neither `<` nor `>` nor `&` nor a line separator in it."""
    return _ENCODER.encode(data).translate(_ESCAPES)


def template(name: str) -> Template:
    """A template of this package: what is put into it is escaped, and hidden characters in it are named."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_seen)
    made.filters["line"] = one_line
    return made.from_string(own_file(name))


def _seen(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def policy(script: str, style: str) -> str:
    """A content security policy that allows this script and this style, and no request to anywhere."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",  # the empty icon, so that no browser asks a server for one
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def own_file(name: str) -> str:
    """A file of this package, with the line ends that its digest is made of."""
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
