"""Sources by origin, site and metadata entry, and that no passage has a say in how others are grouped."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from robustrag_integrations import CallableModel, KeywordAggregation, Passage, isolate
from robustrag_integrations.grouping import origins
from robustrag_integrations.grouping.passages import is_named
from robustrag_integrations.grouping.warnings import grouping_warnings


def ranks(passages: list[Passage], **how: Any) -> list[tuple[int, ...]]:
    return [source.ranks for source in isolate(passages, **how)]


def sourced(*sources: str | None) -> list[Passage]:
    return [Passage(f"text {i}", origin=source) for i, source in enumerate(sources)]


def test_the_chunks_of_one_file_are_one_source_by_default() -> None:
    passages = [Passage(f"chunk {i}", metadata={"source": "evil.pdf", "page": i}) for i in range(10)]
    assert ranks(passages) == [tuple(range(10))]
    assert ranks(passages, by="passage") == [(i,) for i in range(10)]
    assert ranks(passages, passages_per_source=5) == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]


def test_the_same_page_from_two_retrievers_stands_once_in_its_sources_prompt() -> None:
    page = Passage("Tarsk  won.", origin="a.html", metadata={"score": 1})
    again = Passage("Result: tarsk won.", origin="a.html", content="tarsk won.")
    found = isolate([page, Passage("It rained.", origin="a.html"), again, Passage("Tarsk won.", origin="b.html")])
    assert [(source.text, source.ranks) for source in found] == [
        ("Tarsk  won.\n\nIt rained.", (0, 1, 2)),
        ("Tarsk won.", (3,)),
    ]
    assert found[0].content == found[0].text
    named_by_metadata = [Passage("Tarsk won.", metadata={"file_path": "a.md"}) for _ in range(2)]
    assert isolate(named_by_metadata)[0].text == "Tarsk won."
    unnamed = [Passage("Tarsk won.") for _ in range(2)]
    for passages in (unnamed, [replace(p, origin=name) for p, name in zip(unnamed, "ab", strict=True)]):
        assert isolate(passages, passages_per_source=2)[0].text == "Tarsk won.\n\nTarsk won."


def test_passages_without_an_origin_share_a_source_as_soon_as_others_have_one() -> None:
    assert ranks(sourced("a", None, "b", None)) == [(0,), (1, 3), (2,)]
    assert ranks(sourced(None, None, None)) == [(0,), (1,), (2,)]
    mixed, none = isolate(sourced("a", None, None)), isolate(sourced(None, None))
    assert grouping_warnings(mixed, "origin")[0] == "2 of 3 passages have no origin; they count as one source"
    assert grouping_warnings(none, "origin")[0].startswith("none of the 2 passages names its origin")


def test_documents_of_unknown_origin_share_one_vote_beside_any_that_has_one() -> None:
    unknown = [Passage(f"chunk {n}", document_id=f"d{n}", metadata={"page": n, "id": n}) for n in range(6)]
    unknown += [Passage("chunk 6", metadata={"doc_id": "d6"}), Passage("chunk 7", metadata={"page": 7})]
    named = sourced("a.txt", "b.txt", "c.txt")
    assert ranks([*unknown, *named]) == [tuple(range(8)), (8,), (9,), (10,)]
    assert len(isolate(unknown)) == 8
    assert "8 of 11 passages have no origin; they count as one source" in grouping_warnings(
        isolate([*unknown, *named]), "origin"
    )


def test_any_other_text_is_a_metadata_entry_and_who_lacks_it_shares_a_source() -> None:
    people = ["Ann", None, "Bo", "Ann", None]
    passages = [Passage("x", origin=str(i), metadata={"author": who} if who else {}) for i, who in enumerate(people)]
    assert ranks(passages, by="author") == [(0, 3), (1, 4), (2,)]
    assert ranks(passages, by="source") == [(i,) for i in range(5)]
    assert "2 of 5 passages have no author; they count as one source" in grouping_warnings(
        isolate(passages, by="author"), "author"
    )


# Sites


@pytest.fixture
def suffixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """tldextract, or where it is not installed, something that knows two suffixes."""
    pytest.importorskip("tldextract")
    origins.site_extractor.cache_clear()


@pytest.mark.usefixtures("suffixes")
def test_a_site_is_a_registrable_domain() -> None:
    web = ["https://news.x.co.uk/1", "x.co.uk/2?p=1", "http://y.co.uk:8080/", "a.github.io/x", "b.github.io/y"]
    assert ranks(sourced(*web, "/data/x.py", "10.0.0.1/a", "10.0.0.1/b"), by="site") == [
        (0, 1), (2,), (3, 4), (5,), (6, 7)
    ]  # fmt: skip


@pytest.mark.usefixtures("suffixes")
def test_hosts_without_a_known_ending_are_one_site_by_their_last_two_names() -> None:
    """Whoever has a domain has as many hosts under it as they like."""
    hosts = [
        "http://a.evil.zzz",
        "http://b.evil.zzz/",
        "evil.zzz/c",
        "http://other.zzz",
        "http://box/a",
        "http://box/b",
    ]
    assert ranks(sourced(*hosts, "http://9.2.3.4", "http://1.2.3.4", "http://16909060/b"), by="site") == [
        (0, 1, 2), (3,), (4, 5), (6,), (7, 8)
    ]  # fmt: skip


@pytest.mark.usefixtures("suffixes")
def test_addresses_of_one_ipv6_network_are_one_site() -> None:
    """Whoever has one address of a network has 2^64 of them."""
    hosts = [
        "http://[2001:db8::1]/a",
        "http://[2001:db8::ffff:2]/b",
        "http://[2001:db8:0:1::1]/a",
        "http://[fe80::1%eth0]/",
    ]
    assert ranks(sourced(*hosts), by="site") == [(0, 1), (2,), (3,)]


@pytest.mark.usefixtures("suffixes")
def test_sites_come_from_the_list_in_the_package_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    library = SimpleNamespace(TLDExtract=lambda **given: made.append(given))
    monkeypatch.setattr(origins, "import_module", lambda name: library)
    origins.site_extractor.cache_clear()
    origins.site_extractor()
    origins.site_extractor.cache_clear()
    assert made == [{"suffix_list_urls": (), "cache_dir": None}]


def test_without_tldextract_grouping_by_site_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tldextract", None)
    origins.site_extractor.cache_clear()
    with pytest.raises(ImportError, match=r"robustrag-integrations\[site\]"):
        KeywordAggregation(CallableModel(lambda prompt: "x"), group_by="site")
    with pytest.raises(ImportError, match=r"robustrag-integrations\[site\]"):
        isolate(sourced("x.com/a"), by="site")


# Nothing that is written into one passage changes how the others are grouped.

VALUES = st.one_of(
    st.none(),
    st.sampled_from(["a.pdf", "b.pdf", "x.com/a", "http://x.com/a?u=1", "//x.com/", "", "a", "origin", "\ud800", "?#"]),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.lists(st.text(max_size=2), max_size=2),
)
METADATA = st.dictionaries(
    st.sampled_from(
        ["file_path", "source", "url", "link", "URL", "doc_id", "file_id", "file id", "author", "title", "metadata"]
    ),
    st.one_of(
        VALUES, st.dictionaries(st.sampled_from(["uri", "_source"]), VALUES), st.just('{"url": "http://a%2f.x.com/"}')
    ),
    max_size=4,
)
PASSAGES = st.builds(
    lambda text, source, metadata, document: Passage(text, origin=source, metadata=metadata, document_id=document),
    st.text(max_size=5),
    VALUES,
    METADATA,
    st.sampled_from([None, "d1", "d2"]),
)


def _partition(passages: list[Passage], by: Any, without: int) -> set[frozenset[int]]:
    """Which of the others share a source."""
    sources = (frozenset(rank for rank in source.ranks if rank != without) for source in isolate(passages, by=by))
    return {source for source in sources if source}


@given(st.lists(PASSAGES, min_size=2, max_size=7), PASSAGES, st.data())
@settings(max_examples=400, deadline=None)
def test_no_passage_changes_how_the_others_are_grouped(passages: list[Passage], forged: Passage, data: Any) -> None:
    place = data.draw(st.integers(0, len(passages) - 1))
    by = data.draw(st.sampled_from(["origin", "passage", "author", "source", lambda p: p.metadata["author"]]))
    attacked = [*passages[:place], forged, *passages[place + 1 :]]
    others = [p for i, p in enumerate(passages) if i != place]
    # The one exception, which has a warning of its own: whether anybody names an origin at all.
    if by == "origin" and not any(map(is_named, others)):
        return
    # Nor where a function has a usable key for none of the others: one that fails on all is an error.
    if callable(by) and not any(not isinstance(p.metadata.get("author", []), (list, dict)) for p in others):
        return
    isolate([Passage("met before", metadata={"author": "a", "source": "b"})], by=by)  # else it is taken for a typo
    assert _partition(passages, by, place) == _partition(attacked, by, place)


def test_an_entry_that_no_passage_ever_had_is_an_error() -> None:
    squads = [Passage("a", metadata={"squad": "x"}), Passage("b", origin="s", metadata={"squad": "y"})]
    with pytest.raises(ValueError, match="group_by='sqad': no passage has an entry of that name; there are 'squad'"):
        isolate(squads, by="sqad")
    assert len(isolate(squads, by="squad")) == 2
    assert len(isolate([Passage("c"), Passage("d")], by="squad")) == 1  # the name is known by now
