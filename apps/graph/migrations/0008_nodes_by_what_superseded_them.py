from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("graph", "0007_links_move_the_digest"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                condition=models.Q(("superseded_by__isnull", False)),
                fields=["principal", "superseded_by"],
                name="graph_node_superseded",
            ),
        ),
    ]
