"""Erasing a principal on its page: plan, typed word, job line, certificate; for whoever holds the grant."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client, override_settings

from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from apps.operations import holds
from apps.operations.erasure import runs
from apps.operations.erasure.models import ErasureCertificate, ErasureRun
from tests.support.factories import make_staff, make_token, make_world

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/operations/erasurecertificate/"


@pytest.fixture(autouse=True)
def sent(monkeypatch: Any, tmp_path: Any) -> Any:
    from apps.operations.erasure.tasks import erase

    ids: list[Any] = []
    monkeypatch.setattr(erase, "delay", ids.append)
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        yield ids


class Scene:
    def __init__(self) -> None:
        self.world = make_world()
        self.reviewer = make_staff(self.world.workspace, "review_retention")
        self.client = Client()
        self.client.force_login(self.reviewer)
        self.page = f"/admin/accounts/principal/{self.world.principal.principal_id}/"
        make_token(self.world.principal, "search", superuser=self.world.superuser)

    def seen(self) -> dict[str, str]:
        html = self.client.get(f"{self.page}erase/").content.decode()
        found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
        return {name: unescape(value) for name, value in found}

    def erase(self, **fields: str) -> Any:
        return self.client.post(f"{self.page}erase/", {**self.seen(), "reason": "asked to go", **fields})


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_plan_counts_by_table_and_the_word_must_be_typed(scene: Scene, sent: Any) -> None:
    assert "Erase…" in scene.client.get(f"{scene.page}change/").content.decode()
    html = scene.client.get(f"{scene.page}erase/").content.decode()
    assert "Deletes 2 rows in 2 tables" in html
    assert "accounts_apitoken" in html
    assert "Erase 2 rows" in html
    assert scene.erase().status_code == 422
    assert scene.erase(word="Erase all").status_code == 422
    assert not ErasureCertificate.objects.exists()
    assert not sent


def test_it_runs_behind_a_job_line_and_ends_in_a_certificate(scene: Scene, sent: Any) -> None:
    answer = scene.erase(word="erase")
    certificate = ErasureCertificate.objects.get()
    page = f"{LIST}{certificate.pk}/"
    assert answer.headers["Location"] == f"{page}change/"
    running = scene.client.get(f"{page}change/").content.decode()
    assert f'data-poll="{page}progress/"' in running
    line = scene.client.get(f"{page}progress/")
    assert "data-poll" in line.content.decode()
    assert "no-store" in line.headers["Cache-Control"]
    ErasureRun.objects.update(found={"a": 3000, "b": 5}, deleted={"a": 1000})
    assert "1\u202f000 of 3\u202f005 rows" in scene.client.get(f"{page}progress/").content.decode()
    ErasureRun.objects.update(found=None, deleted={})
    runs.run(sent[0])
    over = scene.client.get(f"{page}progress/").content.decode()
    assert "data-poll" not in over
    assert f"{page}change/" in over
    html = scene.client.get(f"{page}change/").content.decode()
    certificate.refresh_from_db()
    assert certificate.checksum in html
    assert "verified" in html
    assert "nothing is left" in html
    assert str(scene.world.principal.principal_id) not in html
    assert "2 of 2" in scene.client.get(LIST).content.decode()
    assert scene.client.get(f"{scene.page}change/").status_code == 404


def test_a_hold_is_said_before_and_refuses(scene: Scene, sent: Any) -> None:
    holds.register_kind(
        holds.HoldKind("accounts.principal", "a principal", locate=lambda _: scene.world.workspace.pk)
    )
    try:
        with staff_session(scene.reviewer):
            holds.place(
                workspace_id=scene.world.workspace.pk,
                reference="case 7",
                reason="counsel",
                items=[("accounts.principal", scene.world.principal.principal_id)],
            )
        assert "A legal hold covers rows" in scene.client.get(f"{scene.page}erase/").content.decode()
        assert scene.erase(word="erase").status_code == 409
    finally:
        holds.unregister_kind("accounts.principal")
    assert not sent


def test_rows_that_remain_are_danger_and_never_called_complete(scene: Scene, sent: Any) -> None:
    scene.erase(word="erase")
    ErasureCertificate.objects.update(
        status="incomplete",
        reason_code=runs.ROWS_LEFT,
        tables=[{"table": "accounts_apitoken", "found": 3, "deleted": 1, "remaining": 2}],
    )
    html = scene.client.get(f"{LIST}{sent[0]}/change/").content.decode()
    assert "The re-count found rows." in html
    assert "gv-bad" in html
    assert "nothing is left" not in html


def test_others_and_the_shared_principal_have_no_such_act(scene: Scene) -> None:
    watcher, outsider = Client(), Client()
    watcher.force_login(make_staff(scene.world.workspace, "audit", "operate_collection"))
    outsider.force_login(make_staff(make_world().workspace, "review_retention"))
    for client in (watcher, outsider):
        assert client.get(f"{scene.page}erase/").status_code == 404
        assert client.post(f"{scene.page}erase/", {"word": "erase"}).status_code == 404
        assert client.get(f"{LIST}{uuid4()}/progress/").status_code == 404
    with staff_session(scene.reviewer):
        shared = Principal.objects.defer("hash_key").get(subject="shared").pk
    assert scene.client.get(f"/admin/accounts/principal/{shared}/erase/").status_code == 404
    scene.erase(word="erase")
    certificate = ErasureCertificate.objects.get()
    assert outsider.get(f"{LIST}{certificate.pk}/progress/").status_code == 404
    assert outsider.get(f"{LIST}{certificate.pk}/change/").status_code == 404
    assert watcher.get(f"{LIST}{certificate.pk}/change/").status_code == 200
