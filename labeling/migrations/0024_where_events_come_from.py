from django.db import migrations, models

TABLE = "labeling_auditevent"
REFUSAL = "the audit log is append-only"
# Entries of sign-ins may be deleted after 30 days, which is the shortest time that they are kept.
VERBS = "'sign-in succeeded', 'sign-in failed', 'sign-in blocked', 'sign-out done'"
POSTGRESQL = f"""
CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.verb IN ({VERBS}) AND OLD.at < now() - interval '30 days' THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION '{REFUSAL}';
END
$$ LANGUAGE plpgsql;
"""
POSTGRESQL_BACK = f"""
CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger AS $$
BEGIN
  RAISE EXCEPTION '{REFUSAL}';
END
$$ LANGUAGE plpgsql;
"""
MAY_GO = f"OLD.verb IN ({VERBS}) AND OLD.at < datetime('now', '-30 days')"


def triggers_create(apps, schema_editor):
    # NB: SQLite drops them where a migration alters the table, as this one does.
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL)
        return
    for act, when in (("update", ""), ("delete", f"WHEN NOT ({MAY_GO}) ")):
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_no_{act}")
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_no_{act} BEFORE {act.upper()} ON {TABLE} {when}"
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )


def triggers_restore(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL_BACK)
        return
    for act in ("update", "delete"):
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_no_{act}")
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_no_{act} BEFORE {act.upper()} ON {TABLE} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )


class Migration(migrations.Migration):
    dependencies = [("labeling", "0023_second_factor")]
    operations = [
        # NB: backwards, the columns go first: SQLite drops the triggers with the table that it replaces.
        migrations.RunPython(migrations.RunPython.noop, triggers_restore),
        migrations.AddField(
            model_name="auditevent",
            name="address",
            field=models.CharField(blank=True, db_default="", default="", max_length=39),
        ),
        migrations.AddField(
            model_name="invitation",
            name="mailed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(triggers_create, migrations.RunPython.noop),
    ]
