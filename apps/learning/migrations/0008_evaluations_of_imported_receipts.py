"""Evaluations may be of imported receipts; they explore, since no profile can follow from them."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("learning", "0007_summaries_of_evaluations")]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="source",
            field=models.CharField(
                default="native", help_text="Receipts of the platform, or imported ones.", max_length=8
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.CheckConstraint(
                condition=Q(
                    ("source", "native"), Q(("exploratory", True), ("source", "imported")), _connector="OR"
                ),
                name="learning_evaluation_source",
            ),
        ),
    ]
