from django.urls import path

from apps.learning import api, profile_api

PROFILE = "learning/profiles/<str:profile_id>"

urlpatterns = [
    path("learning/evaluations", api.EvaluationsView.as_view(), name="evaluations"),
    path("learning/evaluations/<str:evaluation_id>", api.EvaluationView.as_view(), name="evaluation"),
    path(
        "learning/evaluations/<str:evaluation_id>/queries",
        api.EvaluationQueriesView.as_view(),
        name="evaluation-queries",
    ),
    path(
        "learning/evaluations/<str:evaluation_id>/cancel",
        api.EvaluationCancelView.as_view(),
        name="evaluation-cancel",
    ),
    path("learning/query-sets", api.QuerySetsView.as_view(), name="query-sets"),
    path("learning/query-sets/<str:query_set_id>", api.QuerySetView.as_view(), name="query-set"),
    path("learning/holdouts", api.HoldoutsView.as_view(), name="holdouts"),
    path("learning/holdouts/<str:holdout_id>", api.HoldoutView.as_view(), name="holdout"),
    path(
        "learning/holdouts/<str:holdout_id>/queries", api.HoldoutQueriesView.as_view(), name="holdout-queries"
    ),
    path("learning/holdouts/<str:holdout_id>/cancel", api.HoldoutCancelView.as_view(), name="holdout-cancel"),
    path("learning/profiles", profile_api.ProfilesView.as_view(), name="ranking-profiles"),
    path(PROFILE, profile_api.ProfileView.as_view(), name="ranking-profile"),
    path(f"{PROFILE}/preview", profile_api.PreviewView.as_view(), name="ranking-profile-preview"),
    path(f"{PROFILE}/activate", profile_api.ActivateView.as_view(), name="ranking-profile-activate"),
    path(f"{PROFILE}/deactivate", profile_api.DeactivateView.as_view(), name="ranking-profile-deactivate"),
    path(f"{PROFILE}/rollback", profile_api.RollbackView.as_view(), name="ranking-profile-rollback"),
    path("learning/active", profile_api.ActiveView.as_view(), name="ranking-active"),
    path("learning/transitions", profile_api.TransitionsView.as_view(), name="ranking-transitions"),
]
