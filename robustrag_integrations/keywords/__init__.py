"""Keywords of a response (paper, appendix "Implementation of keyword extraction").

An extractor is any function from one response to a set of strings. The default is a small spaCy pipeline that travels
with the package; importing this module does not import spaCy.
"""

from robustrag_integrations.keywords.fingerprint import extractor_fingerprint
from robustrag_integrations.keywords.protocol import KeywordExtractor
from robustrag_integrations.keywords.spacy_extractor import SpacyKeywordExtractor

__all__ = ["KeywordExtractor", "SpacyKeywordExtractor", "extractor_fingerprint"]
