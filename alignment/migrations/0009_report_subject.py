from django.db import migrations, models


def forget_documents(apps, schema_editor):
    """Documents without an address are computed anew, under a subject, when they are next asked for."""
    apps.get_model("alignment", "Report").objects.exclude(kind="report").delete()


class Migration(migrations.Migration):

    dependencies = [
        ('alignment', '0008_misalignment_changes'),
    ]

    operations = [
        migrations.AlterField(
            model_name='report',
            name='kind',
            field=models.CharField(choices=[('report', 'Report'), ('criterion', 'Criterion'), ('baselines', 'Baselines'), ('league', 'League'), ('measured', 'Measured'), ('covered', 'Covered'), ('held_out', 'Held Out')], default='report', max_length=10),
        ),
        migrations.AddField(
            model_name='report',
            name='subject',
            field=models.CharField(blank=True, default='', max_length=64),
        ),
        migrations.AddIndex(
            model_name='report',
            index=models.Index(fields=['subject'], name='report_subject'),
        ),
        # Last: PostgreSQL alters no table from which rows have just been deleted.
        migrations.RunPython(forget_documents, migrations.RunPython.noop, elidable=True),
    ]
