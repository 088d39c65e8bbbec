"""Each prompt version keeps which text of its criterion it was written for."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import OuterRef, Subquery


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the text that was the newest one when the prompt was saved."""
    texts = apps.get_model("labeling", "CriterionVersion").objects.filter(criterion=OuterRef("criterion"))
    # A first prompt can be as old as the first text, to the microsecond or a little before.
    then = texts.filter(created_at__lte=OuterRef("created_at")).order_by("-number").values("pk")[:1]
    first = texts.order_by("number").values("pk")[:1]
    prompts = apps.get_model("evaluation", "PromptVersion")._base_manager
    prompts.update(written_for=Subquery(then))
    prompts.filter(written_for=None).update(written_for=Subquery(first))


class Migration(migrations.Migration):
    """Add the text that a prompt was written for."""

    dependencies = [
        ("labeling", "0008_chat_cluster"),
        ("evaluation", "0011_endpoint_models"),
    ]

    operations = [
        migrations.AddField(
            model_name="promptversion",
            name="written_for",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="labeling.criterionversion",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
