"""Second factors: who has to have one, who has which."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from labeling.models.people import Role, SecondFactor, User, Workspace

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


@dataclass(frozen=True, slots=True)
class Factors:
    """What an account signs in with beside its password."""

    app: bool = False
    passkeys: int = 0
    sign_on: bool = False

    @property
    def any(self) -> bool:
        """Whether there is a second factor of ours."""
        return self.app or self.passkeys > 0

    @property
    def words(self) -> list[str]:
        """Return what there is, in words."""
        words = ["Authenticator app"] if self.app else []
        if self.passkeys:
            words.append("1 passkey" if self.passkeys == 1 else f"{self.passkeys} passkeys")
        return [*words, "Single sign-on"] if self.sign_on else words


def has_to_have_one() -> Q:
    """Return the condition under which an account has to have a second factor."""
    policy = Workspace.objects.all()
    is_lead = Q(
        Exists(User.groups.through.objects.filter(user=OuterRef("pk"), group__name=Role.LEAD.value))
    ) | Q(is_superuser=True)
    return Q(Exists(policy.filter(second_factor=SecondFactor.ALL))) | (
        Q(Exists(policy.filter(second_factor=SecondFactor.LEADS))) & is_lead
    )


def misses_one() -> Combinable:
    """Return an annotation: whether an account has to set up a second factor first."""
    own = Exists(Authenticator.objects.filter(user=OuterRef("pk"), type__in=FACTORS))
    return ExpressionWrapper(has_to_have_one() & ~Q(own), output_field=BooleanField())


def is_required(*, user: User) -> bool:
    """Whether the account has to have a second factor."""
    return User.objects.filter(has_to_have_one(), pk=user.pk).exists()


def factors_of(users: Collection[int]) -> dict[int, Factors]:
    """Return what these accounts have, by id; two queries."""
    own = Authenticator.objects.filter(user__in=users, type__in=FACTORS).values_list("user_id", "type")
    counts = Counter(own)
    connected = set(SocialAccount.objects.filter(user__in=users).values_list("user_id", flat=True))
    return {
        user: Factors(
            app=counts[user, Authenticator.Type.TOTP.value] > 0,
            passkeys=counts[user, Authenticator.Type.WEBAUTHN.value],
            sign_on=user in connected,
        )
        for user in users
    }


def came_by_sign_on(request: HttpRequest) -> bool:
    """Whether this session began at the provider of single sign-on, which asks for its own second factor."""
    records = get_authentication_records(request, request.user)
    return any(record.get("method") == "socialaccount" for record in records)
