"""The demo memory: through the services, whole, and the same after a second run."""

from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.accounts.services import create_workspace, enter_principal, workspace_id
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.feedback.models import Credit, EdgeStrength
from apps.graph.models import Node, PageEdge
from apps.search.demo.schemas import demo_memory
from apps.traces.models import ActionReceipt, Trace, Use

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def principal() -> PrincipalIdentity:
    superuser = User.objects.create_superuser("root", password="a-long-password")
    with staff_session(superuser):
        create_workspace(slug="demo", name="Demo")
    return enter_principal(workspace=workspace_id("demo"), subject="token:demo")


def counts() -> Counter[str]:
    models = (Node, PageEdge, Trace, Use, ActionReceipt, Credit, EdgeStrength)
    return Counter({model.__name__: model.objects.count() for model in models})


def test_demo_fills_every_page_and_a_second_run_adds_nothing(principal: PrincipalIdentity) -> None:
    call_command("demo")
    with principal_session(principal):
        first = counts()
        assert first["Node"] == len(demo_memory().items)
        assert first["PageEdge"] > 20
        assert set(Trace.objects.values_list("mode", flat=True)) == {"search", "scan", "fetch"}
        assert Trace.objects.filter(source_count=0).exists()
        assert set(Use.objects.values_list("stage", flat=True)) == {1, 3}
        kinds = Counter(ActionReceipt.objects.values_list("kind", flat=True))
        assert (kinds["confirmed"], kinds["corrected"]) == (2, 1)
        assert Credit.objects.filter(active=True).exists()
        assert Credit.objects.filter(active=False).exists()
    call_command("demo")
    with principal_session(principal):
        assert counts() == first


def test_every_used_source_of_the_file_is_found_by_its_query(principal: PrincipalIdentity) -> None:
    call_command("demo")
    with principal_session(principal):
        for call in demo_memory().queries:
            if not call.use:
                continue
            trace = Trace.objects.get(query=call.text)
            reached = Use.objects.filter(trace_id=trace.pk, stage=3).count()
            assert reached >= 1, call.text


def test_demo_without_its_workspace_says_so() -> None:
    with pytest.raises(CommandError):
        call_command("demo")
