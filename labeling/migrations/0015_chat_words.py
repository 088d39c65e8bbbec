import django.db.models.deletion
from django.db import migrations, models

from common.search.index import create_index, drop_index
from common.search.words import index_words

TABLE = {"table": "labeling_chatwords", "key": "chat_id"}


def create(apps, editor):
    create_index(editor, **TABLE)


def drop(apps, editor):
    drop_index(editor, **TABLE)


def write_words(apps, editor):
    """Write the words of the chats there are, in pieces that fit the memory."""
    chats, rows = apps.get_model("labeling", "Chat"), apps.get_model("labeling", "ChatWords")
    stored = chats.objects.order_by("pk").values_list("pk", "external_id", "messages", "metadata")
    piece = []
    for pk, external_id, messages, metadata in stored.iterator(chunk_size=200):
        contents = [str(message.get("content", "")) for message in messages]
        title = str((metadata or {}).get("title") or "")
        piece.append(rows(chat_id=pk, words=index_words([external_id, *contents], title=title)))
        if len(piece) == 200:
            rows.objects.bulk_create(piece)
            piece = []
    rows.objects.bulk_create(piece)


class Migration(migrations.Migration):
    dependencies = [("labeling", "0014_set_up_hidden")]

    operations = [
        migrations.CreateModel(
            name="ChatWords",
            fields=[
                (
                    "chat",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="labeling.chat",
                    ),
                ),
                ("words", models.TextField()),
            ],
        ),
        migrations.RunPython(create, drop),
        migrations.RunPython(write_words, migrations.RunPython.noop),
    ]
