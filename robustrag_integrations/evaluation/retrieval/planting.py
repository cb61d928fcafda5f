"""The attacker's documents: what an attack writes, on pages of the attacker's own sites."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.attacks import planted_texts
from robustrag_integrations.attacks.scene import AttackedQuestion
from robustrag_integrations.corpus import Document, split
from robustrag_integrations.evaluation.retrieval.spec import RULES, RetrievalSpec
from robustrag_integrations.grouping.passages import Passage

PLANTED = "planted"


def planted_documents(
    attack: str, question: AttackedQuestion, shown: Sequence[Passage], count: int, *, repeat: int | None, seed: int
) -> tuple[str, ...]:
    """The texts of `count` documents; an attack that writes fewer plants them again.

    Raises:
        ValueError, TypeError: the attack writes nothing about this question.
    """
    texts = planted_texts(attack, question, shown, repeat=repeat, corruption_size=count, seed=seed)
    return tuple(texts[i % len(texts)] for i in range(count))


def planted_passages(texts: Sequence[str], spec: RetrievalSpec) -> tuple[Passage, ...]:
    """The documents as they stand in the corpus: cut as any other document is.

    Each is a page of its own; the pages are dealt to the attacker's sites in turn, and whoever owns a site is one
    author (the value of every rule that is a metadata key).
    """
    made = []
    for number, text in enumerate(texts):
        owner = f"{PLANTED}-{number % spec.sites}"
        address = f"https://{owner}.example/page-{number}"
        keys = {rule: owner for rule in spec.rules if rule not in RULES}
        made += [
            Passage(chunk.text, id=chunk.id, source=address, metadata={"source": address, **keys})
            for chunk in split([Document(text, f"{PLANTED}-{number}", address)], spec.chunk_size)
        ]
    return tuple(made)
