"""Background work of erasures."""

from datetime import timedelta
from uuid import UUID

from apps.operations.erasure import runs
from apps.operations.tasks_base import every, task


@task(
    name="operations.erase",
    lease=timedelta(minutes=35),
    soft_limit=timedelta(minutes=30),
    misfire="run_once",
)
def erase(certificate_id: UUID) -> dict[str, int]:
    """Delete what the fence of one erasure has closed off."""
    certificate = runs.run(certificate_id)
    return {"deleted": sum(table["deleted"] for table in certificate.tables)}


@task(
    name="operations.resume_erasures",
    schedule=every(minutes=15),
    lease=timedelta(minutes=35),
    soft_limit=timedelta(minutes=30),
    misfire="run_once",
)
def resume_erasures() -> dict[str, int]:
    """Go on with erasures that stopped: held, interrupted, or without their line in the erasure file."""
    return runs.resume()
