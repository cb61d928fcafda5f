"""What is known of node postprocessors: who keeps nodes apart, who shows a model several of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robustrag_integrations.undefended import Finding

# They filter, reorder, rescore or rewrite each node by itself, and keep its source.
_KEEP_APART = frozenset(
    {
        "AutoPrevNextNodePostprocessor",
        "CohereRerank",
        "ColbertRerank",
        "EmbeddingRecencyPostprocessor",
        "FixedRecencyPostprocessor",
        "FlagEmbeddingReranker",
        "JinaRerank",
        "KeywordNodePostprocessor",
        "LongContextReorder",
        "MetadataReplacementPostProcessor",
        "MixedbreadAIRerank",
        "NERPIINodePostprocessor",
        "NVIDIARerank",
        "PIINodePostprocessor",
        "PrevNextNodePostprocessor",
        "SentenceEmbeddingOptimizer",
        "SentenceTransformerRerank",
        "SimilarityPostprocessor",
        "TimeWeightedPostprocessor",
        "VoyageAIRerank",
    }
)
_SHOW_TOGETHER = frozenset({"LLMRerank", "RankGPTRerank", "RankLLMRerank", "StructuredLLMRerank"})
_MERGE = frozenset({"LongLLMLinguaPostprocessor"})


def postprocessor_findings(postprocessors: Sequence[object], path: str, trusted: tuple[type, ...]) -> Iterator[Finding]:
    """What is wrong with an engine's postprocessors."""
    for at, postprocessor in enumerate(postprocessors):
        name = type(postprocessor).__name__
        if name in _KEEP_APART or isinstance(postprocessor, trusted):
            continue
        place = f"{path}[{at}]"
        if name in _SHOW_TOGETHER:
            yield Finding(
                "joint-reranker",
                place,
                name,
                "one prompt holds the texts of several documents, so one of them can decide which others are read",
                "rerank each text by itself, with SentenceTransformerRerank or another cross-encoder",
            )
        elif name in _MERGE:
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
