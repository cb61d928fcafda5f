"""Who says so: the sources whose own replies support the answer, as numbers and as markers in the text.

pip install .
"""

import re

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage


def my_llm(prompt: str) -> str:
    """Copies names out of what it reads; put a call to your own model in its place."""
    names = re.findall(r"by ((?:Ada|Eve) \w+)", prompt, flags=re.IGNORECASE)
    return f"{names[-1]} built the mill." if names else "I don't know."


PASSAGES = [
    Passage("The mill was built by Ada Stone in 1790.", origin="almanac.example"),
    Passage("Built by Ada Stone, the mill still turns.", origin="guide.example"),
    Passage("Visitors see the mill, built by Ada Stone.", origin="museum.example"),
    Passage("The mill was built by Eve Crook.", origin="planted.example"),
    Passage("The road to the mill is closed in winter.", origin="roads.example"),
]

answer = ConsensusAggregation(CallableModel(my_llm)).answer("Who built the mill?", PASSAGES)
print(answer.marked_text)
for citation in answer.citations:
    print(f"[{citation.number}] {', '.join(citation.origins)}: {', '.join(citation.words)}")
for source in answer.sources:
    print(f"{source.origins[0]:<18} {source.status}")
assert "planted.example" not in {origin for citation in answer.citations for origin in citation.origins}
