from django.db import migrations
from django.db.models import Max

RETIRED = ("class_minimum", "single_many", "single_margin_many")
START, NEW_START = (0.10, 0.05), 0.08
REASON = (
    "Carried over to the gate's new rules: one tolerated loss at every number of chats, the guard on one human"
    " answer at every number, floor and gap only where the candidate is worse."
)


def carry_over(apps, schema_editor):
    """Give the policy in force, and those of open tests, a version under the new rules."""
    Policy = apps.get_model("alignment", "Policy")
    RegressionTest = apps.get_model("alignment", "RegressionTest")
    in_force = Policy.objects.filter(kind="gate", created_by__isnull=False).order_by("-id").first()
    open_tests = RegressionTest.objects.filter(state__in=("running", "confirming"))
    used = Policy.objects.filter(pk__in=open_tests.values("policy"))
    # The newest version with an author is in force, so it comes last.
    rows = [row for row in used.order_by("id") if row != in_force] + ([in_force] if in_force else [])
    for row in rows:
        if not set(RETIRED) & set(row.parameters):
            continue
        successor = _successor(Policy, row, author=row.created_by if row == in_force else None)
        open_tests.filter(policy=row).update(policy=successor)


def _successor(Policy, row, *, author):
    last = Policy.objects.filter(kind="gate", name=row.name).aggregate(last=Max("version"))["last"]
    kept = {name: value for name, value in row.parameters.items() if name not in RETIRED}
    margins = row.parameters["single_margin"], row.parameters["single_margin_many"]
    margin = NEW_START if margins == START else min(margins)
    return Policy.objects.create(
        kind="gate",
        name=row.name,
        version=last + 1,
        parameters=kept | {"single_margin": margin, "version": last + 1},
        reason=f"{REASON} {row.reason}".strip(),
        created_by=author,
    )


class Migration(migrations.Migration):

    dependencies = [
        ('alignment', '0014_report_plan'),
    ]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
    ]
