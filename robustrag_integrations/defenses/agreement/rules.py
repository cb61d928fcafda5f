"""The names of the rules by which an answer is chosen, as settings take them."""

from __future__ import annotations

from typing import Literal

Agreement = Literal["plurality", "majority"]
Disagreement = Literal["tell", "abstain"]
