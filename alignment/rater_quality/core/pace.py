"""Shortest time in which a chat can be read and answered."""

CHARACTERS_A_SECOND = 60
MILLISECONDS_A_KEY = 200


def shortest_ms(*, characters: int, answers: int) -> float:
    """
    Return the shortest active time for skimming a chat and answering its questions, in milliseconds.

    A chat submitted faster is *rushed*. The limit is absolute: relative to their own median, a rater who
    rushes every chat would never be flagged.

    Parameters
    ----------
    characters : of the messages of customer and bot, without tool and system turns.
    answers : number of answers on the chat.

    Notes
    -----
    600 words a minute (about 60 characters a second) is skimming with a loss of comprehension: Rayner et
    al. (2016), Psychol Sci Public Interest 17:4; average silent reading is 238 (Brysbaert 2019, J Mem Lang
    109:104047). 0.2 s a key: the average skilled typist of the keystroke-level model (Card, Moran & Newell
    1980, Commun ACM 23:396). Time for thinking is not added.

    Examples
    --------
    >>> shortest_ms(characters=1200, answers=10)
    22000.0
    """
    return 1000 * characters / CHARACTERS_A_SECOND + MILLISECONDS_A_KEY * answers
