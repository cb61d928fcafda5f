"""Attacks by name, and custom ones: a plain function from a `Scene` to the texts to plant."""

from __future__ import annotations

from robustrag_integrations._util.plugins import load_object
from robustrag_integrations.attacks.families import ATTACKS, custom_attack
from robustrag_integrations.attacks.payloads import PREFIX, payload_attack
from robustrag_integrations.attacks.scene import Attack, Writer


def attack_of(name: str | Writer) -> Attack:
    """The attack of that name, or a custom one.

    Args:
        name: a name of `ATTACKS`, `payloads:FILE`, `module:function`, `path/to/file.py:function`, or a function. That
            takes a `Scene` and returns one text, or several; it decides what is planted and never where, so that
            whatever it returns is an attack within the budget.

    Raises:
        ValueError: the attack is unknown.
        TypeError: what is named is not a function.
    """
    if isinstance(name, str):
        if name in ATTACKS:
            return ATTACKS[name]
        if name.startswith(PREFIX):
            return payload_attack(name.removeprefix(PREFIX))
        if ":" not in name:
            raise ValueError(f"attack {name!r} is unknown; use one of {', '.join(ATTACKS)}, or module:function")
        try:
            return custom_attack(name, load_object(name))
        except ValueError as error:
            raise ValueError(f"attack {name!r}: {error}") from error
    label = f"{getattr(name, '__module__', '')}:{getattr(name, '__qualname__', type(name).__name__)}"
    return custom_attack(label, name)
