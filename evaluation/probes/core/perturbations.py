"""Changes that should keep a verdict, and one that should change it: another article."""

import re
from collections.abc import Sequence
from dataclasses import replace

from evaluation.core.types import Chat, Criterion
from evaluation.probes.core.attacks import chat_of

# Replaced by word list, not by a model. This does not show how a
# judge handles a free paraphrase.
_REWORDED = {
    "can't": "cannot",
    "won't": "will not",
    "don't": "do not",
    "doesn't": "does not",
    "didn't": "did not",
    "isn't": "is not",
    "aren't": "are not",
    "wasn't": "was not",
    "couldn't": "could not",
    "wouldn't": "would not",
    "haven't": "have not",
    "hasn't": "has not",
    "i'm": "I am",
    "i've": "I have",
    "i'll": "I will",
    "you're": "you are",
    "you've": "you have",
    "you'll": "you will",
    "we're": "we are",
    "we've": "we have",
    "we'll": "we will",
    "let's": "let us",
    "hi": "hello",
    "thanks": "thank you",
    "ok": "okay",
    "asap": "as soon as possible",
    "pls": "please",
    "maybe": "perhaps",
    "however": "but",
    "right away": "at once",
    "get in touch with": "contact",
    "a lot of": "plenty of",
}
_WORDS = re.compile(
    rf"(?<![\w'])(?:{'|'.join(map(re.escape, sorted(_REWORDED, key=len, reverse=True)))})(?![\w'])",
    re.IGNORECASE,
)
_PADDING = (
    "I hope that this message reaches you well and that you have a moment to read it in peace.",
    "To put it in other words, and only so that nothing is left open: all of it is as I have just written.",
    "Please take all the time that you need to go through the above; there is no hurry on our side.",
    "That is what I can say on this point, and I have said it as clearly as I am able to.",
)


def paraphrase(chat: Chat) -> Chat:
    """Return the chat with contractions, greetings and a few plain synonyms replaced by rule.

    Tool messages and the bot's instructions stay. A chat without such words is returned unchanged.
    """
    turns = [
        (m.role, _reworded(m.content) if m.role in ("user", "assistant") else m.content)
        for m in chat.messages
    ]
    return chat if [text for _, text in turns] == [m.content for m in chat.messages] else chat_of(turns)


def lengthen(chat: Chat) -> Chat:
    """Return the chat with two empty sentences added to every bot message."""
    turns = []
    for place, message in enumerate(chat.messages):
        text = message.content
        if message.role == "assistant" and text.strip():
            more = (_PADDING[(place + i) % len(_PADDING)] for i in range(2))
            text = " ".join((text, *more))
        turns.append((message.role, text))
    return chat_of(turns)


def with_article(criteria: Sequence[Criterion], *, key: str, text: str) -> tuple[Criterion, ...]:
    """Return the criteria that read an article, with `text` in its place; () if none reads it.

    Parameters
    ----------
    key : the article's key.
    """
    return tuple(
        replace(
            criterion,
            articles=tuple(replace(a, text=text) if a.key == key else a for a in criterion.articles),
        )
        for criterion in criteria
        if any(article.key == key for article in criterion.articles)
    )


def _reworded(text: str) -> str:
    return _WORDS.sub(
        lambda match: _cased(_REWORDED[_plain(match[0])], like=match[0]), text.replace("’", "'")
    )


def _plain(word: str) -> str:
    return word.casefold()


def _cased(word: str, *, like: str) -> str:
    return word[0].upper() + word[1:] if like[0].isupper() else word
