"""A broker that is gone costs whoever asks it one look, not seconds: the schedule makes up for what was not sent."""

from pathlib import Path
from typing import Any

import pytest
from kombu.exceptions import OperationalError
from kombu.transport.redis import Transport

from memory_platform.celery import app

pytestmark = pytest.mark.django_db


def test_a_message_to_a_broker_that_is_gone_is_given_up_after_one_more_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[None] = []
    establish = Transport.establish_connection

    def counted(transport: Transport) -> Any:
        looked.append(None)
        return establish(transport)

    monkeypatch.setattr(Transport, "establish_connection", counted)
    gone = f"redis+socket://{tmp_path}/gone.sock"
    with app.connection_for_write(url=gone) as connection, pytest.raises(OperationalError):
        app.send_task("graph.embed", connection=connection, retry=False)

    assert len(looked) <= 2
