"""The analyser: terms of texts and groups of queries."""

import pytest

from apps.graph.analyser import ANALYSER, Analyser, SimpleLexemes, detect, installed
from apps.graph.analyser.tokens import forms_of

SIMPLY = Analyser(SimpleLexemes())


def terms(text, language="simple", analyser=SIMPLY):
    return dict(analyser.documents([(text, language)])[0].terms)


@pytest.mark.parametrize(
    ("run", "code", "words"),
    [
        ("getUserName", ("c:getusername",), ("get", "user", "name")),
        ("user_name", ("c:user_name",), ("user", "name")),
        ("HTMLParser", ("c:htmlparser",), ("html", "parser")),
        ("src/app/views.py", ("c:src/app/views.py",), ("src", "app", "views", "py")),
        ("utf8", ("c:utf8",), ("utf",)),
        ("std::vector", ("c:std::vector",), ("std", "vector")),
        ("__init__", (), ("init",)),
        ("plain", (), ("plain",)),
        ("x", (), ()),
    ],
)
def test_code_tokens_come_whole_and_by_part(run, code, words) -> None:
    forms = forms_of(run)
    assert (forms.code, forms.words) == (code, words)


def test_scripts_without_spaces_become_bigrams() -> None:
    assert forms_of("東京タワー").bigrams == ("j:東京", "j:京タ", "j:タワ", "j:ワー", "j:タワー")
    assert forms_of("猫").bigrams == ("j:猫",)
    assert "j:ภา" in forms_of("ภาษาไทย").bigrams
    mixed = forms_of("猫cat")
    assert mixed.bigrams == ("j:猫",)
    assert mixed.words == ("cat",)


def test_compatibility_forms_are_one() -> None:
    assert terms("ﬁle ＡＢＣ ｶﾀｶﾅ") == terms("file ABC カタカナ")


def test_words_of_indic_scripts_keep_their_vowel_signs() -> None:
    assert terms("नमस्ते दुनिया") == {"w:नमस्ते": 1, "w:दुनिया": 1}


def test_diacritics_fold() -> None:
    assert terms("Zürich Škoda") == {"w:zurich": 1, "w:skoda": 1}


def test_length_is_the_sum_of_counts() -> None:
    analysed = SIMPLY.documents([("one two two user_name", "simple")])[0]
    assert analysed.terms["w:two"] == 2
    assert analysed.length == sum(analysed.terms.values()) == 6


def test_equal_texts_give_equal_terms_whatever_was_analysed_before() -> None:
    small = Analyser(SimpleLexemes(), limit=4)
    texts = [("alpha beta gamma", None), ("delta epsilon beta", None), ("alpha beta gamma", None)]
    alone = [Analyser(SimpleLexemes()).documents([one])[0] for one in texts]
    assert small.documents(texts[:1]) + small.documents(texts[1:]) == alone


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the meaning of this?", "english"),
        ("Das ist nicht der Fall, und es wird auch so bleiben.", "german"),
        ("Esto es lo que quiero para mi casa", "spanish"),
        ("Saya tidak akan pergi ke sana karena ini", "indonesian"),
        ("Где находится библиотека?", "russian"),
        ("東京は日本の首都です", "simple"),
        ("zxcv qwer", "simple"),
        ("", "simple"),
    ],
)
def test_language_by_script_and_function_words(text, language) -> None:
    assert detect(text) == language


def test_a_query_keeps_each_group_once_and_bounds_its_runs() -> None:
    groups, runs = SIMPLY.query("cat cat dog " + " ".join(f"word{n}x" for n in range(900)), ["simple"])
    assert runs == 512
    assert groups[0].forms == ("w:cat", "c:cat")
    assert len(groups) == len(set(groups))


@pytest.mark.parametrize("query", ["", "   ", "?!… —", "\u200b", "a"])
def test_a_query_without_words_has_no_group(query) -> None:
    assert SIMPLY.query(query, [])[0] == []


@pytest.mark.django_db
def test_stems_come_from_the_configuration() -> None:
    english = terms("running experiments connected", "english", ANALYSER)
    assert english == {"w:run": 1, "w:experi": 1, "w:connect": 1}
    german = terms("Häuser laufen", "german", ANALYSER)
    assert german == {"w:haus": 1, "w:lauf": 1}
    assert {"english", "german", "simple"} <= installed()


@pytest.mark.django_db
def test_stop_words_make_no_group_and_other_languages_keep_their_word() -> None:
    assert ANALYSER.query("the of and", ["english"])[0] == []
    (group,) = ANALYSER.query("die", ["english", "german"])[0]
    assert "w:die" in group.forms


@pytest.mark.django_db
def test_an_unknown_language_is_simple() -> None:
    analysed = ANALYSER.documents([("running", "klingon")], configurations=installed())[0]
    assert (analysed.language, dict(analysed.terms)) == ("simple", {"w:running": 1})
