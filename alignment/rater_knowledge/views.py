"""The knowledge panel of the rating screen. It shows articles and no verdict."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from alignment.rater_knowledge.queries import (
    article_for,
    articles_matching,
    asked_with_knowledge,
    knowledge_for,
    text_below_title,
)
from common.access import found_or_404, permission_or_404
from labeling.models.people import User
from labeling.people.services.roles import rater_for
from labeling.rating.queries.labels import own_assignment


@permission_or_404("labeling.label_chats")
@require_safe
def rater_knowledge(request: HttpRequest, assignment_id: int, key: str) -> HttpResponse:
    """The articles of a criterion of the rater's own chat.

    `?q=` searches them; `?article=` returns one, with `&version=` an older text of it.
    """
    rater = rater_for(user=cast(User, request.user))
    assignment = found_or_404(own_assignment(assignment_id=assignment_id, rater_id=rater.pk))
    criterion = found_or_404(asked_with_knowledge(assignment=assignment, key=key))
    if article := request.GET.get("article"):
        version = request.GET.get("version", "")
        number = int(version[:18]) if version.isascii() and version.isdigit() else None
        row = found_or_404(article_for(criterion=criterion, key=article, number=number))
        context = {"version": row, "text": text_below_title(row)}
        return render(request, "alignment/rater_knowledge/_article.html", context)
    if words := request.GET.get("q", "").strip():
        found = articles_matching(criterion=criterion, words=words)
        return render(request, "alignment/rater_knowledge/_found.html", {"found": found})
    knowledge = knowledge_for(assignment=assignment, criterion=criterion)
    return render(request, "alignment/rater_knowledge/_panel.html", {"knowledge": knowledge})
