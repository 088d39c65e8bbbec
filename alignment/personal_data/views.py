"""Export and deletion of the data about one chat or one person, for leads."""

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from alignment.archive.queries import own_chats_to_label
from alignment.personal_data.queries.page import ChatData, PersonData, chat_data, person_data
from alignment.personal_data.queries.rows import chat_rows, person_of, person_rows, personal_lines
from alignment.personal_data.services.chats import chat_erase, chat_exported
from alignment.personal_data.services.people import person_erase, person_exported
from common.access import permission_or_404
from common.downloads import lines_file
from common.problems import InputProblem
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown
from labeling.people.views.people import leads_only

LEADS = "labeling.manage_labeling"


class DeletionForm(forms.Form):
    """The name of what is deleted, typed as a confirmation."""

    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"class": "input"}))

    def __init__(self, *args: Any, asked: str, label: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked = asked
        self.fields["name"].label = label
        self.fields["name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_name(self) -> str:
        """Refuse any other name."""
        name: str = self.cleaned_data["name"]
        if name != self.asked.strip():
            raise forms.ValidationError("This is another name. Nothing was deleted.")
        return name


@permission_or_404(LEADS)
@require_http_methods(["GET", "POST"])
def chat_personal_data(request: HttpRequest, chat_id: int) -> HttpResponse:
    """Show what is stored about a chat; delete its text once the lead has typed its id."""
    chat = _chat(request, chat_id)
    data = chat_data(chat)
    form = DeletionForm(request.POST or None, asked=chat.external_id, label="Id of the chat")
    if not data.deleted and form.is_valid():
        try:
            left = chat_erase(chat=chat, by=_lead(request))
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(
                request,
                f"The text of {chat.external_id} is deleted. Labels kept: {left.labels}, "
                f"verdicts kept: {left.verdicts}.",
            )
            return redirect("alignment:chat_personal_data", chat.pk)
    context: Mapping[str, ChatData | DeletionForm] = {"data": data, "form": form}
    return render(request, "alignment/personal_data/chat.html", context)


@permission_or_404(LEADS)
@require_POST
def chat_personal_data_file(request: HttpRequest, chat_id: int) -> HttpResponseBase:
    """Download everything about a chat; the log notes it."""
    chat = _chat(request, chat_id)
    chat_exported(chat=chat, by=_lead(request))
    lines = personal_lines(chat_rows(chat), chat=chat.external_id, source=chat.source)
    return lines_file(lines, (), name=f"chat-{chat.pk}-personal-data", kind="jsonl")


@leads_only
@require_http_methods(["GET", "POST"])
def person_personal_data(request: HttpRequest, person_id: int) -> HttpResponse:
    """Show what is stored about a person; delete it once the lead has typed the user name."""
    user = get_object_or_404(User, pk=person_id)
    data = person_data(person_of(user=user))
    form = DeletionForm(request.POST or None, asked=user.username, label="User name")
    if not data.deleted and form.is_valid():
        try:
            done = person_erase(person=data.person, by=_lead(request))
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(
                request, f"Deleted. {done.labels} labels stay under the pseudonym {done.pseudonym}."
            )
            return redirect("alignment:person_personal_data", user.pk)
    context: Mapping[str, PersonData | DeletionForm] = {"data": data, "form": form}
    return render(request, "alignment/personal_data/person.html", context)


@require_POST
@leads_only
def person_personal_data_file(request: HttpRequest, person_id: int) -> HttpResponseBase:
    """Download everything about a person; the log notes it."""
    user = get_object_or_404(User, pk=person_id)
    if user != request.user and own_chats_to_label(_lead(request)):
        messages.error(request, "The export holds labels. Label your own chats first, or ask another lead.")
        return redirect("alignment:person_personal_data", user.pk)
    person = person_of(user=user)
    person_exported(person=person, by=_lead(request))
    lines = personal_lines(person_rows(person), person=user.username)
    return lines_file(lines, (), name=f"person-{user.pk}-personal-data", kind="jsonl")


def _chat(request: HttpRequest, chat_id: int) -> Chat:
    """Return a chat; 404 where the lead has still to label it: its data has the others' answers."""
    return get_object_or_404(chats_shown(user=request.user), pk=chat_id)


def _lead(request: HttpRequest) -> User:
    return cast(User, request.user)
