"""A question that takes two look-ups, each answered robustly, with a liar in both.

pip install .

The second question holds the first answer. Within its radius an answer is the same whatever the liars write, but for
case, spacing and the punctuation at its ends, so only what is left without them goes into the next question: then every
look-up asks what it would have asked without liars, and the least radius is that of the whole. This holds if every
source has one vote in each look-up (`group_by="origin"`, the default) and the questions are written without a look at
passages.
"""

import re
import string

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage

QUESTIONS = ["Which company makes the Tarsk?", "Who founded {}?"]
FACTS = ["The Tarsk is made by {}.", "{} was founded by {}."]
SITES = [f"site-{number}.example" for number in range(6)]


def my_llm(prompt: str) -> str:
    """Copies what a passage says; put a call to your own model in its place."""
    passages, _, question = prompt.rpartition("Question:")
    found = re.search(r"Who founded (.+?)\?", question)
    told = re.escape(found[1]) + r" was founded by (.+?)\." if found else r"The Tarsk is made by (.+?)\."
    match = re.search(told, passages, re.IGNORECASE)
    return match[1] if match else "I don't know"


def search(question: str, liars: int) -> list[Passage]:
    """One passage of each site. The liars among them lie in both look-ups."""
    passages = []
    for number, site in enumerate(SITES):
        company, founder = ("Gotir Works", "Anna Lind") if number >= liars else ("Crook Ltd", "Eve Crook")
        if "makes" in question:
            text = FACTS[0].format(company)
        else:
            text = FACTS[1].format(question.removeprefix("Who founded ").rstrip("?"), founder)
        passages.append(Passage(text, origin=f"https://{site}/page"))
    return passages


def ask_in_turn(defense: ConsensusAggregation, liars: int = 0) -> tuple[str, int]:
    """The answer to the last question and the least radius; the abstention of the first look-up that abstains."""
    words, radii = "", []
    for template in QUESTIONS:
        question = template.format(words)
        # What one source alone says is not passed on: its words may be an attacker's.
        answer = defense.answer(question, search(question, liars)).for_prompt()
        radii.append(answer.radius)
        print(f"  {question} {answer.text} (radius {answer.radius})")
        if answer.abstained:
            break
        words = string.capwords(answer.text.strip(string.punctuation + string.whitespace))
    return answer.text, min(radii)


if __name__ == "__main__":
    defense = ConsensusAggregation(CallableModel(my_llm))
    print("Nobody lies:")
    clean, radius = ask_in_turn(defense)
    print(f"  so {radius} of {len(SITES)} sites may lie in both look-ups:")
    attacked, _ = ask_in_turn(defense, liars=radius)
    assert attacked == clean
