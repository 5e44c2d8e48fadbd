from django.urls import path

from apps.learning import profile_api

PROFILE = "learning/profiles/<str:profile_id>"

urlpatterns = [
    path("learning/profiles", profile_api.ProfilesView.as_view(), name="ranking-profiles"),
    path(PROFILE, profile_api.ProfileView.as_view(), name="ranking-profile"),
    path(f"{PROFILE}/preview", profile_api.PreviewView.as_view(), name="ranking-profile-preview"),
    path(f"{PROFILE}/activate", profile_api.ActivateView.as_view(), name="ranking-profile-activate"),
    path(f"{PROFILE}/deactivate", profile_api.DeactivateView.as_view(), name="ranking-profile-deactivate"),
    path(f"{PROFILE}/rollback", profile_api.RollbackView.as_view(), name="ranking-profile-rollback"),
    path("learning/active", profile_api.ActiveView.as_view(), name="ranking-active"),
    path("learning/transitions", profile_api.TransitionsView.as_view(), name="ranking-transitions"),
]
