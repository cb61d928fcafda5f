"""RobustRAG: retrieval-augmented generation that a few planted documents cannot take over.

Isolate the retrieved passages, ask the model about each source alone, aggregate so that a few corrupted sources cannot
decide the outcome, and report with every answer its radius: how many sources could have lied without changing it.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustrag_integrations._util.errors import (
        ModelError,
        QuorumError,
        RobustRAGError,
        TooFewVotesError,
        TrustedError,
    )
    from robustrag_integrations.answers.answer import RobustAnswer, SourceReport, TrustedReport
    from robustrag_integrations.answers.usage import Usage
    from robustrag_integrations.certification.result import Certification
    from robustrag_integrations.defenses.consensus.defense import ConsensusAggregation
    from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
    from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
    from robustrag_integrations.defenses.vanilla.defense import VanillaRAG
    from robustrag_integrations.defenses.voting.defense import MajorityVoting
    from robustrag_integrations.grouping.passages import Passage, Source, isolate
    from robustrag_integrations.grouping.votes import VoteRules
    from robustrag_integrations.models.base import Response
    from robustrag_integrations.models.callable import CallableModel
    from robustrag_integrations.models.local.model import LocalModel
    from robustrag_integrations.models.reply import Ending
    from robustrag_integrations.models.server.model import OpenAIModel
    from robustrag_integrations.text.keywords import KeywordExtractor
    from robustrag_integrations.text.prompts import PromptSet, PromptTemplate, prompts_for
    from robustrag_integrations.text.spacy_keywords import SpacyKeywordExtractor

__version__ = "0.2.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until the program says where records go

__all__ = [
    "CallableModel",
    "Certification",
    "ConsensusAggregation",
    "DecodingAggregation",
    "Ending",
    "KeywordAggregation",
    "KeywordExtractor",
    "LocalModel",
    "MajorityVoting",
    "ModelError",
    "OpenAIModel",
    "Passage",
    "PromptSet",
    "PromptTemplate",
    "QuorumError",
    "Response",
    "RobustAnswer",
    "RobustRAGError",
    "Source",
    "SourceReport",
    "SpacyKeywordExtractor",
    "TooFewVotesError",
    "TrustedError",
    "TrustedReport",
    "Usage",
    "VanillaRAG",
    "VoteRules",
    "__version__",
    "isolate",
    "prompts_for",
]

# Where each public name is made. It is imported when it is first used, so that `import robustrag_integrations` costs
# next to nothing, and a program pays for what it uses.
_HOMES = {
    "answers.answer": ("SourceReport", "RobustAnswer", "TrustedReport"),
    "certification.result": ("Certification",),
    "defenses.consensus.defense": ("ConsensusAggregation",),
    "defenses.decoding.defense": ("DecodingAggregation",),
    "defenses.keyword.defense": ("KeywordAggregation",),
    "defenses.vanilla.defense": ("VanillaRAG",),
    "defenses.voting.defense": ("MajorityVoting",),
    "_util.errors": ("ModelError", "QuorumError", "RobustRAGError", "TooFewVotesError", "TrustedError"),
    "models.base": ("Response",),
    "models.callable": ("CallableModel",),
    "models.local.model": ("LocalModel",),
    "models.server.model": ("OpenAIModel",),
    "grouping.passages": ("Passage", "Source", "isolate"),
    "grouping.votes": ("VoteRules",),
    "text.prompts": ("PromptSet", "PromptTemplate", "prompts_for"),
    "models.reply": ("Ending",),
    "text.keywords": ("KeywordExtractor",),
    "text.spacy_keywords": ("SpacyKeywordExtractor",),
    "answers.usage": ("Usage",),
}
_HOME_OF = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names}

# What comes with an extra. `import *` leaves out what is not installed; importing it by name says what to install.
_WITH_EXTRAS = {"LocalModel": ("torch", "transformers"), "OpenAIModel": ("httpx",)}


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # something stands in its way
        return False


__all__[:] = [name for name in __all__ if all(map(_is_installed, _WITH_EXTRAS.get(name, ())))]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
