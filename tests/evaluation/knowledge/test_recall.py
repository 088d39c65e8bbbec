"""Customers' own words find the passage that answers them: 60 paraphrased questions to a shop's articles."""

import pytest

from bench._shop import places, recall, shop_articles, shop_needs
from evaluation.core.types import Article, Chat, Criterion, Message
from evaluation.knowledge.core.articles import passages_in
from evaluation.knowledge.core.retrieval import retrieve
from evaluation.knowledge.core.words import language_of, stems_of, synonyms_of


def fact(*articles: Article) -> Criterion:
    return Criterion("fact", "Is it so?", "", "context", False, True, "", articles)


def found(said: str, *articles: Article) -> list[str]:
    chat = Chat("h", (Message(1, "user", said),))
    passages = retrieve(chat=chat, criteria=[fact(*articles)], tokens=1000)["fact"]
    return [passage.article.key for passage in passages]


def test_three_of_four_paraphrased_questions_find_their_passage_among_the_first_five() -> None:
    places_found = places(shop_needs(), shop_articles())
    assert recall(places_found, at=5) >= 0.75
    assert recall(places_found, at=10) >= 0.8


def test_the_planted_set_is_as_large_and_as_mixed_as_it_says() -> None:
    articles, needs = shop_articles(), shop_needs()
    assert len(articles) >= 25
    assert sum(len(passages_in(article.text)) for article in articles) >= 60
    assert len(needs) == len({need.question for need in needs}) == 60
    assert {language_of(article.text) for article in articles} == {"english", "german", "french"}
    headings = {
        (article.title, line.removeprefix("## "))
        for article in articles
        for line in article.text.splitlines()
    }
    assert {(need.article, need.section) for need in needs} <= headings


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is my parcel? It was sent on Monday.", "english"),
        ("Wo ist mein Paket? Es wurde am Montag verschickt.", "german"),
        ("Où est mon colis ? Il a été envoyé lundi.", "french"),
        ("¿Dónde está mi paquete? Lo enviaron el lunes.", "spanish"),
        ("Waar is mijn pakket? Het is maandag verstuurd.", "dutch"),
        ("Dov'è il mio pacco? È stato spedito lunedì.", "italian"),
        ("Refunds", "english"),
        ("", "english"),
    ],
)
def test_function_words_tell_the_language_and_english_is_the_default(text: str, language: str) -> None:
    assert language_of(text) == language


def test_inflected_words_find_each_other_in_the_articles_language() -> None:
    german = Article("de", 1, "Versand", "Die Lieferungen werden von dem Fahrer an der Tür übergeben.")
    english = Article("en", 1, "Tips", "A tip can be lowered until a day after the delivery.")
    assert found("Übergibt der Fahrer die Lieferung?", german, english) == ["de"]
    assert found("Two deliveries, two tips", german, english) == ["en"]


def test_a_synonym_finds_a_passage_but_counts_less_than_the_word_itself() -> None:
    parcel = Article("parcel", 1, "A", "The parcel is at the depot.")
    package = Article("package", 1, "B", "The package is at the depot.")
    assert found("parcel", package) == ["package"]
    assert found("parcel", package, parcel) == ["parcel", "package"]


def test_synonyms_are_words_of_a_known_language_that_stay_apart_when_stemmed() -> None:
    mates = synonyms_of("english")
    assert "packag" in mates["parcel"]
    assert all(stem not in others for stem, others in mates.items())
    assert synonyms_of("danish") == {}
    assert stems_of("Die Lieferungen", "german") == stems_of("Lieferung", "german")
