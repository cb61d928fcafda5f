"""What must hold of all output, whatever the input."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from robustrag_integrations._util.display import printable

_UNSAFE = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def assert_harmless_on_a_terminal(shown: str, *, lines: bool = True) -> None:
    """No character that a terminal acts on; line feeds only where the output has lines of its own."""
    allowed = "\n" if lines else ""
    if shown.isascii() and shown.replace(allowed, "").isprintable():
        return
    bad = {c for c in set(shown) if c not in allowed and unicodedata.category(c) in _UNSAFE}
    assert not bad, f"characters {sorted(map(ascii, bad))} reach the terminal"


def assert_json(data: Any) -> None:
    """It survives a round trip through JSON."""
    written = json.dumps(data, ensure_ascii=True)
    assert written.isascii()
    assert json.dumps(json.loads(written), ensure_ascii=True) == written


def assert_valid_unicode(text: str) -> None:
    """No lone surrogate, which cannot be encoded."""
    text.encode("utf-8")


def assert_short_and_harmless(said: str) -> None:
    """An error message that can be shown."""
    assert len(said) < 5000
    assert_harmless_on_a_terminal(printable(said), lines=False)
    assert_valid_unicode(printable(said))
