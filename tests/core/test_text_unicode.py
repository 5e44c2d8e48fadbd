"""What a text may hold, and positions in UTF-16 units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.text import (
    BadText,
    Utf16Text,
    check_text,
    excerpt,
    nfc,
    text_fault,
    trim,
    utf16_cut,
    utf16_len,
    without_ignorable,
)
from apps.core.text.unicode import TRIMMED

texts = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("a😀𐍈é")))


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\x00b", "NUL"),
        ("a\ud800b", "lone surrogate"),
        ("\udfff", "lone surrogate"),
        ("\ud83d\ude00", "lone"),
    ],
)
def test_nul_and_lone_surrogates_are_refused_without_echo(text, reason):
    with pytest.raises(BadText) as refused:
        check_text(text)
    assert reason in str(refused.value)
    assert text not in str(refused.value)
    assert text_fault(text) == str(refused.value)


@given(texts)
def test_everything_else_is_held(text):
    assert ("\x00" in text) == (text_fault(text) is not None)


def test_nfc_composes_and_keeps_compatibility_forms():
    assert nfc("e\u0301") == "é"
    assert nfc("ﬁ") == "ﬁ"


def test_trim_takes_the_25_characters_and_no_others():
    assert len(TRIMMED) == len(set(TRIMMED)) == 25
    assert trim(TRIMMED + "a b" + TRIMMED) == "a b"
    assert trim("\ufeffa\ufeff") == "a"
    for kept in "\u0085\u001c\u001d\u001e\u001f\u200b":
        assert trim(kept) == kept


def test_ignorable_characters_go():
    assert without_ignorable("p\u200ba\u00ads\u2060s\ufe0f\U000e0041\u200d\ufeff") == "pass"


@given(texts)
def test_length_counts_units(text):
    assert utf16_len(text) == units(text) == Utf16Text(text).length


@given(texts, st.integers(-1, 30))
def test_a_cut_is_the_longest_beginning_that_splits_no_pair(text, limit):
    cut = utf16_cut(text, limit)
    assert text.startswith(cut)
    assert units(cut) <= max(limit, 0)
    if cut != text:
        assert units(text[: len(cut) + 1]) > limit


def test_a_cut_leaves_a_pair_out_that_does_not_fit():
    assert utf16_cut("a😀b", 2) == "a"
    assert utf16_cut("a😀b", 3) == "a😀"


def test_an_excerpt_is_the_text_or_ends_in_an_ellipsis():
    assert excerpt("abc", 3) == "abc"
    assert excerpt("abcd", 3) == "abc…"
    assert excerpt("😀", 1) == "…"
    assert excerpt("", 0) == ""


def test_spans_of_a_text_with_an_emoji():
    text = Utf16Text("a😀b")
    assert text.length == 4
    slices = {(0, 1): "a", (1, 3): "😀", (3, 4): "b", (0, 4): "a😀b", (4, 4): ""}
    assert {span: text.slice(*span) for span in slices} == slices
    for span in ((1, 2), (2, 3), (0, 5), (-1, 1), (3, 1)):
        with pytest.raises(IndexError):
            text.slice(*span)
    assert [offset for offset in range(-1, 6) if text.is_boundary(offset)] == [0, 1, 3, 4]


@given(texts)
def test_offsets_and_indices_are_inverse(text):
    measured = Utf16Text(text)
    offsets = [measured.offset(index) for index in range(len(text) + 1)]
    assert offsets == [units(text[:index]) for index in range(len(text) + 1)]
    assert [measured.index(offset) for offset in offsets] == list(range(len(text) + 1))
    assert [o for o in range(measured.length + 1) if measured.is_boundary(o)] == offsets
    for offset in range(measured.length + 1):
        assert measured.floor(offset) == max(o for o in offsets if o <= offset)
