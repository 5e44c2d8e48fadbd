from django.urls import path

from apps.core.db.sessions import own_transactions
from apps.traces.api import UsesView

urlpatterns = [
    path("traces/<str:trace_id>/uses", own_transactions(UsesView.as_view()), name="trace-uses"),
]
