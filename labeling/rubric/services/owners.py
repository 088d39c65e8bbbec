"""Who looks after a criterion."""

from django.db import transaction

from common.inbox.services import Kind, inbox_add
from common.problems import InputProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import accounts_with
from labeling.people.services.audit import audit


@transaction.atomic
def criterion_assign(*, criterion: Criterion, owner: str, by: User) -> Criterion:
    """Store who looks after a criterion, '' for nobody, and tell them. Raises InputProblem."""
    user = accounts_with("edit_prompts").filter(username=owner).first() if owner else None
    if owner and user is None:
        raise InputProblem("the owner must be an active user who may edit prompts")
    row = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    if row.owner_id == (user.pk if user else None):
        return row
    row.owner = user
    row.save(update_fields=["owner"])
    audit(actor=by, verb="criterion assigned", obj=row, owner=owner)
    if user is not None:
        inbox_add(users=[user], kind=Kind.ASSIGNED, subject=f"criterion:{row.pk}", by=by)
    return row
