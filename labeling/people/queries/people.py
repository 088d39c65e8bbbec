"""The People page: accounts, groups, invitations, and what an account leaves open."""

from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from common.models import FormDraft
from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.people import ApiToken, Invitation, Role, User
from labeling.people.queries.second_factor import Factors, factors_of, misses_one


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One account; `roles` are keys of `Role`, `labels` None for an account that never labelled.

    `lacks_factor`: whether it has to set up a second factor first.
    """

    user: User
    name: str
    roles: tuple[str, ...]
    groups: tuple[str, ...]
    labels: int | None
    factors: Factors
    lacks_factor: bool

    @property
    def role_words(self) -> str:
        """Return the roles as words."""
        words = [Role(role).label for role in self.roles]
        return ", ".join(["Superuser", *words] if self.user.is_superuser else words) or "No role"

    @property
    def waits(self) -> bool:
        """Whether its user has not set a password yet."""
        return not self.user.has_usable_password() and not self.factors.sign_on


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of raters and its number of members and jobs."""

    group: Group
    members: int
    jobs: int


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """All accounts, active and deactivated, the groups and the open invitations."""

    active: tuple[PersonRow, ...]
    inactive: tuple[PersonRow, ...]
    groups: tuple[GroupRow, ...]
    invitations: tuple[Invitation, ...]

    @property
    def counts(self) -> list[tuple[int, str]]:
        """Return the number of active accounts by role, as "1 lead", "2 authors"."""
        words = {Role.LEAD: "lead", Role.AUTHOR: "author", Role.RATER: "rater"}
        numbers = {role: sum(role in row.roles for row in self.active) for role in words}
        return [(n, words[role] if n == 1 else f"{words[role]}s") for role, n in numbers.items() if n]


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What an account has open, as numbers: told before it is deactivated."""

    chats: int
    drafts: int
    form_drafts: int
    jobs: int
    tokens: int
    labels: int


def accounts_exist() -> bool:
    """Whether anybody has an account."""
    return User.objects.exists()


def is_lead(*, user: User) -> bool:
    """Whether the user manages accounts: leads and superusers."""
    return user.is_active and (user.is_superuser or user.groups.filter(name=Role.LEAD).exists())


def people_page() -> PeoplePage:
    """Return the page in a fixed number of queries."""
    labels = _labels_given()
    users = list(_accounts().prefetch_related("groups").order_by("username"))
    factors = factors_of([user.pk for user in users])
    rows = [_row(user, labels.get(user.pk), factors[user.pk]) for user in users]
    return PeoplePage(
        active=tuple(row for row in rows if row.user.is_active),
        inactive=tuple(row for row in rows if not row.user.is_active),
        groups=tuple(_groups()),
        invitations=tuple(open_invitations().prefetch_related("mails")),
    )


def person_row(*, person: User) -> PersonRow:
    """Return one account as the page lists it, without its labels."""
    return _row(_accounts().get(pk=person.pk), None, factors_of([person.pk])[person.pk])


def _accounts() -> QuerySet[User]:
    return User.objects.annotate(second_factor_due=misses_one())  # type: ignore[no-redef]


def open_work(*, person: User) -> OpenWork:
    """Return what the account leaves open."""
    own = Q(raters__user=person) | Q(group__user=person)
    labels = Label.objects.filter(rater__user=person).aggregate(
        drafts=Count("pk", filter=Q(state=Label.State.DRAFT)),
        given=Count("pk", filter=Q(state=Label.State.SUBMITTED)),
    )
    return OpenWork(
        chats=Assignment.objects.filter(rater__user=person, state=Assignment.State.LEASED).count(),
        drafts=labels["drafts"],
        form_drafts=FormDraft.objects.filter(user=person).count(),
        jobs=LabelingJob.objects.filter(own, state=LabelingJob.State.OPEN).distinct().count(),
        tokens=ApiToken.objects.filter(user=person, revoked_at=None).count(),
        labels=labels["given"],
    )


def rater_groups() -> list[Group]:
    """Return the groups that are no roles, by name."""
    return list(Group.objects.exclude(name__in=Role.values).order_by("name"))


def open_invitations() -> QuerySet[Invitation]:
    """Return the invitations that still open something, newest first."""
    unused = Invitation.objects.filter(used_at=None, revoked_at=None, expires_at__gt=timezone.now())
    return unused.select_related("created_by").order_by("-pk")


def _labels_given() -> dict[int, int]:
    """Return the numbers of submitted labels by account."""
    given = Label.objects.filter(state=Label.State.SUBMITTED, rater__user__isnull=False)
    counted = given.order_by().values("rater__user").annotate(labels=Count("pk"))
    return {row["rater__user"]: row["labels"] for row in counted}


def _row(user: User, labels: int | None, factors: Factors) -> PersonRow:
    names = sorted(group.name for group in user.groups.all())
    return PersonRow(
        user=user,
        name=user.get_full_name() or user.get_username(),
        roles=tuple(role.value for role in Role if role.value in names),
        groups=tuple(name for name in names if name not in Role.values),
        labels=labels,
        factors=factors,
        lacks_factor=user.second_factor_due and not factors.sign_on,
    )


def _groups() -> list[GroupRow]:
    jobs = dict(
        LabelingJob.objects.exclude(group=None)
        .order_by()
        .values_list("group")
        .annotate(jobs=Count("pk"))
        .values_list("group", "jobs")
    )
    own = Group.objects.exclude(name__in=Role.values)
    members = own.annotate(members=Count("user", filter=Q(user__is_active=True))).order_by("name")
    return [GroupRow(group, group.members, jobs.get(group.pk, 0)) for group in members]
