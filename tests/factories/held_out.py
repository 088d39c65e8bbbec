"""A world in which everything about a held-out chat bears a word of its own."""

from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, UnitCall, Verdict
from labeling.models.chats import Chat, ChatSetMember, Topic
from labeling.models.labels import Adjudication, Label, LabelRevision, RaterNote
from labeling.people.services.audit import audit
from tests.world import World, count_days, make_world

SECRET = "HELD-OUT-SECRET"  # whatever is said in or of the chat
NAME = "HELD-OUT-NAME"  # its id: who asks for it by this name hears it again


def build_world() -> World:
    """The world in which everything about the held-out chat bears a word of its own."""
    world = make_world()
    chat = Chat.objects.get(pk=world.args["holdout_chat"])
    _mark_chat(chat)
    _mark_people(world, chat)
    _mark_judge(world, chat)
    count_days()
    return world


def _mark_chat(chat: Chat) -> None:
    chat.external_id = NAME
    chat.topic = Topic.objects.create(key=SECRET.lower(), name=SECRET)
    chat.messages = [{**message, "content": f"{SECRET} {message['content']}"} for message in chat.messages]
    chat.metadata = {"title": SECRET}
    chat.experiment = chat.variant = SECRET
    chat.save()
    ChatSetMember.objects.filter(chat=chat).update(stratum=SECRET)


def _mark_people(world: World, chat: Chat) -> None:
    said = {"rationale": SECRET, "evidence": [{"n": 2, "start": 0, "end": 5, "quote": SECRET}]}
    Label.objects.filter(chat=chat).update(**said)
    LabelRevision.objects.filter(label__chat=chat).update(**said)
    RaterNote.objects.filter(chat=chat).update(text=SECRET)
    Adjudication.objects.filter(chat=chat).update(reason=SECRET)
    audit(actor=world.users["lead"], verb="label adjudicated", obj=chat, reason=SECRET)


def _mark_judge(world: World, chat: Chat) -> None:
    """Its verdicts and calls; a prompt that was written when it was no holdout has it as an example."""
    Verdict.objects.filter(chat=chat).update(rationale=SECRET, explanation=SECRET)
    _mark_trouble(chat)
    units = UnitCall.objects.filter(unit__chat=chat)
    ModelCall.objects.filter(pk__in=units.values("call")).update(reply=SECRET)
    for version in PromptVersion.objects.filter(criterion=world.desk.criteria[0]):
        FewShotExample.objects.create(
            prompt_version=version,
            chat=chat,
            position=1,
            first_turn=1,
            last_turn=2,
            value=True,
            rationale=SECRET,
        )


def _mark_trouble(chat: Chat) -> None:
    """The endpoint repeats what it was sent when it refuses a request."""
    said = f"bad_request: HTTP 400: {SECRET}"
    Unit.objects.filter(chat=chat).update(error=said, state="failed")
    Run.objects.filter(run_chats__chat=chat).update(error=said)
    calls = ModelCall.objects.filter(pk__in=UnitCall.objects.filter(unit__chat=chat).values("call"))
    Attempt.objects.filter(call__in=calls).update(error=said)
    calls.update(error=said)
