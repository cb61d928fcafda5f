"""The names of the rules by which an answer is chosen, as settings take them."""

from __future__ import annotations

from typing import Literal

Agreement = Literal["plurality", "majority"]
ONE_IN: dict[str, int] = {"plurality": 4, "majority": 2}
"""More than one in so many of the votes that answer must be for an answer."""
Disagreement = Literal["tell", "abstain"]
