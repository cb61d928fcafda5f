"""Drop passages that were written alike, then let what the model knows stand beside the rest (TrustRAG)."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.defenses.voting.options import shown_options
from robustrag_integrations.evaluation.baselines.base import Baseline, BaselineSettings, Function, reread
from robustrag_integrations.grouping.passages import Passage, PassageGroup
from robustrag_integrations.plans.asking import PlanInput, ask_final
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.text.abstention import is_abstention

ROUGE, COSINE = 0.25, 0.88  # from which on two passages of a cluster are alike
_DIMENSIONS = 512
_LONGEST = 20_000  # characters of a passage that are embedded
_WORDS = 200  # of a passage that are compared in order
_ROUNDS = 50

Vectors = NDArray[np.float64]


def hashed_words(texts: Sequence[str]) -> list[list[float]]:
    """The embedding without a model: word counts, each word at a place that its hash decides."""
    vectors = np.zeros((len(texts), _DIMENSIONS))
    for row, text in zip(vectors, texts, strict=True):
        for word in plain_words(text[:_LONGEST]).split():
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % _DIMENSIONS] += 1
    return [list(map(float, row)) for row in vectors]


@dataclass(frozen=True, kw_only=True)
class FilterSettings(BaselineSettings):
    """The settings of TrustRAG."""

    method: ClassVar[Method] = BASELINES["trustrag"]

    embed: Function = setting(hashed_words, "from texts to vectors; counts words by default", is_function=True)


class ClusterFilter(Baseline):
    """TrustRAG.

    The passages' embeddings fall into two clusters. Passages that have a near copy in their own cluster, by cosine and
    by ROUGE-L, are dropped: attackers write several passages from one template. Then the model answers from memory;
    unless it abstains, that answer stands beside the passages that are left, in one prompt. A single planted passage
    has no near copy, so only the second step can help against it. `embed` is a function from a list of texts to one
    vector each; by default words are counted (`hashed_words`).
    """

    settings_type = FilterSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: FilterSettings) -> Steps[Draft]:
        """The filter, the answer from memory, one reading of both."""
        texts = [group.text for group in inputs.groups]
        alike = written_alike(texts, settings.embed(texts)) if len(texts) > 1 else frozenset()
        kept = [i for i in range(len(texts)) if i not in alike]
        shown = [inputs.groups[i] for i in kept]
        known = None
        if shown and settings.prompts.no_retrieval is not None:
            choices = inputs.choices
            values = {} if choices is None else {"choices": shown_options(choices, "", settings.prompts)}
            prompt = settings.prompts.no_retrieval.render(query=inputs.query, **values)
            known = (yield from ask_final(prompt, settings.cut_replies, shown=False)).text
            if known and not is_abstention(known):
                shown.append(PassageGroup(len(inputs.groups), (Passage(known, id="what the model knows"),)))
        evidence = {"written_alike": sorted(alike), "from_memory": known}
        return (yield from reread(inputs, settings, kept, groups=shown, evidence=evidence))


def unit_vectors(embedded: object, count: int) -> Vectors:
    """count x d: what an embedding gave, each vector of length 1 (or 0)."""
    try:
        vectors = np.asarray(embedded, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"embed must give one vector of numbers per text ({error})") from error
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise ValueError(
            f"embed gave an array of shape {vectors.shape}; it must give {count} vectors of finite numbers"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Vectors = vectors / np.where(lengths == 0, 1, lengths)
    return made


def two_means(vectors: Vectors) -> list[int]:
    """The cluster, 0 or 1, of each vector; it starts from the first vector and the one furthest from it."""
    from scipy.cluster.vq import kmeans2

    centres = vectors[[0, int(np.argmax(((vectors - vectors[0]) ** 2).sum(axis=1)))]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal vectors one cluster is empty
        return [int(c) for c in kmeans2(vectors, centres, iter=_ROUNDS, minit="matrix")[1]]


def rouge_l(first: str, second: str) -> float:
    """ROUGE-L: the F1 of the longest common subsequence of words, over the first words of each text."""
    one, other = plain_words(first[:_LONGEST]).split()[:_WORDS], plain_words(second[:_LONGEST]).split()[:_WORDS]
    if not one or not other:
        return 0.0
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for j, candidate in enumerate(other):
            row.append(before[j] + 1 if word == candidate else max(before[j + 1], row[j]))
    return 2 * row[-1] / (len(one) + len(other))


def written_alike(texts: Sequence[str], embedded: object) -> frozenset[int]:
    """The texts that have a near copy in their own cluster, by cosine and by ROUGE-L."""
    if len(texts) < 2:
        return frozenset()
    vectors = unit_vectors(embedded, len(texts))
    clusters = two_means(vectors)
    close = vectors @ vectors.T >= COSINE
    found: set[int] = set()
    for i in range(len(texts)):
        for j in range(i):
            if clusters[i] == clusters[j] and close[i, j] and rouge_l(texts[i], texts[j]) >= ROUGE:
                found |= {i, j}
    return frozenset(found)
