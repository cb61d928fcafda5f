"""Keywords of a reply, for keyword aggregation: an extractor is any function from one reply to a set of strings.

`WordExtractor` is the default, `SpacyKeywordExtractor` the paper's; importing this module does not import spaCy.
"""

from robustrag_integrations.keywords.spacy_extractor import SpacyKeywordExtractor
from robustrag_integrations.keywords.words import KeywordExtractor, WordExtractor, extractor_fingerprint

__all__ = ["KeywordExtractor", "SpacyKeywordExtractor", "WordExtractor", "extractor_fingerprint"]
