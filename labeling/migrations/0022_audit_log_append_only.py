from django.db import migrations, models

TABLE = "labeling_auditevent"
REFUSAL = "the audit log is append-only"
POSTGRESQL = f"""
CREATE FUNCTION {TABLE}_refuse() RETURNS trigger AS $$
BEGIN
  RAISE EXCEPTION '{REFUSAL}';
END
$$ LANGUAGE plpgsql;
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE}
  FOR EACH ROW EXECUTE FUNCTION {TABLE}_refuse();
CREATE TRIGGER {TABLE}_not_emptied BEFORE TRUNCATE ON {TABLE}
  FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse();
"""
POSTGRESQL_BACK = f"""
DROP TRIGGER {TABLE}_append_only ON {TABLE};
DROP TRIGGER {TABLE}_not_emptied ON {TABLE};
DROP FUNCTION {TABLE}_refuse();
"""
ACTS = ("UPDATE", "DELETE")


def triggers_create(apps, schema_editor):
    # NB: SQLite drops them where a later migration alters the table; a test then fails, and that migration
    # creates them again.
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL)
        return
    for act in ACTS:
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_no_{act.lower()} BEFORE {act} ON {TABLE} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )


def triggers_drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL_BACK)
        return
    for act in ACTS:
        schema_editor.execute(f"DROP TRIGGER {TABLE}_no_{act.lower()}")


class Migration(migrations.Migration):
    dependencies = [("labeling", "0021_permission_to_read_metrics")]
    operations = [
        migrations.AddField(
            model_name="auditevent",
            name="request_id",
            field=models.CharField(blank=True, default="", max_length=32),
        ),
        migrations.AlterField(
            model_name="auditevent",
            name="at",
            field=models.DateTimeField(auto_now_add=True, db_index=True),
        ),
        migrations.RunPython(triggers_create, triggers_drop),
    ]
