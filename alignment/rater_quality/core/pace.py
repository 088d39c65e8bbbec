"""When an answered chat was faster than anyone can read it."""

CHARACTERS_A_SECOND = 60
MILLISECONDS_A_KEY = 200


def shortest_ms(*, characters: int, answers: int) -> float:
    """
    The least active time in which a chat can be skimmed and its questions answered.

    A chat answered in less is called rushed. The rule is absolute on purpose: against their own median,
    somebody who rushes everything would never rush.

    Parameters
    ----------
    characters : of the messages of customer and bot; tool and system turns are folded and may be left out.
    answers : given on the chat.

    Notes
    -----
    600 words a minute (about 60 characters a second), at which people skim and lose comprehension: Rayner et
    al. (2016), Psychol Sci Public Interest 17:4; average silent reading is 238 (Brysbaert 2019, J Mem Lang
    109:104047). 0.2 s a key: the average skilled typist of the keystroke-level model (Card, Moran & Newell
    1980, Commun ACM 23:396). Nothing is added for thinking.

    Examples
    --------
    >>> shortest_ms(characters=1200, answers=10)
    22000.0
    """
    return 1000 * characters / CHARACTERS_A_SECOND + MILLISECONDS_A_KEY * answers
