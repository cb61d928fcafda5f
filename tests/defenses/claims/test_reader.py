"""What counts as one claim, and which claims are the same."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import random
import time

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.defenses.agreement.claims.reader import MOST_CLAIMS, ClaimReader
from tests.keywords.test_lists import HOSTILE, LISTS

RUST = "How do I install Rust with rustup?"
RECORDS = "When are customer records deleted?"
TOWNS = "Which towns lie on the river Lenn?"


def claims(question: str, reply: str, *, as_list: bool = False) -> list[str]:
    return list(ClaimReader(question, as_list=as_list)(reply).forms.values())


def keys(question: str, *replies: str, as_list: bool = False) -> set[frozenset[str]]:
    reader = ClaimReader(question, as_list=as_list)
    return {reader(reply).keys for reply in replies}


@pytest.mark.parametrize(
    ("question", "wordings"),
    [
        (RUST, ["Install rustup.", "First, install rustup.", "You should install rustup", "1. Install rustup"]),
        (RUST, ["Install the rustup", "- You need to install rustup.", "To install Rust with rustup, install rustup!"]),
        (RUST, ["**Install rustup**", "Then install **rustup**.", "Step 1: Install rustup", "* please install rustup"]),
        ("How do you make pancakes?", ["Fry the pancakes in butter.", "For pancakes, fry pancakes in butter", "- fry pancakes in butter"]),
        (RECORDS, ["Records are deleted after seven years.", "The records are deleted after 7 years"]),
        ("Tell me a bio of Ilse Quant.", ["Ilse Quant was born on 27 May 1990.", "She was born on May 27, 1990"]),
        ("Wie installiere ich das?", ["Zuerst müssen Sie das Paket laden.", "Das Paket laden", "- Bitte das Paket laden."]),
        ("Comment installer le paquet ?", ["D'abord, vous devez télécharger le paquet.", "Télécharger le paquet"]),
    ],
)  # fmt: skip
def test_wordings_of_one_claim_are_the_same(question: str, wordings: list[str]) -> None:
    [same] = keys(question, *wordings)
    assert len(same) == 1


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (RECORDS, "Delete records after 7 years.", "Delete records before 7 years."),
        (RECORDS, "Delete records after 7 years.", "Do not delete records after 7 years."),
        (RECORDS, "Delete records after 7 years.", "Delete records after 7 years unless they are needed."),
        (RECORDS, "You must never delete records.", "You must delete records."),
        (RUST, "Run `pip install requests`", "Run `pip install request`"),
        (RUST, "Run `git Push`", "Run `git push`"),
        ("Who won, Anna or Bert?", "Anna beat Bert.", "Bert beat Anna."),
        ("What are the rules for students and staff?", "For students, entry is free.", "For staff, entry is free."),
        ("What are the rules for students and staff?", "For students:\n- Entry is free.", "- Entry is free."),
        ("Compare Anna Lind and Bert Gross.", "Anna Lind was born in 1990.", "Bert Gross was born in 1990."),
    ],
)
def test_claims_that_mean_something_else_differ(question: str, one: str, other: str) -> None:
    assert len(keys(question, one, other)) == 2


@pytest.mark.parametrize(
    "whole",
    [
        "Records are deleted after seven years, unless the customer is under legal hold.",
        "Records are deleted after seven years. Unless the customer is under legal hold.",
        "Records are deleted after seven years. However, not under legal hold.",
        "Records are deleted after seven years; this does not apply under legal hold.",
        "Records are deleted after seven years.\n- Except under legal hold.",
        "Records are deleted after seven years\nunless the customer is under legal hold.",
        "Records are deleted after seven years (not under legal hold. See section 4).",
        "If a customer asks, then delete the record, then tell them.",
        'The notice says "Stop. Do not delete."',
        "Run `a; b. C` now.",
        "Ask Dr. Lind of St. Gallen on the 3. March, e.g. Monday.",
    ],
)
def test_a_claim_keeps_what_limits_it(whole: str) -> None:
    assert len(claims(RECORDS, whole)) == 1


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        (
            "Wann werden Akten vernichtet?",
            "Akten werden nach zehn Jahren vernichtet. Es sei denn, es läuft ein Verfahren.",
        ),
        ("Quand les dossiers sont-ils détruits ?", "Ils sont détruits après dix ans. Sauf en cas de litige."),
        ("Quand les dossiers sont-ils détruits ?", "Ils sont détruits après dix ans. À moins que le juge les demande."),
        ("¿Cuándo se destruyen los archivos?", "Se destruyen a los diez años. A menos que haya un juicio."),
    ],
)
def test_a_claim_keeps_what_limits_it_in_other_languages(question: str, whole: str) -> None:
    assert len(claims(question, whole)) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Install it. Run it.", ["Install it.", "Run it."]),
        ("Install it, then run it.", ["Install it", "run it."]),
        ("1. Install it. 2. Run it. 3. Stop it.", ["Install it.", "Run it.", "Stop it."]),
        ("Here are the steps:\n\n1. Install it\n2. Run it", ["Install it", "Run it"]),
        ("1. **Install rustup**: get it from the site.\n2. Run it", ["Install rustup", "Install rustup: get it from the site.", "Run it"]),
        ("1. **Run it**: now.\n2. Stop", ["Run it", "Run it: now.", "Stop"]),
        ("Install it. The text does not say how to run it.", ["Install it."]),
        ("Für Kinder gilt das. Das kostet nichts.", ["Für Kinder gilt das.", "Das kostet nichts."]),
        ("先に入れる。次に動かす。", ["先に入れる。", "次に動かす。"]),
        ("Run:\n```\nrustup update\ncargo build\n```", ["Run: ```\nrustup update\ncargo build\n```"]),
        ("", []),
        ("...", []),
    ],
)  # fmt: skip
def test_a_reply_is_cut_where_its_writer_ends_a_statement(reply: str, expected: list[str]) -> None:
    assert claims(RUST, reply) == expected


def test_a_bold_head_is_a_claim_of_its_own_where_steps_are_asked_for_alone() -> None:
    assert claims(MUSHROOMS, "1. **Death cap**: poisonous\n2. Ceps") == ["Death cap: poisonous", "Ceps"]


# "Paris - the capital" and "The cities are" without the question's words stay as they are written
@pytest.mark.parametrize("name", [n for n in LISTS if n not in ("explained", "lemmas", "German", "French")])
def test_items_of_a_list_in_many_layouts(name: str) -> None:
    listed, items = LISTS[name]
    reader = ClaimReader("Which cities?", as_list=True)
    assert reader(listed).keys == {reader.key(item) for item in items}


@pytest.mark.parametrize(
    ("question", "reply", "items"),
    [
        (TOWNS, "The towns on the river Lenn are Kelford, Ashby, and Marrow.", ["Kelford", "Ashby", "Marrow"]),
        (TOWNS, "Kelford and Marrow are towns on the river Lenn.", ["Kelford", "Marrow"]),
        (TOWNS, "Kelford", ["Kelford"]),
        (TOWNS, "The town is Kelford.", ["Kelford"]),
        (TOWNS, "The Isle of Man is a town on the river Lenn.", ["The Isle of Man"]),
        (TOWNS, "- Kelford\n- Isle of Man\n\nI hope this helps.", ["Kelford", "Isle of Man"]),
        (TOWNS, '["Kelford", "Ashby"]', ["Kelford", "Ashby"]),
        (TOWNS, "- **Kelford**: a town on the Lenn\n- **Ashby** - a town", ["Kelford", "Ashby"]),
        (TOWNS, "All towns except Kelford and Ashby", ["All towns except Kelford and Ashby"]),
        (TOWNS, "Not on the Lenn:\n- Oslo\n- Lima", ["Not on the Lenn: Oslo", "Not on the Lenn: Lima"]),
        ("Welche Orte liegen an der Lenn?", "An der Lenn liegen die Orte Kelford, Ashby und Marrow.", ["Kelford", "Ashby", "Marrow"]),
        ("Welche Orte liegen an der Lenn?", "Kelford und Marrow liegen an der Lenn.", ["Kelford", "Marrow"]),
        ("Welche Sprachen werden in Arvenia gesprochen?", "In Arvenia werden Arvenisch und Deutsch gesprochen.", ["Arvenisch", "Deutsch"]),
        ("¿Qué ingredientes lleva el gazpacho?", "Lleva tomate, pepino y aceite.", ["tomate", "pepino", "aceite"]),
        ("Which wines are sold?", "White wine, rosé and red wine", ["White wine", "rosé", "red wine"]),
        ("Which rivers flow north?", "River Tay, River Spey and River Dee", ["River Tay", "River Spey", "River Dee"]),
        ("Quelles villes se trouvent sur la Lenn ?", "Les villes sur la Lenn sont Kelford et Ashby.", ["Kelford", "Ashby"]),
        ("Quelles villes se trouvent sur la Lenn ?", "Kelford et Marrow se trouvent sur la Lenn.", ["Kelford", "Marrow"]),
    ],
)  # fmt: skip
def test_items_stand_without_what_leads_to_them(question: str, reply: str, items: list[str]) -> None:
    assert claims(question, reply, as_list=True) == items


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "0.5 mg every hour", "12.50 euros", "2:1 for Kelford", "02.01.2024", "10.0.0.1 answers", "1.000 Menschen",
        "3. März", "1. Mai", "1. Mai 2020", "3. mars 2021", "12. května", "15. maaliskuuta 2020", "1. 5. 2020", "9. 11. 1989",
        "2. Bundesliga", "21. Jahrhundert", "3. sal", "19. század", "1. und 2. Bundesliga", "1. Mai bis 2. Juni",
        "E. coli grows", "A. Lind", "7:30 at the mill", "3.14 for pi", "192.168.1.7 answers", "(2.5 kg) of salt",
    ],
)  # fmt: skip
def test_a_number_or_initial_at_the_start_of_a_line_stays(line: str, as_list: bool) -> None:
    assert claims("Which ones?", line, as_list=as_list) == [line]
    assert claims("Which ones?", f"{line}\n- Zinc", as_list=as_list)[0] == line


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("1. Zinc\n2. Iron\n3. Lead", ["Zinc", "Iron", "Lead"]),
        ("3. Zinc\n4. Iron", ["Zinc", "Iron"]),
        ("1. Zinc\n\n2. Iron", ["Zinc", "Iron"]),
        ("3. März\n4. April", ["3. März", "4. April"]),
        ("9. November 1989\n3. Oktober 1990", ["9. November 1989", "3. Oktober 1990"]),
        ("1. 3. März\n2. 1. Mai", ["3. März", "1. Mai"]),
        ("- 3. März\n- 1. Mai – 2. Juni", ["3. März", "1. Mai – 2. Juni"]),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_a_number_that_does_not_count_lines_is_an_ordinal(reply: str, items: list[str], as_list: bool) -> None:
    assert claims("Which ones?", reply, as_list=as_list) == items


@pytest.mark.parametrize(
    "mark", ["1. ", "12) ", "(3) ", "a) ", "(b) ", "- ", "- [ ] ", "* [x] ", "2: ", "1、", "Step 4: "]
)
def test_a_mark_is_no_part_of_an_item(mark: str) -> None:
    assert claims("Which ones?", f"{mark}Zinc", as_list=True) == ["Zinc"]


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("flour\nsugar\nsalt", ["flour", "sugar", "salt"]),
        ("zinc oxide\niron\nlead", ["zinc oxide", "iron", "lead"]),
        ("a very long name of some mineral that fills most of the whole line\nIron", ["a very long name of some mineral that fills most of the whole line", "Iron"]),
        ("- zinc,\n  of the mill\n- iron", ["zinc, of the mill", "iron"]),
    ],
)  # fmt: skip
def test_each_line_of_a_list_is_an_item(reply: str, items: list[str]) -> None:
    assert claims("Which ones?", reply, as_list=True) == items


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("flour\nsugar\nsalt", 3),
        ("Do not cut the red wire of the old mill\nin any weather.", 1),
        ("Ask Prof. Lind. Pay him.", 2),
        ("ask the prof. Lind knows", 1),
    ],
)
def test_only_a_wrapped_line_goes_on(reply: str, expected: int) -> None:
    assert len(claims(RUST, reply)) == expected


MUSHROOMS = "Which mushrooms are edible?"


@pytest.mark.parametrize(
    ("question", "reply", "items"),
    [
        (TOWNS, "Not on the Lenn: Kelford", ["Not on the Lenn: Kelford"]),
        (TOWNS, "All towns except: Kelford, Ashby", ["All towns except: Kelford, Ashby"]),
        (MUSHROOMS, "Not edible:\n- death cap", ["Not edible: death cap"]),
        (MUSHROOMS, "Poisonous:\n- death cap\n- fly agaric", ["Poisonous: death cap", "Poisonous: fly agaric"]),
        (MUSHROOMS, "Poisonous: death cap, fly agaric", ["Poisonous: death cap", "Poisonous: fly agaric"]),
        (MUSHROOMS, "**Poisonous ones:**\n\n1. death cap\n2. fly agaric", ["Poisonous ones: death cap", "Poisonous ones: fly agaric"]),
        (MUSHROOMS, "## Deadly\n- death cap\n## Edible\n- ceps", ["Deadly: death cap", "ceps"]),
        (MUSHROOMS, "Edible: ceps, morels. Poisonous: death cap, fly agaric.", ["ceps", "morels", "Poisonous: death cap", "Poisonous: fly agaric"]),
        (MUSHROOMS, "1. Not edible:\n2. death cap\n3. fly agaric", ["Not edible: death cap", "Not edible: fly agaric"]),
        (MUSHROOMS, "- Deadly:\n- death cap\n- Edible:\n- ceps", ["Deadly: death cap", "ceps"]),
        (MUSHROOMS, "- Edible:\n  - ceps\n- Deadly:\n  - death cap", ["ceps", "Deadly: death cap"]),
        (MUSHROOMS, "**Avoid**\n- death cap", ["Avoid: death cap"]),
        (MUSHROOMS, "The edible mushrooms mentioned in the text are:\n- ceps\n- morels", ["ceps", "morels"]),
        (TOWNS, "**Kelford**\n**Ashby**", ["Kelford", "Ashby"]),
        (TOWNS, "There are two towns: Kelford, Ashby", ["Kelford", "Ashby"]),
        (TOWNS, "According to the text, the towns are Kelford and Ashby.", ["Kelford", "Ashby"]),
        (MUSHROOMS, "**Death cap**: not edible", ["Death cap: not edible"]),
        (MUSHROOMS, "**Death cap**: poisonous", ["Death cap: poisonous"]),
        (MUSHROOMS, "1. **Death cap** – kills\n2. **Ceps**: edible", ["Death cap – kills", "Ceps"]),
        (MUSHROOMS, "All of these kill.\nHere is the list:\n- death cap\n- fly agaric", ["All of these kill: Here is the list: death cap", "All of these kill: Here is the list: fly agaric"]),
        (MUSHROOMS, "All of these kill.\n- death cap\n- fly agaric", ["All of these kill: death cap", "All of these kill: fly agaric"]),
        (MUSHROOMS, "Death cap and fly agaric are poisonous", ["Death cap and fly agaric are poisonous"]),
        (MUSHROOMS, "The poisonous ones are death cap and fly agaric", ["The poisonous ones are death cap and fly agaric"]),
        ("Which mushrooms are not edible?", "Edible:\n- ceps", ["Edible: ceps"]),
        ("Which mushrooms are edible and which deadly?", "Deadly:\n- ceps", ["Deadly: ceps"]),
        (TOWNS, "Never on the Lenn:\nHere is the list:\n- Oslo", ["Never on the Lenn: Here is the list: Oslo"]),
        (TOWNS, "Neither Kelford, Ashby nor Oslo", ["Neither Kelford, Ashby nor Oslo"]),
        (TOWNS, "Sure! Here are the towns on the Lenn:\n- Kelford\n- Ashby", ["Kelford", "Ashby"]),
        (TOWNS, "Towns on the Lenn: Kelford, Ashby", ["Kelford", "Ashby"]),
        (TOWNS, "Based on the provided text, the towns are:\n1. Kelford\n2. Ashby", ["Kelford", "Ashby"]),
    ],
)  # fmt: skip
def test_a_heading_that_says_something_stays_with_each_item(question: str, reply: str, items: list[str]) -> None:
    assert claims(question, reply, as_list=True) == items


GERMAN = "Welche Orte liegen an der Lenn?"


@pytest.mark.parametrize(
    ("question", "reply", "note"),
    [
        (MUSHROOMS, "- Ulm\n- Ries\n\nThese are poisonous.", "These are poisonous"),
        (MUSHROOMS, "- Ulm\n- Ries\nPoisonous, all of them!", "Poisonous, all of them"),
        (MUSHROOMS, "1. Ulm\n2. Ries\n\nNone of these is edible. I hope this helps.", "None of these is edible"),
        (MUSHROOMS, "- Ulm\n- Ries\n\nI would not eat these.", "I would not eat these"),
        (MUSHROOMS, "Ulm\nRies\nThese are poisonous.", "These are poisonous"),
        (MUSHROOMS, "Ulm\nRies\nThe text does not say that they are edible.", "The text does not say that they are edible"),
        (MUSHROOMS, "Ulm and Ries. These are poisonous.", "These are poisonous"),
        (MUSHROOMS, "Ulm and Ries. However, both are deadly.", "However, both are deadly"),
        (MUSHROOMS, '```json\n["Ulm", "Ries"]\n```\nAll are poisonous.', "All are poisonous"),
        (TOWNS, "- Ulm\n- Ries\n\nOnly the first lies on the Lenn.", "Only the first lies on the Lenn"),
        (GERMAN, "- Ulm\n- Ries\n\nDiese liegen in Oslo.", "Diese liegen in Oslo"),
        (GERMAN, "- Ulm\n- Ries\n\nAußer Ries liegt keiner an der Lenn.", "Außer Ries liegt keiner an der Lenn"),
        (TOWNS, "- Ulm\n- Ries\n\nThese towns lie on the river Lenn.", ""),
        (TOWNS, "- Ulm\n- Ries\n\nI hope this helps! Let me know if you need more.", ""),
        (TOWNS, "- Ulm\n- Ries\n\nThe text does not mention any other towns.", ""),
        (TOWNS, "- Ulm\n- Ries\n\nNo further towns are named.", ""),
        (TOWNS, "Ulm\nRies\nThese lie on the Lenn.", ""),
        (GERMAN, "- Ulm\n- Ries\n\nWeitere Orte werden im Text nicht genannt.", ""),
        (TOWNS, "- Ulm [1]\n- Ries [2]\n\n[1] handbook.pdf\n[2] notes.txt", ""),
        (TOWNS, "- Ulm\n- Ries\n\nSource: handbook.pdf", ""),
        (GERMAN, "- Ulm\n- Ries\n\nIch hoffe, das hilft.", ""),
    ],
)  # fmt: skip
def test_a_sentence_below_a_list_is_said_of_its_items(question: str, reply: str, note: str) -> None:
    said = f" ({note})" if note else ""
    assert claims(question, reply, as_list=True) == [f"Ulm{said}", f"Ries{said}"]


def test_a_sentence_below_items_is_said_of_those_above_it_alone() -> None:
    assert claims(TOWNS, "- Ulm\n\nIt burned.", as_list=True) == ["Ulm (It burned)"]
    assert claims(MUSHROOMS, "- A\n- B\n\nPoisonous:\n- C", as_list=True) == ["A", "B", "Poisonous: C"]
    assert claims(TOWNS, "1. A\nIt burned.\n2. B", as_list=True) == ["A (It burned)", "B"]
    assert claims(TOWNS, "- A\n\nThe rest burned.\n- B", as_list=True) == ["A (The rest burned)", "The rest burned: B"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Do not do this:\n- cut the wire\n\nCall Ann.", ["Do not do this: cut the wire", "Call Ann."]),
        ("Never:\n1. smoke\n2. run\nThen rest.", ["Never: smoke", "Never: run", "Then rest."]),
        ("Run this:\n```reset```\nWait.", ["Run this: ```\nreset\n```", "Wait."]),
        ("Run this:\n```\nreset\n```\nWait.", ["Run this: ```\nreset\n```", "Wait."]),
        ("Warning:\nDo not touch.\nPress red.", ["Warning: Do not touch.", "Press red."]),
        ("For staff:\nTake the lift.\nUse code 5.\n\nGo home.", ["For staff: Take the lift.", "For staff: Use code 5.", "Go home."]),
        ("Only staff:\n- Take the lift.\n\n- Use code 5.", ["Only staff: Take the lift.", "Only staff: Use code 5."]),
        ("- Never:\n  cut the wire\n- Call Ann", ["Never: cut the wire", "Call Ann"]),
        ("- Never:\n  - cut the wire\n  - run\n- Call Ann", ["Never: cut the wire", "Never: run", "Call Ann"]),
        ("# Staff\nNever:\n- run\n\nGo home.\n# Guests\nStay.", ["Staff: Never: run", "Staff: Go home.", "Guests: Stay."]),
    ],
)  # fmt: skip
def test_a_title_lives_until_its_list_ends(reply: str, expected: list[str]) -> None:
    assert claims("What are the rules of the mill?", reply) == expected


@pytest.mark.parametrize(
    "limit",
    [
        "_Unless Ann is away._", "> Unless Ann is away.", "NB: unless Ann is away.", "**Note:** unless Ann is away.",
        "→ unless Ann is away.", "⚠️ Unless Ann is away.", "And only if Ann is away.", "Subject to a vote.",
        "As long as Ann is away.", "Save where Ann is away.", "The only exception is Ann.", "**Unless** Ann is away.",
        '"Unless Ann is away."', "Please note: except on Monday.", "One exception: Ann.", "*Important*: only if asked.",
        "So long as it rains.", "Apart from Monday.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("between", [" ", "\n", "\n\n", "\n- "])
def test_a_limit_stays_with_its_rule_behind_marks_and_labels(limit: str, between: str) -> None:
    assert len(claims(RECORDS, f"Records are deleted after seven years.{between}{limit}")) == 1


@pytest.mark.parametrize(
    "limit",
    ["À moins qu'il pleuve.", "Sous réserve d'un vote.", "La seule exception est lundi.", "**Note :** sauf lundi."],
)
def test_a_limit_stays_with_its_rule_in_french(limit: str) -> None:
    assert len(claims("Quand les dossiers sont-ils détruits ?", f"Ils sont détruits après dix ans. {limit}")) == 1


@pytest.mark.parametrize("limit", ["None of this is true.", "The above is wrong.", "These are not the rules."])
def test_what_limits_a_list_stays_with_each_of_its_items(limit: str) -> None:
    assert claims(RECORDS, f"- Delete it.\n- Keep it.\n\n{limit}") == [f"Delete it. {limit}", f"Keep it. {limit}"]
    below = "If that fails, ask Ann."
    assert claims(RECORDS, f"- Delete it.\n- Keep it.\n\n{below}") == ["Delete it.", f"Keep it. {below}"]


@pytest.mark.parametrize("verdict", ["That is wrong.", "This is outdated.", "¹ Not on Monday.", "These are old rules."])
def test_a_verdict_stays_with_what_it_is_about(verdict: str) -> None:
    assert len(claims(RECORDS, f"Records are deleted. {verdict}")) == 1


@pytest.mark.parametrize("as_list", [False, True])
def test_a_question_is_no_statement(as_list: bool) -> None:
    [asked], [told] = keys(RECORDS, "Ulm?", "Ulm.", as_list=as_list)
    assert asked != told
    assert claims(RECORDS, "When are customer records deleted?\nUlm", as_list=as_list) == ["Ulm"]
    assert claims(RECORDS, "When are customer records deleted\nUlm", as_list=as_list) == ["Ulm"]


@pytest.mark.parametrize(
    "lead",
    [
        "Sure! Here is how:", "Certainly! Follow these steps:", "Based on the provided text, here are the steps:",
        "According to the text:", "Here are the steps to install Rust:", "Of course! Based on the given context:",
        "**Steps:**", "Sure, here is the answer based on the passage:",
    ],
)  # fmt: skip
def test_a_lead_that_only_chats_is_no_part_of_a_claim(lead: str) -> None:
    assert claims(RUST, f"{lead}\n\n1. Get it\n2. Run it") == ["Get it", "Run it"]
    if not lead.startswith("**"):
        assert claims(RUST, f"{lead} 1. Get it 2. Run it") == ["Get it", "Run it"]


@pytest.mark.parametrize(
    "lead",
    [
        "Sure! Here is how not to:",
        "Do not follow these steps:",
        "Only provided you ask:",
        "Here are the steps on Windows:",
    ],
)
def test_a_lead_that_says_something_stays(lead: str) -> None:
    assert claims(RUST, f"{lead}\n1. Get it\n2. Run it") == [f"{lead} Get it", f"{lead} Run it"]
    assert all(word in " ".join(claims(RUST, f"{lead} 1. Get it 2. Run it")) for word in lead[:-1].split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("You must wear a helmet.", "You can wear a helmet."),
        ("Wear a helmet.", "We can wear a helmet."),
        ("It protects against hepatitis A.", "It protects against hepatitis."),
        ("Take vitamin A, not C.", "Take vitamin, not C."),
        ("Set x=1.", "Set x≠1."),
        ("Set x = 1.", "Set x ≠ 1."),
        ("x ∈ M", "x ∉ M"),
        ("x=1", "x=\u03381"),
    ],
)
def test_small_signs_and_words_that_mean_much_differ(one: str, other: str) -> None:
    assert len(keys("What are the rules?", one, other)) == 2


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ('```json\n["Ann", "Bo"]\n```', ["Ann", "Bo"]),
        ('```json\n{"people": ["Ann", "Bo"], "count": 2}\n```', ["Ann", "Bo"]),
        ('{"people": ["Ann", "Bo"]}', ["Ann", "Bo"]),
        ('{"absent": ["Ann", "Bo"]}', ["absent: Ann", "absent: Bo"]),
        ('{"people": ["Ann"], "absent": ["Bo"]}', ["Ann", "absent: Bo"]),
        ('{"people": ["Ann"], "note": "All left."}', ["Ann (note: All left)"]),
        ('[{"name": "Ann"}, {"name": "Bo", "left": true}]', ["Ann", "name: Bo, left: true"]),
        ('{"Ann": "present", "Bo": "absent"}', ["Ann: present", "Bo: absent"]),
        ('[{"absent": "Ann"}]', ["absent: Ann"]),
        ('Here is the list:\n```json\n["Ann", "Bo"]\n```\nI hope this helps.', ["Ann", "Bo"]),
        ('Sure! Here you are.\n\n{"people": ["Ann", "Bo\\nLind"]}', ["Ann", "Bo Lind"]),
        ('Absent: ["Ann", "Bo"]', ["Absent: Ann", "Absent: Bo"]),
        ('Not there:\n```json\n["Ann"]\n```', ["Not there: Ann"]),
        ("Here is the list:\n```json\n[]\n```", []),
        ("- [ ] Ann\n- [x] Bo", ["Ann", "Bo"]),
        ("[] Ann\n[1] Bo", ["[] Ann", "Bo"]),
        ("| Ann | Bo |\n| Cy | Di |", ["| Ann | Bo |", "| Cy | Di |"]),
        ("- A\n- B", ["A", "B"]),
    ],
)
def test_items_of_json_and_of_tick_boxes(reply: str, items: list[str]) -> None:
    assert claims("Which people are there?", reply, as_list=True) == items


@pytest.mark.parametrize(
    ("reply", "is_left_out"),
    [
        ("\n".join(f"- item {i}" for i in range(MOST_CLAIMS)), False),
        ("\n".join(f"- item {i}" for i in range(MOST_CLAIMS + 1)), True),
        ("- Ann\n- " + "long " * 450, True),
        ("long " * 450, True),
    ],
)
def test_claims_that_are_left_out_are_told(reply: str, is_left_out: bool) -> None:
    model = CallableModel(lambda prompt: reply)
    answer = ConsensusAggregation(model, task="list").answer("Which ones?", ["One.", "Two.", "Three."])
    assert all(("too long: at most 200" in (group.note or "")) is is_left_out for group in answer.groups)
    assert sum("too long: at most 200" in warning for warning in answer.warnings) == is_left_out


LONG = ["a. " * 7000, "`a " * 6000, "(" * 20000, '"a" ' * 5000, "Dr. " * 5000, "not " * 5000, "```\n" * 5000]
LONG += ["a:\n" * 3000 + "- b\n" * 2500, "- a:\n" * 4000, "a, according to the text, " * 700, "NB: " * 5000]
LONG += ["**a** " * 4000, ":" * 20000, "a: " * 6000, "1. a 2. b " * 2000, "\n".join(f"x{i} is y." for i in range(2000))]


LONG += [
    "- a\n- b\n" + "It is y.\n" * 2000,
    "- a\nb.\n" * 3000,
    '{"a": ' * 3000,
    '["a", ' * 3000,
    '{"a": ["b"]}\n' * 1500,
]


@pytest.mark.parametrize("hostile", [*HOSTILE, *LONG], ids=range(len(HOSTILE) + len(LONG)))
@pytest.mark.parametrize("as_list", [False, True])
def test_a_hostile_reply_makes_a_bounded_number_of_claims(hostile: str, as_list: bool) -> None:
    start = time.process_time()
    assert len(claims(RUST, hostile, as_list=as_list)) <= MOST_CLAIMS
    assert time.process_time() - start < 5


def test_no_reply_is_too_odd() -> None:
    rng = random.Random(0)
    pieces = [
        "a",
        "B",
        ".",
        "\n",
        "- ",
        "1. ",
        "`",
        "```\n",
        "**",
        ":",
        ";",
        "unless",
        "then",
        '"',
        "(",
        ")",
        "。",
        "\0",
        "#",
        " ",
    ]
    for _ in range(2000):
        reply = "".join(rng.choices(pieces, k=rng.randint(0, 30)))
        for as_list in (False, True):
            reader = ClaimReader(rng.choice([RUST, "", "?"]), as_list=as_list)
            said = reader(reply)
            assert set(said.forms) == said.keys
            assert all(key and reader.key(form) == key for key, form in said.forms.items())
