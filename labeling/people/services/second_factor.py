"""Second factors: encrypted secrets, a log of each change, and a lead's help for those who lost theirs."""

from base64 import urlsafe_b64encode
from typing import Any

from allauth.mfa import signals
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.utils.crypto import salted_hmac

from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.queries.second_factor import FACTORS, is_required
from labeling.people.services.audit import audit
from labeling.people.services.mail import notice_send
from labeling.people.services.rights import check_manages
from labeling.people.services.sessions import sessions_end
from labeling.people.services.sign_in_log import sign_in_failed

NAMES = {"totp": "authenticator app", "webauthn": "passkey", "recovery_codes": "recovery codes"}
NOTICES = {
    "added": "A second factor was added: {}.",
    "removed": "A second factor was removed: {}.",
    "renewed": "New {} were made. The old ones no longer work.",
}
LAST = "Your workspace requires a second factor, and this is your only one. Add another one first."


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """What the workbench does otherwise than allauth."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code or passkey is not right. Try again.",
        "cannot_delete_authenticator": LAST,
    }

    def encrypt(self, text: str) -> str:
        """Return a secret as the database stores it."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return a stored secret."""
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def get_totp_issuer(self) -> str:
        """Return the name that authenticator apps show."""
        return "LACE workbench"

    def generate_authenticator_name(self, user: User, type: str) -> str:
        """Return the name of a passkey that its user gave none."""
        return f"Passkey {Authenticator.objects.filter(user=user, type=type).count() + 1}"

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Whether the account may do without this one."""
        others = Authenticator.objects.filter(user=authenticator.user, type__in=FACTORS)
        return others.exclude(pk=authenticator.pk).exists() or not is_required(user=authenticator.user)


def _cipher() -> MultiFernet:
    """Return the cipher of secrets: its key follows from SECRET_KEY, which lies apart from the database."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    macs = [
        salted_hmac("labeling.people.second_factor", "", secret=key, algorithm="sha256").digest()
        for key in keys
    ]
    return MultiFernet([Fernet(urlsafe_b64encode(mac)) for mac in macs])


@transaction.atomic
def second_factor_reset(*, person: User, by: User | None) -> None:
    """
    Remove all second factors of an account and end its sessions. `by`: None on the command line.

    Raises InputProblem.
    """
    if by is not None:
        check_manages(person=person, by=by)
        if by.pk == person.pk:
            raise InputProblem("Change your own second factor on your account page.")
    own = Authenticator.objects.filter(user=person)
    factors = sorted(NAMES[one.type] for one in own.filter(type__in=FACTORS))
    if not factors:
        raise InputProblem("This account has no second factor.")
    own.delete()
    audit(actor=by, verb="second-factor reset", obj=person, user=person.get_username(), factors=factors)
    sessions_end(user=person)
    whose = "A lead" if by else "Whoever runs the server"
    notice_send(user=person, what=f"{whose} removed your second factor ({', '.join(factors)}).")


@transaction.atomic
def passkey_rename(*, passkey: Authenticator, name: str) -> None:
    """Give a passkey another name."""
    wrapper = passkey.wrap()
    old, name = wrapper.name, name.strip()
    if name == old:
        return
    wrapper.name = name
    passkey.save(update_fields=["data"])
    user = passkey.user
    names = {"old": old, "new": name}
    audit(actor=user, verb="second-factor renamed", obj=user, user=user.get_username(), passkey=names)


def watch() -> None:
    """Log what allauth's pages change, say it on the next page, and tell the user by e-mail."""
    for signal, verb in (
        (signals.authenticator_added, "added"),
        (signals.authenticator_removed, "removed"),
        (signals.authenticator_reset, "renewed"),
    ):
        signal.connect(_receiver(verb), weak=False, dispatch_uid=f"second factor {verb}")
    signals.authentication_failed.connect(_failed, dispatch_uid="second factor failed")
    signals.authenticator_used.connect(_used, dispatch_uid="second factor used")


def _receiver(verb: str) -> Any:
    def log(*, request: Any, user: User, authenticator: Authenticator, **_: Any) -> None:
        name = NAMES[authenticator.type]
        audit(
            actor=user,
            verb=f"second-factor {verb}",
            obj=user,
            user=user.get_username(),
            factor=name,
        )
        # NB: codes that come or go with a factor need no e-mail of their own.
        if verb == "renewed" or authenticator.type != Authenticator.Type.RECOVERY_CODES:
            notice_send(user=user, what=NOTICES[verb].format(name))
        messages.success(request, f"{name.capitalize()} {verb}.")

    return log


def _used(*, user: User, authenticator: Authenticator, **_: Any) -> None:
    """Log the use of a recovery code: whoever did not use it has lost the codes."""
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        # NB: allauth marks the code as used on a row of its own.
        stored = Authenticator.objects.get(pk=authenticator.pk)
        left = len(stored.wrap().get_unused_codes())
        audit(actor=user, verb="second-factor recovered", obj=user, user=user.get_username(), codes_left=left)


def _failed(*, request: Any, user: User, **_: Any) -> None:
    """Log a wrong code, which somebody entered who knows the password."""
    sign_in_failed(request=request, login=user.get_username(), because="wrong code")
