from django.urls import URLPattern, path

from apps.core.db.sessions import own_transactions
from apps.operations.api import JobsView, LiveView, MetricsView, ReadyView
from apps.operations.erasure.api import CertificateView, MyErasureView

urlpatterns: list[URLPattern] = [
    path("me/erasure", own_transactions(MyErasureView.as_view()), name="me-erasure"),
    path("erasures/<uuid:certificate_id>", own_transactions(CertificateView.as_view()), name="erasure"),
]

# None of them runs in a session: they read what processes write about themselves, or nothing at all.
root_urlpatterns: list[URLPattern] = [
    path("health/live", own_transactions(LiveView.as_view()), name="health-live"),
    path("health/ready", own_transactions(ReadyView.as_view()), name="health-ready"),
    path("health/jobs", own_transactions(JobsView.as_view()), name="health-jobs"),
    path("metrics", own_transactions(MetricsView.as_view()), name="metrics"),
]
