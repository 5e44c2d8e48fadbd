from django.urls import path

from apps.core.db.sessions import own_transactions
from apps.search.api import ExplainView, SearchView

urlpatterns = [
    path("search", own_transactions(SearchView.as_view()), name="search"),
    path("search/explain", own_transactions(ExplainView.as_view()), name="search-explain"),
]
