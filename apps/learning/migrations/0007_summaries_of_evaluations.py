"""A summary of each result, so that showing one reads no long report; its receipts are known by their keepers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("learning", "0006_row_policies_of_profiles")]

    operations = [
        migrations.AddField(
            model_name="evaluationresult",
            name="summary",
            field=models.TextField(
                db_collation="C", default="", help_text="The report without its long lists."
            ),
            preserve_default=False,
        ),
        migrations.RemoveField(model_name="evaluationresult", name="receipt_ids"),
    ]
