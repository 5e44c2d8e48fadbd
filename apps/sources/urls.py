from django.urls import path

from apps.sources.api import NodesBatchView

urlpatterns = [path("nodes:batch", NodesBatchView.as_view(), name="nodes-batch")]
