from django.urls import path

from apps.core.db.sessions import own_transactions as own
from apps.feedback import api

urlpatterns = [
    path("traces", own(api.TracesView.as_view()), name="traces"),
    path("traces/<str:trace_id>", own(api.TraceView.as_view()), name="trace"),
    path("traces/<str:trace_id>/outcomes", own(api.OutcomesView.as_view()), name="trace-outcomes"),
    path("learned-edges", own(api.LearnedEdgesView.as_view()), name="learned-edges"),
    path("activation", own(api.ActivationView.as_view()), name="activation"),
]
