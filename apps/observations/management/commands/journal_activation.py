"""Taking a workspace's collection from off to a pilot and back, step by step, at a terminal."""

import getpass
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.services import workspace_id
from apps.core.db.sessions import staff_session
from apps.core.problems import Problem
from apps.observations.activation.checklist import approval_hash, checklist
from apps.observations.activation.probes import HARMLESS, PROBES
from apps.observations.activation.remedies import may_follow, remedy
from apps.observations.models import ActivationRun
from apps.observations.selectors.activation import standing_of_run
from apps.observations.services import activation
from apps.observations.services.evidence import run_of

STEPS = {
    "open": "begin a run for a mode",
    "show": "the checklist: what each item lacks, and the version that an approval is given for",
    "examine": "let the machine look at an item, or at all but those of C, of which one failing switches off",
    "vouch": "attest an item as a person",
    "request": "ask another person to approve exactly what there is now",
    "approve": "as another person, hand back the version that show printed",
    "enable": "publish the mode",
    "stop": "switch off; one person is enough",
}


class Command(BaseCommand):
    help = (
        "Activation runs of the journal: "
        + "; ".join(f"{name}: {what}" for name, what in STEPS.items())
        + "."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("step", choices=STEPS)
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument(
            "--as", dest="person", required=True, help="User name; the password is asked for."
        )
        parser.add_argument("--mode", choices=("hash", "platform-text"), help="Of open.")
        parser.add_argument("--item", help="A1 … D4; of examine and vouch.")
        parser.add_argument("--query", default=HARMLESS, help="Of examine: what the pilot asks at C2.")
        parser.add_argument("--failed", action="store_true", help="Of vouch: the item does not hold.")
        parser.add_argument("--note", default="", help="Of vouch: at most 500 characters.")
        parser.add_argument("--seen", default="", help="Of approve.")
        parser.add_argument(
            "--reason", default="", help="Kept in the audit log; of all but show, examine and vouch."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = workspace_id(options["workspace"])
            user = self._person(options["person"])
            self.stdout.write(getattr(self, f"_{options['step']}")(workspace, user, options))
        except Problem as problem:
            items = ", ".join(map(str, problem.more.get("items", ())))
            told = f"{problem.shown_code} {problem.detail}".strip() + (f" ({items})" if items else "")
            raise CommandError(f"Refused: {told}.") from None

    def _open(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        if not options["mode"]:
            raise CommandError("open needs --mode.")
        with staff_session(user):
            run = activation.open_run(workspace_id=workspace, mode=options["mode"], reason=options["reason"])
        return f"Run {run.pk} for {run.mode} is open."

    def _show(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            run = _newest(workspace)
            found = checklist(run, "ABCD")
            lines = [f"{line.code:<12} {line.standing}" for line in found.lines]
            version = run.approval_hash or approval_hash(run, checklist(run))
            told = [f"Run {run.pk}, {run.mode}: {run.state}", *lines, f"version {version}"]
        return "\n".join([*told, *_way_on(workspace, user, options)])

    def _examine(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            run = _newest(workspace)
        told = []
        for item in (
            [options["item"]]
            if options["item"]
            else sorted(
                (code for code in PROBES if code[0] != "C"), key=lambda code: (code[0], int(code[1:]))
            )
        ):
            try:
                row = activation.examine(run_id=run.pk, item=item, user_id=user, query=options["query"])
                told.append(f"{item} {row.result}")
            except Problem as problem:
                if options["item"]:
                    raise
                told.append(f"{item} not now ({problem.shown_code})")
        activation.advance_run(run_id=run.pk, user_id=user)
        return "\n".join([*told, *_way_on(workspace, user, options)])

    def _vouch(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        if not options["item"]:
            raise CommandError("vouch needs --item.")
        with staff_session(user):
            run = _newest(workspace)
        result = "fail" if options["failed"] else "pass"
        activation.vouch(
            run_id=run.pk, item=options["item"], result=result, note=options["note"], user_id=user
        )
        told = f"{options['item']} {result}, by {options['person']}."
        return "\n".join([told, *_way_on(workspace, user, options)])

    def _request(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            run = activation.request_enabling(run_id=_newest(workspace).pk, reason=options["reason"])
        return f"Requested; another person approves version {run.approval_hash} within 24 hours."

    def _approve(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            run = _newest(workspace)
            activation.approve(run_id=run.pk, version=options["seen"], reason=options["reason"])
        return "Approved."

    def _enable(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            run = activation.enable(run_id=_newest(workspace).pk, reason=options["reason"])
        return f"Enabled: {run.mode}. Examine C1 to C4 next."

    def _stop(self, workspace: UUID, user: int, options: dict[str, Any]) -> str:
        with staff_session(user):
            activation.stop(run_id=_newest(workspace).pk, reason=options["reason"])
        return "\n".join(["Stopped.", *_way_on(workspace, user, options)])

    def _person(self, name: str) -> int:
        """One message for all that is wrong with a name or a password."""
        person = get_user_model().objects.filter(username=name, is_active=True, is_staff=True).first()
        password = getpass.getpass(f"Password of {name}: ")
        if person is None or not person.check_password(password):
            raise CommandError("Refused: name and password do not belong together.")
        return int(person.pk)


def _way_on(workspace: UUID, user: int, options: dict[str, Any]) -> list[str]:
    """What is to be done with a run that is off, with the commands; nothing for another."""
    with staff_session(user):
        standing = standing_of_run(_newest(workspace))
    if not (told := remedy(standing)):
        return []
    command = f"manage.py journal_activation {{}} --workspace {options['workspace']} --as"
    proofs = [
        f"  {command.format('examine')} {options['person']} --item D1",
        f"  {command.format('examine')} {options['person']} --item D2",
        f"  {command.format('vouch')} ANOTHER --item D2 --note …",
    ]
    another = f"  {command.format('open')} {options['person']} --mode {standing.run.mode} --reason …"
    return [told, *([] if may_follow(standing) else proofs), another]


def _newest(workspace: UUID) -> ActivationRun:
    """The run of the workspace that began last, as the person sees it."""
    found = ActivationRun.objects.filter(workspace_id=workspace).order_by("-opened_at", "-id").first()
    if found is None:
        raise CommandError("Refused: no run of this workspace is yours to see.")
    return run_of(found.pk)
