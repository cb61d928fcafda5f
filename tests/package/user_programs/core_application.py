"""An application of the core; its wrong lines are errors of a strict type checker, which reports ignores of none."""

from __future__ import annotations

from robustrag_integrations import (
    CallableModel,
    Certification,
    ConsensusAggregation,
    DecodingAggregation,
    KeywordAggregation,
    MajorityVoting,
    Passage,
    RobustAnswer,
    VanillaRAG,
    VoteRules,
)

model = CallableModel(lambda prompt: prompt[-1])
passages: list[str | Passage] = [Passage("Anna Lind runs the mill.", origin="gazette.example"), "She is the miller."]

answer: RobustAnswer = ConsensusAggregation(model, min_support=2, votes=VoteRules(min_sources=2)).answer(
    "Who?", passages
)
one: Certification = ConsensusAggregation(model).certify("Who?", passages, "Anna Lind", top_k=5)
some: tuple[Certification, ...] = KeywordAggregation(model, alpha=0.3).certify(
    "Who?", passages, "Anna Lind", corruption_size=[1, 2]
)
chosen: int | None = MajorityVoting(model, options="letters").answer("Who?", passages, choices=["Anna", "Bo"]).choice
plain: str = VanillaRAG(model, task="long_form").answer("Who?", passages).text
statuses = [source.status for source in answer.sources]

ConsensusAggregation(model, min_suport=2)  # type: ignore[call-arg]
ConsensusAggregation(model, alpha=0.3)  # type: ignore[call-arg]
ConsensusAggregation(model, agreement="most")  # type: ignore[arg-type]
KeywordAggregation(model, task="lists")  # type: ignore[arg-type]
DecodingAggregation(model)  # type: ignore[arg-type]
MajorityVoting(model).certify("Who?", passages, "Anna", attack="inject")  # type: ignore[call-overload]
print(answer.radiuss)  # type: ignore[attr-defined]
print(one.taus)  # type: ignore[attr-defined]
print(answer.sources[0].state)  # type: ignore[attr-defined]
