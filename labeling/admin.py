"""Accounts, roles and raters in Django's admin, for superusers; the audit log names who changed what."""

from typing import Any, cast

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse

from labeling.models.people import Rater, Role, User
from labeling.people.services.audit import acting, audit

admin.site.unregister(Group)
# NB: the admin's own form asks for no second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


@admin.register(User)
class AccountAdmin(UserAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Accounts; changes of roles and passwords are made in the name of the superuser."""

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Add or change an account."""
        with acting(cast(User, request.user)):
            return super().changeform_view(request, *args, **options)

    def user_change_password(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Set another user's password."""
        with acting(cast(User, request.user)):
            return super().user_change_password(request, *args, **options)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """Roles and other groups; changed permissions are logged."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Store the permissions, and log those before and after."""
        group = form.instance
        old = _permissions(group)
        super().save_related(request, form, formsets, change)
        new = _permissions(group)
        if old != new:
            rights = {"old": old, "new": new}
            audit(
                actor=cast(User, request.user),
                verb="role changed",
                obj=group,
                role=group.name,
                permissions=rights,
            )

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Keep the three roles: deleting one would take it from its users without a line in the log."""
        if obj is not None and obj.name in Role.values:
            return False
        return super().has_delete_permission(request, obj)


def _permissions(group: Group) -> list[str]:
    return sorted(group.permissions.values_list("codename", flat=True))


@admin.register(Rater)
class RaterAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Raters with their accounts."""

    list_display = ["name", "kind", "user"]
    list_filter = ["kind"]
    search_fields = ["name"]
