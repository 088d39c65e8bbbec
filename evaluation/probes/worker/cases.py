"""The cases of a probe: every chat unchanged, repeated, harmlessly changed, and under attack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.core.types import Chat, Criterion, Setup
from evaluation.engines.core.injection_detection import chat_flags
from evaluation.probes.core import Attack, Perturbation, lengthen, paraphrase, with_article, with_attack
from evaluation.prompts.core.examples import without_own_example
from evaluation.runs.worker.process_units import Group


@dataclass(frozen=True, slots=True)
class Suite:
    """Which probes to run.

    `repeats` is how often the same question is repeated, to measure the judge's own noise. `altered` is an
    article's key and the text in its place.
    """

    attacks: tuple[Attack, ...]
    repeats: int = 1
    harmless: bool = True
    altered: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One chat and group to judge. `probe` None is the unchanged chat; `replicate` counts repeated questions.

    `detected`: the changed chat has flags that the original lacks.
    """

    chat_id: str
    group: int
    chat: Chat
    criteria: tuple[Criterion, ...]
    setup: Setup
    probe: Attack | Perturbation | None = None
    replicate: int = 0
    detected: bool = False


def probe_cases(*, chats: Mapping[str, Chat], groups: Mapping[int, Group], suite: Suite) -> Iterator[Case]:
    """Yield every case, chat by chat, the unchanged one first. `chats` are by external id."""
    for chat_id, chat in chats.items():
        before = set(chat_flags(chat))
        for number, group in groups.items():
            # The hash of a changed chat would no longer match its example.
            criteria = without_own_example(group.criteria, chat=chat)
            own = Case(chat_id, number, chat, criteria, group.setup)
            yield own
            for again in range(1, suite.repeats + 1):
                yield replace(own, probe="repeat", replicate=again)
            yield from _perturbed(own, suite)
            keys = [criterion.key for criterion in group.criteria]
            for attack in suite.attacks:
                hostile = with_attack(chat, attack=attack, keys=keys)
                detected = bool(set(chat_flags(hostile)) - before)
                yield replace(own, chat=hostile, probe=attack, detected=detected)


def _perturbed(own: Case, suite: Suite) -> Iterator[Case]:
    """Yield the harmless changes that change anything, and the altered article if it is read."""
    if suite.harmless:
        for name, changed in (("paraphrase", paraphrase(own.chat)), ("wordier", lengthen(own.chat))):
            if changed.messages != own.chat.messages:
                yield replace(own, chat=changed, probe=_plain(name))
    if suite.altered:
        key, text = suite.altered
        criteria = with_article(own.criteria, key=key, text=text)
        if criteria:
            yield replace(own, criteria=criteria, probe="altered")


def _plain(name: str) -> Perturbation:
    return "paraphrase" if name == "paraphrase" else "wordier"


def articles_read(groups: Sequence[Group]) -> set[str]:
    """Return the keys of all articles that the judge may read."""
    return {a.key for group in groups for criterion in group.criteria for a in criterion.articles}
