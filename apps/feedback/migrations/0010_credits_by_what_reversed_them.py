from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("feedback", "0009_ablations_due_by_age_before_holds")]

    operations = [
        migrations.AddIndex(
            model_name="credit",
            index=models.Index(
                condition=models.Q(("reversed_by__isnull", False)),
                fields=["principal", "reversed_by"],
                name="feedback_credit_reversed_by",
            ),
        ),
    ]
