"""Answers in several languages: what says nothing is recognised in each, and one poisoned source is outvoted.

pip install .
"""

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage

# Per language: the question, how sources write the answer, a lie, and a reply that answers nothing.
ASKED = {
    "German": (
        "Wann wurde die Mühle gebaut?",
        ["3. Mai 1951", "3. Mai 1951.", "„3. Mai 1951“"],
        "1888",
        "Der Text enthält diese Angabe nicht.",
    ),
    "French": (
        "Combien d'habitants a Tarsk ?",
        ["2 450 habitants", "2 450 habitants.", "« 2 450 habitants »"],
        "900 habitants",
        "Le texte ne le précise pas.",
    ),
    "Chinese": ("首都是哪裡?", ["臺北", "臺北。", "「臺北」"], "倫敦", "文中沒有提到。"),
    "Korean": ("수도는 어디입니까?", ["서울", "서울.", "“서울”"], "런던", "모르겠습니다."),
}

for language, (question, said, lie, nothing) in ASKED.items():
    replies = [*said, *said, lie, nothing]  # six sources tell the truth

    def my_llm(prompt: str, replies: list[str] = replies) -> str:
        """Says what the passage in its prompt says."""
        return max((reply for reply in replies if reply in prompt), key=len)

    passages = [Passage(reply, origin=f"site-{n}.example") for n, reply in enumerate(replies)]
    answer = ConsensusAggregation(CallableModel(my_llm)).answer(question, passages)
    others = [f"{d.text} ({', '.join(d.origins)})" for d in answer.dissent]
    print(f"{language:<8} {answer.text}  (radius {answer.radius}, otherwise: {', '.join(others) or 'nobody'})")
    assert answer.radius == 2
    assert [source.status for source in answer.sources] == ["supports"] * 6 + ["differs", "abstained"]
