"""The vector spaces of the installation; runs with the owner's login."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.graph import spaces
from apps.graph.models import Embedder


class Command(BaseCommand):
    help = (
        "list; add-http (register a server of the OpenAI-compatible /v1/embeddings); fill (make vectors beside the "
        "active space); activate (swap, when nothing is missing); empty (delete the vectors of a retired space)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list")
        added = actions.add_parser("add-http")
        added.add_argument("--url", required=True)
        added.add_argument("--model", required=True)
        added.add_argument("--revision", required=True)
        added.add_argument("--dims", type=int, required=True)
        added.add_argument("--query-prefix", default="")
        added.add_argument("--passage-prefix", default="")
        for name in ("fill", "activate", "empty"):
            actions.add_parser(name).add_argument("model_id")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, "_" + options["action"].replace("-", "_"))(options)
        except spaces.SpaceRefused as refused:
            raise CommandError(str(refused)) from refused

    def _list(self, options: dict[str, Any]) -> None:
        for space in Embedder.objects.order_by("id"):
            found = spaces.coverage(space)
            self.stdout.write(
                f"{space.state:<10} {space.model_id} ({space.dims} dimensions), {found.covered} of {found.live} rows"
            )

    def _add_http(self, options: dict[str, Any]) -> None:
        names = ("url", "model", "revision", "dims", "query_prefix", "passage_prefix")
        space = spaces.register(
            name="http",
            model_id=f"{options['model']}@{options['revision']}",
            dims=options["dims"],
            config=json.loads(json.dumps({name: options[name] for name in names})),
        )
        self.stdout.write(f"registered {space.model_id}")

    def _fill(self, options: dict[str, Any]) -> None:
        spaces.fill(self._space(options["model_id"]))
        self.stdout.write("The background task fills it; `embedder list` shows how far it is.")

    def _activate(self, options: dict[str, Any]) -> None:
        found = spaces.activate(self._space(options["model_id"]))
        self.stdout.write(f"active, with {found.covered} rows")

    def _empty(self, options: dict[str, Any]) -> None:
        self.stdout.write(f"{spaces.empty(self._space(options['model_id']))} vectors deleted")

    def _space(self, model_id: str) -> Embedder:
        space = Embedder.objects.filter(model_id=model_id).first()
        if space is None:
            raise CommandError("No such model is registered; see `embedder list`")
        return space
