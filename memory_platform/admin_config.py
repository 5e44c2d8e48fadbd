"""Django's admin with our site. Apart from the site, which needs the apps to be loaded."""

from django.contrib.admin.apps import AdminConfig


class MemoryAdminConfig(AdminConfig):
    default_site = "memory_platform.admin_site.MemoryAdminSite"
