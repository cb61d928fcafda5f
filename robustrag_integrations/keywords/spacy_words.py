"""What spaCy 3.8 knows of words before it has read any: its symbols, the norms of signs, and the features of a word.

The shipped pipeline was trained with these. They are written down here so that it can be used without importing spaCy
(MIT License, Copyright ExplosionAI GmbH and the spaCy contributors); a test compares them with spaCy's own.
"""

from __future__ import annotations

import re

from robustrag_integrations.keywords.closed_classes import listed

_NAMES = (
    "",
    *listed(
        "IS_ALPHA IS_ASCII IS_DIGIT IS_LOWER IS_PUNCT IS_SPACE IS_TITLE IS_UPPER LIKE_URL LIKE_NUM LIKE_EMAIL IS_STOP "
        "IS_OOV_DEPRECATED IS_BRACKET IS_QUOTE IS_LEFT_PUNCT IS_RIGHT_PUNCT IS_CURRENCY"
    ),
    *(f"FLAG{number}" for number in range(19, 64)),
    *listed(
        "ID ORTH LOWER NORM SHAPE PREFIX SUFFIX LENGTH CLUSTER LEMMA POS TAG DEP ENT_IOB ENT_TYPE HEAD SENT_START "
        "SPACY PROB LANG ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE"
    ),
    *(f"DEPRECATED{number:03}" for number in range(1, 277)),
    *listed(
        "PERSON NORP FACILITY ORG GPE LOC PRODUCT EVENT WORK_OF_ART LANGUAGE LAW DATE TIME PERCENT MONEY QUANTITY "
        "ORDINAL CARDINAL acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj "
        "csubjpass dep det dobj expl hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num "
        "number oprd obj obl parataxis partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod "
        "root xcomp acl ENT_KB_ID MORPH ENT_ID IDX _"
    ),
)
SYMBOLS = {name: number for number, name in enumerate(_NAMES)}
"""The ids of spaCy's own names; a word that is spelt like one has its id."""

_SIGNS = {
    "'s": "'s 'S ’s ’S", "'": "’ ‘ ´ `", '"': "” “ '' `` ´´ „ » « ‘‘ ’’", "?": "？", "!": "！", ",": "，", ";": "；",
    ":": "：", ".": "。 ।", "...": "…", "-": "— – -- --- ——", "$": "€ £ ¥ ฿ US$ C$ A$ ₺ ₹ ৳ ₩ Mex$ ₣ E£",
}  # fmt: skip
NORMS = {sign: norm for norm, signs in _SIGNS.items() for sign in listed(signs)}
"""The norms of signs that are not their own."""

_LONG = 100
_RUN = re.compile(r"(.)\1{4,}", re.DOTALL)


def _sign(character: str) -> str:
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return "d" if character.isdigit() else character


_SIGNS_OF_ASCII = str.maketrans({character: _sign(character) for character in map(chr, range(128))})


def norm(word: str) -> str:
    """What a word is read as, unless a rule of the tokenizer says otherwise."""
    return NORMS.get(word) or word.lower()


def shape(word: str) -> str:
    """The shape of a word, such as "Xxxxx" or "dd.d"; runs of more than four are cut."""
    if len(word) >= _LONG:
        return "LONG"
    signs = word.translate(_SIGNS_OF_ASCII) if word.isascii() else "".join(map(_sign, word))
    return _RUN.sub(lambda run: run[0][:4], signs)
