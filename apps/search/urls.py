from django.urls import path

from apps.core.db.sessions import own_transactions
from apps.search.api import SearchView

urlpatterns = [path("search", own_transactions(SearchView.as_view()), name="search")]
