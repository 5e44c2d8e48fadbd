"""Every process killed in turn while a client works: all return by themselves, nothing acknowledged is lost."""

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import pytest

from tests.support.stack import Stack, running_stack, wait

pytestmark = pytest.mark.installation

PROCESSES = ("web", "worker", "beat", "valkey", "postgres")
PAUSE = 0.05


@dataclass
class Client:
    """Writes, searches and reports uses without a pause, and remembers what was acknowledged."""

    stack: Stack
    traces: dict[str, str] = field(default_factory=dict)  # trace → source in it
    uses: dict[str, str] = field(default_factory=dict)  # trace → receipt
    nodes: list[str] = field(default_factory=list)
    failures: int = 0
    rounds: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopped.is_set():
            # A client that is refused or cut off tries again, as every client must.
            with suppress(httpx.HTTPError, ValueError):
                with self.stack.client() as http:
                    while not self.stopped.is_set():
                        self._round(http)
            self.failures += 1
            time.sleep(PAUSE)

    def _round(self, http: httpx.Client) -> None:
        number = self.rounds = self.rounds + 1
        item = {"identity": f"note-{number}", "text": f"Note number {number} on the archive of the harbour."}
        stored = http.post("/v1/nodes:batch", json={"items": [item]}).raise_for_status().json()
        self.nodes.append(stored["results"][0]["node_id"])
        found = http.post("/v1/search", json={"query": f"archive note {number}"}).raise_for_status().json()
        trace = found.get("trace_id")
        if trace is None:  # answered, and said to be not recorded
            return
        source = found["results"][0]["source_id"]
        self.traces[trace] = source
        body = {"idempotency_key": f"use-{trace}", "uses": [{"source_id": source, "stage": "selected"}]}
        receipt = http.post(f"/v1/traces/{trace}/uses", json=body).raise_for_status().json()
        self.uses[trace] = receipt["receipt_id"]

    def progresses(self) -> None:
        """Wait until three more uses are acknowledged."""
        before = len(self.uses)
        wait(lambda: len(self.uses) >= before + 3, "acknowledged uses")


def kill(stack: Stack, name: str) -> None:
    before = stack.pid(name)
    os.kill(before, signal.SIGKILL)
    wait(lambda: stack.info(name)["statename"] == "RUNNING" and stack.pid(name) != before, name)


def check_everything_acknowledged_is_there(client: Client) -> None:
    assert client.failures  # it did feel the kills
    with client.stack.client() as http:
        for trace, source in client.traces.items():
            detail = http.get(f"/v1/traces/{trace}").raise_for_status().json()
            assert source in [shown["source_id"] for shown in detail["sources"]]
            if trace in client.uses:
                assert client.uses[trace] in [receipt["receipt_id"] for receipt in detail["audit"]]
        for first in range(0, len(client.nodes), 50):
            ids = list(dict.fromkeys(client.nodes[first : first + 50]))
            fetched = http.post("/v1/search", json={"node_ids": ids}).raise_for_status().json()
            assert fetched["not_found"] == []


def check_jobs_run_again(stack: Stack) -> None:
    """The worker takes messages from the broker again, beat is alive, and the audit chains are whole."""
    stack.manage("shell", "-c", "from apps.operations.tasks import verify_audit; verify_audit.delay()")
    with stack.client() as http:
        wait(lambda: http.get("/health/ready").status_code == 200, "readiness")

        def succeeded() -> bool:
            jobs = {job["job"]: job for job in http.get("/health/jobs").json()["jobs"]}
            return jobs["operations.verify_audit"]["last_success_at"] is not None

        wait(succeeded, "a job run")
        live = {process["kind"] for process in http.get("/health/jobs").json()["processes"]}
        assert {"web", "worker", "beat"} <= live


def test_every_process_killed_under_load() -> None:
    with running_stack(port=18100) as stack:
        client = Client(stack)
        thread = threading.Thread(target=client.run)
        thread.start()
        try:
            client.progresses()
            for name in PROCESSES:
                kill(stack, name)
                client.progresses()
        finally:
            client.stopped.set()
            thread.join()
        check_everything_acknowledged_is_there(client)
        check_jobs_run_again(stack)
        assert "chains are whole" in stack.manage("verify_audit")
