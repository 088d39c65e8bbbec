"""Words of chats in any language, and what a query may hold."""

import pytest

from common.search.registry import Query
from labeling.models.chats import Chat, ChatWords
from tests.factories.rows import make_chat

pytestmark = pytest.mark.django_db

TEXTS = {
    "german": "Wo bleibt meine Rückerstattung? Größe 42",
    "danish": "Jeg vil gerne have smørrebrød",
    "chinese": "我想申请退款，谢谢",
    "hindi": "मुझे हिन्दी में मदद चाहिए",
    "english": 'He said "refund" for order A-1007',
    "emoji": "Thanks 👍 café",
}


def found(text: str, *, titles: bool = True) -> set[str]:
    chats = Chat.objects.with_words(Query.of(text).words, titles=titles)
    return set(chats.values_list("external_id", flat=True))


@pytest.fixture
def chats() -> None:
    for name, text in TEXTS.items():
        make_chat(name, messages=[("user", text)])


@pytest.mark.usefixtures("chats")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ruckerst", "german"),  # without accents, the beginning of a word
        ("RÜCKERSTATTUNG grosse", "german"),
        ("sm", "danish"),
        ("smørre", "danish"),
        ("退款", "chinese"),
        ("请退款", "chinese"),
        ("退", "chinese"),
        ("हिन्दी", "hindi"),
        ("a-1007", "english"),
        ('"refund"', "english"),
        ("cafe 👍", "emoji"),
    ],
)
def test_a_word_or_its_beginning_finds_the_chat(text: str, name: str) -> None:
    assert found(text) == {name}


ODD = (
    *("", "   ", "'", '"', '"""', "*", "AND", "NOT refund OR", "refund*)", "a:b", "^", "\\", "%", "_", "("),
    *("|&!", "refund' --", "\x00", "{", "NEAR(a b)", "🙂", "x" * 5000, "a " * 500, "<->", ":*"),
)


@pytest.mark.usefixtures("chats")
@pytest.mark.parametrize("text", ODD)
def test_no_sign_is_an_error(text: str) -> None:
    found(text)


def test_each_word_must_occur() -> None:
    make_chat("both", messages=[("user", "late refund")])
    make_chat("one", messages=[("user", "late parcel")])
    assert found("late ref") == {"both"}
    assert found("ref ref late late") == {"both"}


def test_words_follow_every_way_that_chats_are_written() -> None:
    kept = make_chat("kept", messages=[("user", "banana")])
    first, second = (make_chat(name, messages=[("user", "cherry")]) for name in ("first", "second"))
    assert found("cherry") == {"first", "second"}
    first.metadata = {"title": "Apricot"}
    Chat.objects.bulk_update([first], ["metadata"])
    assert found("apric") == {"first"}
    assert found("apric", titles=False) == set()  # raters do not see titles
    first.metadata = {"title": "Plum"}
    first.save()
    assert (found("apric"), found("plum")) == (set(), {"first"})
    copies = [Chat(**{**_fields(kept), "external_id": f"copy-{n}"}) for n in range(3)]
    Chat.objects.bulk_create(copies)
    assert found("banana copy") == {"copy-0", "copy-1", "copy-2"}
    Chat.objects.filter(external_id__startswith="copy").delete()
    second.delete()
    assert (found("banana"), found("cherry")) == ({"kept"}, {"first"})
    assert ChatWords.objects.count() == 2


def _fields(chat: Chat) -> dict[str, object]:
    names = ("topic_id", "messages", "content_hash", "message_count", "char_count", "metadata")
    return {name: getattr(chat, name) for name in names}
