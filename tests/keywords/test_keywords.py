"""The shipped keyword pipeline: which answers match, which do not, and that hostile responses cannot harm it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from robustrag_integrations.keywords import SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.keywords.normalise import (
    MAX_CHARACTERS,
    MAX_KEYWORD_CHARACTERS,
    MAX_LINES,
    MAX_WORD_CHARACTERS,
    as_keyword,
    plain_lines,
)
from robustrag_integrations.keywords.pipelines import (
    SHIPPED_FOLDER,
    LazyShippedTagger,
    PipelineNotFoundError,
    folder_fingerprint,
    user_tagger,
)
from robustrag_integrations.keywords.rules import MAX_PHRASE_WORDS, keywords_of
from robustrag_integrations.keywords.words import TaggedWord
from tests.needs import DATA, needing

PAIRS = json.loads((Path(__file__).parent / "keyword_pairs.json").read_text(encoding="utf-8"))
EWT_TEST = DATA / "ewt-test.conllu.gz"
extract = SpacyKeywordExtractor()


# What two answers share


def test_the_table_is_as_long_as_promised() -> None:
    assert len(PAIRS["meet"]) >= 60
    assert len(PAIRS["apart"]) >= 15


@pytest.mark.parametrize(("one", "other"), PAIRS["meet"])
def test_answers_that_say_the_same_share_a_keyword(one: str, other: str) -> None:
    assert extract(one) & extract(other)


@pytest.mark.parametrize(("one", "other"), PAIRS["apart"])
def test_answers_that_say_different_things_share_none(one: str, other: str) -> None:
    assert not extract(one) & extract(other)


def test_keywords_are_lemmas_phrases_and_the_whole_response() -> None:
    assert extract("The capital cities are old places.") == {
        "capital", "city", "old", "place", "capital city", "old place", "capital cities are old places",
    }  # fmt: skip


def test_phrases_end_at_uninformative_words_and_at_lines() -> None:
    keywords = extract("Mount Everest is in Nepal\nLake Baikal is in Siberia and it is the deepest lake of the world")
    assert {"mount everest", "nepal", "lake baikal", "siberia"} <= keywords
    assert not any("nepal lake" in keyword for keyword in keywords)


@pytest.mark.parametrize(
    ("response", "phrase"),
    [
        ("It was written in The Lord of the Rings.", "lord of the rings"),
        ("He works at the Bank of America now.", "bank of america"),
        ('She starred in "Gone with the Wind" back then.', "gone with the wind"),
        ("They climbed Mount Everest.", "mount everest"),
        ("The role was played by Will Smith.", "will smith"),
        ("Elon Musk paid $44 billion.", "$44 billion"),
        ("He was born on May 27, 1990 in Rome.", "27 may 1990"),
    ],
)
def test_names_titles_and_quantities_are_kept_whole(response: str, phrase: str) -> None:
    assert phrase in extract(response)


def test_symbols_and_words_that_fit_any_answer_are_not_keywords() -> None:
    keywords = extract("It is also very likely there, at $15 or more.")
    assert not keywords & {"$", "also", "very", "there", "more"}


def test_a_lead_such_as_the_answer_is_does_not_count() -> None:
    assert extract("The correct answer is: Paris.") == extract("Paris")


# Hostile responses

HOSTILE = {
    "100 kB of text": "The mayor of Springfield announced that taxes rise by 15% in 2024. " * 1500,
    "10,000 unique words": " ".join(f"w{i:x}q" for i in range(10_000)),
    "unique capitalised words": " ".join(f"Zq{chr(97 + i % 26)}{i:x}" for i in range(10_000)),
    "one 50 kB word": "a" * 50_000,
    "one 50 kB number": "1" * 50_000,
    "digits and commas": "1,234" * 5000,
    "digits and dashes": "1-" * 10_000,
    "hyphens": "a-" * 10_000,
    "dots": "a." * 10_000,
    "slashes": "9/" * 10_000,
    "apostrophes": "'a" * 10_000,
    "quotes": '"a ' * 7000,
    "markup": "<b>" * 7000 + "Paris" + "</b>" * 7000,
    "unclosed tags": "<a " * 7000,
    "unclosed links": "[a](" * 5000,
    "entities": "&amp;&#0;&#x202e;" * 1200,
    "asterisks": "*" * 20_000,
    "underscores": "_a" * 10_000,
    "line feeds": "a\n" * 10_000,
    "combining marks": "e" + "\u0301\u0323\u0331" * 6000,
    "expanding ligatures": "\ufdfa" * 20_000,
    "control characters": "Par\x00is\x1b[31m is\x07 red\r\nand \x9b2J blue\u2028next\u202etxt\ufeff",
    "surrogates": "\ud800Paris\udfff",
    "no spaces in Chinese": "北京是中国的首都" * 2000,
    "emoji": "👩‍👩‍👧" * 4000,
    "months": "may " * 5000,
    "links of names": "Bank of the " * 1600,
    "separator": "Paris, London , Rome,Berlin ,, , and 1,200, 3,4",
    "only punctuation": "?!... --- ,;: ()",
    "whitespace": " \t\n\u00a0",
    "empty": "",
}


@pytest.mark.parametrize("response", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_responses_give_bounded_well_formed_keywords(response: str) -> None:
    keywords = extract(response)
    assert sum(map(len, keywords)) <= 40 * MAX_CHARACTERS
    for keyword in keywords:
        assert 0 < len(keyword) <= MAX_KEYWORD_CHARACTERS
        assert keyword == keyword.strip()
        assert "," not in keyword
        assert "  " not in keyword
        assert not any(unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp") for c in keyword)
        assert keyword.encode()


def test_random_characters_give_well_formed_keywords() -> None:
    rng = random.Random(0)
    alphabet = "aZé15$%.,-'\"/:&#+^() \n\t\x00\u0301\u202e\u2013\u00bd\u00b2東яع<>*_[]|~`@=½Ⅷ\ufb01"
    for _ in range(150):
        for keyword in extract("".join(rng.choices(alphabet, k=rng.randrange(1, 60)))):
            assert keyword == keyword.strip()
            assert keyword
            assert not set(keyword) & set("\n\t\x00\u202e`")
            assert ", " not in keyword


@pytest.mark.parametrize("name", ["only punctuation", "whitespace", "empty"])
def test_a_response_that_says_nothing_has_no_keywords(name: str) -> None:
    assert extract(HOSTILE[name]) == frozenset()


def test_what_lies_beyond_the_limits_does_not_count() -> None:
    filler = "of " * (MAX_CHARACTERS // 3 + 1)
    assert "zanzibar" not in extract(filler + "Zanzibar")
    assert extract("x" * MAX_WORD_CHARACTERS + "y") == extract("x" * MAX_WORD_CHARACTERS + "z")
    assert len(plain_lines("a\n" * 10_000)) == MAX_LINES


def test_a_long_run_of_names_is_cut_into_phrases() -> None:
    keywords = extract(" ".join(["Zanzibar", "Samarkand"] * 20))
    assert max(len(keyword.split()) for keyword in keywords) <= MAX_PHRASE_WORDS


def test_as_keyword_does_not_let_an_extractor_forge_the_list_separator() -> None:
    assert as_keyword("Paris, London\n, Rome") == "paris london rome"


def _unheard_of_words(seed: int) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("bcdfgaeiou", k=9)).title() for _ in range(1500))


def test_words_of_earlier_responses_are_not_kept() -> None:
    tagger = user_tagger(SHIPPED_FOLDER)
    tagger.tag([_unheard_of_words(0)])
    strings = tagger.language.vocab.strings
    before = len(strings)
    tagger.tag([_unheard_of_words(1)])
    tagger.tag([_unheard_of_words(2)])
    assert len(strings) == before
    assert _unheard_of_words(1).split()[0] not in strings


def test_the_pipeline_is_renewed_before_new_words_fill_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustrag_integrations.keywords.tagging.MAX_NEW_WORDS", 1000)
    tagger, lines = user_tagger(SHIPPED_FOLDER), ["The highest mountain is Mount Everest."]
    expected = tagger.tag(lines)
    first = tagger.language
    tagger.tag([_unheard_of_words(3)])
    assert tagger.tag(lines) == expected
    assert tagger.language is not first
    assert len(tagger.language.vocab) < 2000 + len(_unheard_of_words(3).split())


# A function of one response


def _responses() -> list[str]:
    return [text for pair in PAIRS["meet"][:60] for text in pair]


def test_keywords_do_not_depend_on_order_or_on_what_came_before() -> None:
    responses = _responses()
    first = {text: extract(text) for text in responses}
    extract(HOSTILE["10,000 unique words"])
    extract(HOSTILE["no spaces in Chinese"])
    again = {text: extract(text) for text in reversed(responses)}
    assert again == first


def test_a_fresh_process_finds_the_same_keywords() -> None:
    responses = _responses()[:40]
    program = (
        "import json, sys; from robustrag_integrations.keywords import SpacyKeywordExtractor as E; e = E();"
        "print(json.dumps([sorted(e(t)) for t in json.load(sys.stdin)]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(responses[::-1]), capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout)[::-1] == [sorted(extract(text)) for text in responses]


def test_threads_find_the_same_keywords() -> None:
    responses = _responses()
    expected = [extract(text) for text in responses]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(SpacyKeywordExtractor(), responses)) == expected


def test_the_shipped_pipeline_is_loaded_once_per_process() -> None:
    extract("Paris")
    loaded = LazyShippedTagger.loaded()
    SpacyKeywordExtractor()("London")
    assert LazyShippedTagger.loaded() is loaded


def test_importing_and_constructing_does_not_import_spacy() -> None:
    program = (
        "import sys; from robustrag_integrations.keywords import SpacyKeywordExtractor, extractor_fingerprint as f;"
        "f(SpacyKeywordExtractor()); print('spacy' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


# Your own pipelines


def test_a_missing_pipeline_says_what_to_install() -> None:
    with pytest.raises(PipelineNotFoundError, match="python -m spacy download en_core_web_nonesuch"):
        SpacyKeywordExtractor("en_core_web_nonesuch")


def test_a_pipeline_without_tags_or_lemmas_is_refused() -> None:
    import spacy

    with pytest.raises(ValueError, match=r"gives no parts of speech \(POS\) and no lemmas"):
        SpacyKeywordExtractor(spacy.blank("en"))
    tags_only = spacy.load(SHIPPED_FOLDER, exclude=["trainable_lemmatizer"])
    with pytest.raises(ValueError, match="gives no lemmas"):
        SpacyKeywordExtractor(tags_only)


def test_a_loaded_pipeline_and_a_folder_give_what_the_default_gives() -> None:
    import spacy

    text = "The highest mountain is Mount Everest."
    assert SpacyKeywordExtractor(spacy.load(SHIPPED_FOLDER))(text) == extract(text)
    assert SpacyKeywordExtractor(SHIPPED_FOLDER)(text) == extract(text)


def test_a_folder_that_changes_while_in_use_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(SHIPPED_FOLDER, tmp_path / "pipeline")
    mine = SpacyKeywordExtractor(copy)
    monkeypatch.setattr("robustrag_integrations.keywords.tagging.MAX_NEW_WORDS", -1)
    assert mine("Paris") == {"paris"}
    (copy / "config.cfg").write_text((copy / "config.cfg").read_text() + "\n")
    with pytest.raises(RuntimeError, match="changed while it was in use"):
        mine("Paris")


def test_the_rules_work_with_any_tagger() -> None:
    words = [TaggedWord("Zorg", "Zorg", "PROPN", 0), TaggedWord("fell", "fall", "VERB", 5)]
    assert keywords_of(["Zorg fell"], [words]) == {"zorg", "zorg fell"}


# Fingerprints


def test_a_function_that_belongs_to_no_module_has_a_fingerprint_too() -> None:
    assert extractor_fingerprint(str.split) == "builtins.str.split (unhashed)"


def test_the_shipped_fingerprint_names_version_and_hash() -> None:
    name, version, digest = extractor_fingerprint(extract).split()
    assert (name, version) == ("robustrag-keywords", "1.0.0")
    assert digest.startswith("sha256:")
    assert len(digest) == len("sha256:") + 64


def test_the_fingerprint_changes_with_a_weight_but_not_with_the_documentation(tmp_path: Path) -> None:
    copy = shutil.copytree(SHIPPED_FOLDER, tmp_path / "pipeline")
    assert folder_fingerprint(copy) == extract.fingerprint
    (copy / "README.md").write_text("another text")
    assert folder_fingerprint(copy) == extract.fingerprint
    weights = copy / "tok2vec" / "model"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    assert folder_fingerprint(copy) != extract.fingerprint


def test_the_fingerprint_changes_with_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    before = folder_fingerprint(SHIPPED_FOLDER)
    monkeypatch.setattr("robustrag_integrations.keywords.pipelines.RULES_VERSION", "other")
    assert folder_fingerprint(SHIPPED_FOLDER) != before


def test_a_loaded_pipeline_is_named_with_its_version_and_marked_as_unhashed() -> None:
    import spacy

    fingerprint = extractor_fingerprint(SpacyKeywordExtractor(spacy.load(SHIPPED_FOLDER)))
    assert fingerprint.startswith("en_robustrag-keywords 1.0.0")
    assert "unhashed" in fingerprint


def _words(text: str) -> set[str]:
    return set(text.split())


def test_a_plain_function_is_named_and_marked_as_unhashed() -> None:
    assert extractor_fingerprint(_words) == f"{__name__}._words (unhashed)"


# The pipeline itself


def test_the_shipped_pipeline_is_small_and_holds_no_pickle() -> None:
    files = [file for file in SHIPPED_FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 4_000_000
    assert not [file for file in files if file.suffix in (".pkl", ".pickle") or file.read_bytes()[:2] == b"\x80\x04"]
    assert {"README.md", "NOTICE.md"} <= {file.name for file in files}


@needing("TREEBANK")
def test_informative_words_of_the_ewt_test_set_are_found() -> None:
    from gzip import open as gzip_open

    from spacy.tokens import Doc

    from robustrag_integrations.keywords.words import INFORMATIVE

    nlp = user_tagger(SHIPPED_FOLDER).language
    right = total = 0
    with gzip_open(EWT_TEST, "rt", encoding="utf-8") as lines:
        blocks = "".join(lines).strip().split("\n\n")
    for block in blocks[::4]:
        rows = [row.split("\t") for row in block.split("\n") if row[0].isdigit()]
        with nlp.memory_zone():
            doc = nlp(Doc(nlp.vocab, words=[row[1] for row in rows]))
            right += sum((row[3] in INFORMATIVE) == (t.pos_ in INFORMATIVE) for row, t in zip(rows, doc, strict=True))
        total += len(rows)
    assert total > 5_000
    assert right / total >= 0.96


@pytest.mark.parametrize(
    ("reply", "counted", "other"),
    [
        ("-$5 million", "-$5 million", "$5 million"),
        ("-€300", "-€300", "€300"),
        ("5 €", "€5", "$5"),
        ("It costs 5 $.", "$5", "€5"),
        ("O-", "o-", "o"),
        ("AB-", "ab-", "ab+"),
        ("Blood type B-", "blood type b-", "blood type b"),
        ("He got an A-.", "a-", "a"),
        ("UTC+5", "utc+5", "utc-5"),
    ],
)
def test_signs_currencies_and_grades_are_part_of_what_they_stand_at(reply: str, counted: str, other: str) -> None:
    found = SpacyKeywordExtractor()(reply)
    assert counted in found
    assert other not in found
