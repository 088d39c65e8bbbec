from django.db import migrations, models

TABLE = "labeling_auditevent"
REFUSAL = "the audit log is append-only"
VERBS = "'sign-in succeeded', 'sign-in failed', 'sign-in blocked', 'sign-out done'"
MAY_GO = f"OLD.verb IN ({VERBS}) AND OLD.at < datetime('now', '-30 days')"


def triggers_create(apps, schema_editor):
    # NB: SQLite drops them with the table that it replaces, forwards and backwards; PostgreSQL keeps them.
    if schema_editor.connection.vendor == "postgresql":
        return
    for act, when in (("update", ""), ("delete", f"WHEN NOT ({MAY_GO}) ")):
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_no_{act}")
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_no_{act} BEFORE {act.upper()} ON {TABLE} {when}"
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )


class Migration(migrations.Migration):
    dependencies = [("labeling", "0024_where_events_come_from")]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, triggers_create),
        migrations.AddField(
            model_name="auditevent",
            name="token_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=120),
        ),
        migrations.RunPython(triggers_create, migrations.RunPython.noop),
    ]
