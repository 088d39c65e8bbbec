from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alignment', '0009_report_subject'),
    ]

    operations = [
        migrations.AlterField(
            model_name='report',
            name='kind',
            field=models.CharField(choices=[('report', 'Report'), ('criterion', 'Criterion'), ('baselines', 'Baselines'), ('league', 'League'), ('measured', 'Measured'), ('covered', 'Covered'), ('held_out', 'Held Out'), ('cells', 'Cells')], default='report', max_length=10),
        ),
    ]
