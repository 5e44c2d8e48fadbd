from django.urls import path

from apps.core.db.sessions import own_transactions as own
from apps.observations import api

urlpatterns = [
    path("observations", own(api.ObservationsView.as_view()), name="observations"),
    path("observations/enrolment", own(api.EnrolmentView.as_view()), name="observations-enrolment"),
    path("observations/erasure", own(api.ErasureView.as_view()), name="observations-erasure"),
    path(
        "observations/erasure-certificates",
        own(api.CertificatesView.as_view()),
        name="observations-erasure-certificates",
    ),
    path(
        "observations/erasure-certificates/<str:certificate_id>",
        own(api.CertificateView.as_view()),
        name="observations-erasure-certificate",
    ),
    path("observations/export", own(api.ExportView.as_view()), name="observations-export"),
    path("observations/evidence", own(api.EvidenceView.as_view()), name="observations-evidence"),
    path("observations/<str:observation_id>", own(api.ObservationView.as_view()), name="observation"),
    path("observation-feedback", own(api.FeedbackView.as_view()), name="observation-feedback"),
    path("monitor/observations", own(api.MonitorView.as_view()), name="monitor-observations"),
]
