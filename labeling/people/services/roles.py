"""Roles as Django groups with permissions."""

from django.contrib.auth.models import Group, Permission

from labeling.models.people import Rater, Role, User

PERMISSIONS = {
    Role.RATER: ["label_chats"],
    Role.AUTHOR: ["see_judge", "edit_prompts"],
    Role.LEAD: [
        "see_judge",
        "edit_prompts",
        "see_holdout",
        "manage_labeling",
        "start_runs",
        "release_prompts",
    ],
}


def roles_ensure() -> None:
    """Make the three groups and set exactly the permissions of their role (idempotent)."""
    for role, codenames in PERMISSIONS.items():
        group, _ = Group.objects.get_or_create(name=role.value)
        group.permissions.set(
            Permission.objects.filter(codename__in=codenames, content_type__app_label="labeling")
        )


def rater_for(*, user: User) -> Rater:
    """The rater behind an account, made on first use under the user name.

    An imported rater of that name is somebody else until a lead says otherwise: the account's gets a number.
    """
    if (own := Rater.objects.filter(user=user).first()) is not None:
        return own
    name = user.get_username()[:100]
    taken = Rater.objects.filter(name=name).exists()
    return Rater.objects.get_or_create(
        user=user, defaults={"name": f"{name} (account {user.pk})" if taken else name}
    )[0]
