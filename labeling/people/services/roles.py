"""Roles as Django groups with permissions."""

from django.contrib.auth.models import Group, Permission

from labeling.models.people import Rater, Role, User

PERMISSIONS = {
    Role.RATER: ["label_chats"],
    Role.AUTHOR: ["see_judge", "edit_prompts", "read_metrics"],
    Role.LEAD: [
        "see_judge",
        "edit_prompts",
        "see_holdout",
        "manage_labeling",
        "start_runs",
        "release_prompts",
        "send_chats",
        "read_metrics",
    ],
}


def roles_ensure() -> None:
    """Create the three groups with exactly the permissions of their roles (idempotent)."""
    for role, codenames in PERMISSIONS.items():
        group, _ = Group.objects.get_or_create(name=role.value)
        group.permissions.set(
            Permission.objects.filter(codename__in=codenames, content_type__app_label="labeling")
        )


def rater_for(*, user: User) -> Rater:
    """Return the rater of an account; create it on first use, named after the user.

    If an imported rater already has that name, the new rater gets the account's number in its name.
    """
    if (own := Rater.objects.filter(user=user).first()) is not None:
        return own
    name = user.get_username()[:100]
    taken = Rater.objects.filter(name=name).exists()
    return Rater.objects.get_or_create(
        user=user, defaults={"name": f"{name} (account {user.pk})" if taken else name}
    )[0]
