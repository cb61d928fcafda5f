"""What is known of node postprocessors: who keeps nodes apart, who shows a model several of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llama_index.core.postprocessor import (
    AutoPrevNextNodePostprocessor,
    EmbeddingRecencyPostprocessor,
    FixedRecencyPostprocessor,
    KeywordNodePostprocessor,
    LLMRerank,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    NERPIINodePostprocessor,
    PIINodePostprocessor,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
    SentenceTransformerRerank,
    SimilarityPostprocessor,
    TimeWeightedPostprocessor,
)
from llama_index.core.postprocessor.rankGPT_rerank import RankGPTRerank
from llama_index.core.postprocessor.structured_llm_rerank import StructuredLLMRerank

from llamaindex_robustrag.wiring.identity import changes, is_named, is_trusted, same_or_unchanged
from robustrag_integrations.audit import Finding

# They filter, reorder, rescore or rewrite each node by itself, and keep its source.
_KEEP_APART: tuple[type, ...] = (
    AutoPrevNextNodePostprocessor,
    EmbeddingRecencyPostprocessor,
    FixedRecencyPostprocessor,
    KeywordNodePostprocessor,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    NERPIINodePostprocessor,
    PIINodePostprocessor,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
    SentenceTransformerRerank,
    SimilarityPostprocessor,
    TimeWeightedPostprocessor,
)
_PACKAGES = "llama_index.postprocessor."
_PACKAGES_APART = frozenset(
    {
        "CohereRerank",
        "ColbertRerank",
        "FlagEmbeddingReranker",
        "JinaRerank",
        "MixedbreadAIRerank",
        "NVIDIARerank",
        "SentenceTransformerRerank",
        "VoyageAIRerank",
    }
)
_SHOW_TOGETHER = (LLMRerank, RankGPTRerank, StructuredLLMRerank)
_PACKAGES_TOGETHER = frozenset({"RankGPTRerank", "RankLLMRerank"})
_PACKAGES_MERGE = frozenset({"LongLLMLinguaPostprocessor"})


def postprocessor_findings(postprocessors: Sequence[object], path: str, trusted: Sequence[object]) -> Iterator[Finding]:
    """What is wrong with an engine's postprocessors."""
    for at, postprocessor in enumerate(postprocessors):
        name = type(postprocessor).__name__
        if is_trusted(postprocessor, trusted) or _keeps_apart(postprocessor):
            continue
        place = f"{path}[{at}]"
        if isinstance(postprocessor, _SHOW_TOGETHER) or _is_of_packages(postprocessor, _PACKAGES_TOGETHER):
            yield Finding(
                "joint-reranker",
                place,
                name,
                "one prompt holds the texts of several documents, so one of them can decide which others are read",
                "rerank each text by itself, with SentenceTransformerRerank or another cross-encoder",
            )
        elif _is_of_packages(postprocessor, _PACKAGES_MERGE):
            yield Finding(
                "merging-postprocessor",
                place,
                name,
                "it makes one node of several documents, which then share a group",
                "leave it out; RobustRAGSynthesizer cuts each group to the window by itself",
            )
        else:
            yield Finding(
                "splitting-postprocessor",
                place,
                name,
                "it may split a node into several that do not name their source, which then have several votes, or "
                "show a model several documents at once",
                f"let every new node keep relationships[NodeRelationship.SOURCE]; if it does, pass trusted=[{name}]",
            )


def _keeps_apart(postprocessor: object) -> bool:
    if any(same_or_unchanged(postprocessor, kind) for kind in _KEEP_APART):
        return True
    return _is_of_packages(postprocessor, _PACKAGES_APART)


def _is_of_packages(postprocessor: object, names: frozenset[str]) -> bool:
    """Whether it is one of these classes of LlamaIndex's integration packages, and nothing of it was changed."""
    kinds = [kind for kind in type(postprocessor).__mro__ if is_named(kind, _PACKAGES, names)]
    return bool(kinds) and not changes(postprocessor, kinds[0])
