"""The platform's urls and the gallery of parts."""

from django.contrib import admin
from django.urls import path

from memory_platform.urls import urlpatterns as platform
from tests.e2e.gallery import gallery

urlpatterns = [path("admin/gallery/", admin.site.admin_view(gallery)), *platform]
