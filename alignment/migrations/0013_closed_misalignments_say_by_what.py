from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alignment', '0012_misalignment_closed_by'),
    ]

    operations = [
        migrations.AddConstraint(
            model_name='misalignment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'closed'), models.Q(('closed_by', ''), _negated=True)), models.Q(models.Q(('state', 'closed'), _negated=True), ('closed_by', '')), _connector='OR'), name='misalignment_closed_by'),
        ),
        migrations.AddConstraint(
            model_name='misalignment',
            constraint=models.CheckConstraint(condition=models.Q(('closed_by_version', None), ('closed_by', 'version'), _connector='OR'), name='misalignment_closed_by_version'),
        ),
    ]
