"""Keys of a reply: runs of its words by default (`runs`), or keywords of an extractor.

An extractor is any function from one reply to a set of strings. `SpacyKeywordExtractor` is the paper's; importing this
module does not import spaCy.
"""

from robustrag_integrations.keywords.fingerprint import extractor_fingerprint
from robustrag_integrations.keywords.protocol import KeywordExtractor
from robustrag_integrations.keywords.spacy_extractor import SpacyKeywordExtractor

__all__ = ["KeywordExtractor", "SpacyKeywordExtractor", "extractor_fingerprint"]
