from django.urls import path

from apps.core.db.sessions import own_transactions as own
from apps.feedback.api import ablations, labels, outcomes

urlpatterns = [
    path("traces", own(outcomes.TracesView.as_view()), name="traces"),
    path("traces/<str:trace_id>", own(outcomes.TraceView.as_view()), name="trace"),
    path("traces/<str:trace_id>/outcomes", own(outcomes.OutcomesView.as_view()), name="trace-outcomes"),
    path("learned-edges", own(outcomes.LearnedEdgesView.as_view()), name="learned-edges"),
    path("receipts/<str:receipt_id>/judgments", own(labels.ReceiptJudgmentsView.as_view()), name="judge"),
    path("receipts/<str:receipt_id>/citations", own(labels.CitationsView.as_view()), name="citations"),
    path("receipts/<str:receipt_id>/ablations", own(ablations.AblationsView.as_view()), name="ablations"),
    path(
        "ablations/<str:ablation_id>/assessments",
        own(ablations.AssessmentsView.as_view()),
        name="assessments",
    ),
    path("judgments", own(labels.JudgmentsView.as_view()), name="judgments"),
    path("activation", own(outcomes.ActivationView.as_view()), name="activation"),
]
