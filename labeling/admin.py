"""Accounts and raters in Django's admin, for superusers."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from labeling.models.people import Rater, User

admin.site.register(User, UserAdmin)


@admin.register(Rater)
class RaterAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Raters with their accounts."""

    list_display = ["name", "kind", "user"]
    list_filter = ["kind"]
    search_fields = ["name"]
