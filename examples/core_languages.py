"""Answers in several languages: each reply's language is found, and one poisoned source is outvoted in every one.

pip install robustrag-integrations
"""

from robustrag_integrations import CallableModel, KeywordAggregation, Passage

# Per language: the question, what sources say of it in different words, and a lie.
ASKED = {
    "German": (
        "Wann wurde die Mühle gebaut?",
        [
            "Sie wurde am 3. Mai 1951 gebaut.",
            "Die Mühle wurde am 03.05.1951 gebaut.",
            "Gebaut am 3. Mai 1951.",
        ],
        "Die Mühle ist von 1888.",
    ),
    "French": (
        "Combien d'habitants a Tarsk ?",
        [
            "Il y a 2 450 habitants dans la ville.",
            "La ville a 2.450 habitants.",
            "Tarsk est de 2450 habitants.",
        ],
        "La ville a 9 habitants.",
    ),
    "Chinese": ("首都是哪裡?", ["臺北", "台北", "首都是臺北"], "倫敦"),
    "Korean": ("수도는 어디입니까?", ["서울", "수도는 서울입니다", "서울이 수도입니다"], "런던"),
}

for language, (question, said, lie) in ASKED.items():
    replies = [*said, *said, lie]  # six sources tell the truth

    def my_llm(prompt: str, replies: list[str] = replies) -> str:
        """Says what the passage in its prompt says, or what the sources agreed on."""
        return next((reply for reply in reversed(replies) if reply in prompt), replies[0])

    passages = [Passage(reply, source=f"site-{n}.example") for n, reply in enumerate(replies)]
    answer = KeywordAggregation(CallableModel(my_llm), alpha=0.5).answer(question, passages)
    others = [f"{d.text} ({', '.join(d.origins)})" for d in answer.dissent]
    print(f"{language:<8} {answer.text}  (radius {answer.radius}, otherwise: {', '.join(others) or 'nobody'})")
    assert lie not in answer.text
    assert not answer.abstained
