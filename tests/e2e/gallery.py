"""Every part of the staff pages on one page, with data that is long, wide, right-to-left, absent or wrong."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString

from apps.core import clock, ui

TRACE = UUID("01975c3a-9b1f-7d53-8a01-cc0a06c36284")
HASH = "s:cf43b2901f0426bb61eef3c7112e3a82f5a9d42ba4e66cde8146b64a11a22403"
SUBJECT = "oidc:login.example.org/realms/a-quite-long-realm-name#user-0033"


def _section(title: str, content: Any, note: str = "") -> SimpleNamespace:
    anchor = "s-" + title.lower().replace(" ", "-")
    return SimpleNamespace(title=title, content=content, anchor=anchor, note=note)


def sources() -> ui.Records:
    columns = [
        ui.Column("#", "num"),
        ui.Column("source", "main"),
        ui.Column("score", "num"),
        ui.Column("what made the score"),
        ui.Column("stage"),
        ui.Column("label", later=True),
    ]
    rows = []
    for rank in range(1, 11):
        score = 0.8051 / rank**0.4
        parts = [("semantic", score * 0.5), ("lexical", score * 0.2), ("graph", score * 0.12)]
        parts += [("recency", score * 0.1), ("salience", score * 0.05), ("confidence", score * 0.03)]
        if rank == 4:
            cells = [rank, "row not recorded: identity unavailable", ui.nothing("withheld"), "", "", ""]
            rows.append(ui.Record(cells, tone="quiet"))
            continue
        name = [
            "acme/app · wiki_doc keys/rotate.md",
            "acme/app · issue #7",
            "conn:手順書 · document 鍵の更新手順",
            "مستودع · وثيقة تدوير المفاتيح",
            "a" * 256,
        ][rank % 5]
        rows.append(
            ui.Record(
                [
                    rank,
                    name,
                    ui.score(score),
                    ui.ScoreBar(parts, 0.8051, [("duplicate", -0.02)] if rank == 3 else []),
                    ui.StageDots(max(0, 4 - rank)),
                    ui.Mark("ok", "relevant", bare=True) if rank == 1 else ui.nothing("no label"),
                ],
                more=ui.Facts(
                    [
                        ui.Fact("source id", ui.short_hash(HASH, "source id")),
                        ui.Fact("score", ui.score(score, 10)),
                    ]
                ),
            )
        )
    return ui.Records("Sources by rank", columns, rows, header=1)


def trends() -> SafeString:
    days = [f"11-{day:02}" for day in range(17, 31)]
    searches = [120 + 37 * (day % 5) + 11 * day for day in range(14)]
    rate = [0.041, 0.05, 0.03, None, 0.02, 0.06, 0.04, None, 0.03, None, None, 0.05, 0.04, 0.041]
    parts: list[ui.Part] = [
        ui.Trend(
            "Searches",
            days,
            [
                ui.Series("answered", [*searches]),
                ui.Series("zero hit", [n // 9 for n in searches], tone="bad"),
            ],
        ),
        ui.Trend("Zero hit share", days, [ui.Series("share", rate, "line", "3")], percent=True),
        ui.Trend("Labels", days, [ui.Series("labels", [0] * 14)]),
    ]
    return SafeString(
        '<div class="gv-grid">' + "".join(f'<div class="gv-card">{part}</div>' for part in parts) + "</div>"
    )


def happened() -> ui.Timeline:
    now = clock.now()
    return ui.Timeline(
        [
            ui.Event(now - timedelta(hours=3), "recorded", "client"),
            ui.Event(now - timedelta(hours=2), "used 3", "client", "run"),
            ui.Event(
                now - timedelta(hours=1),
                "confirmed +.25 on 2 edges",
                "client",
                "ok",
                id="r-1",
                body="fix verified",
            ),
            ui.Event(now, "rolled back", "ana", "bad", refers=("r-1", "the confirmation of 9c1e…")),
        ]
    )


def values() -> ui.Facts:
    now = clock.now()
    return ui.Facts(
        [
            ui.Fact("trace", ui.short_id(TRACE, "trace id", main=True)),
            ui.Fact("recorded", ui.when(now - timedelta(minutes=3), relative=True)),
            ui.Fact("deleted", ui.deadline(now + timedelta(days=61, hours=4))),
            ui.Fact("due soon", ui.deadline(now + timedelta(minutes=12))),
            ui.Fact("overdue", ui.deadline(now - timedelta(hours=2))),
            ui.Fact("gain", ui.gain(0.031, 0.012, 0.05, 64)),
            ui.Fact("not measured", ui.gain(0.031, None, None, 64)),
            ui.Fact("rows", ui.about(1_204_331)),
            ui.Fact("exact", ui.count(1_204_331)),
            ui.Fact("share", ui.share(41, 1000)),
            ui.Fact("principal", ui.person("maria", SUBJECT)),
            ui.Fact("hashes", ui.hash_pair(HASH[2:], HASH[2:30] + "0" + HASH[31:])),
        ],
        first=True,
    )


def marks() -> SafeString:
    tones: list[tuple[ui.Tone, str]] = [
        ("ok", "applied"),
        ("warn", "partial 2"),
        ("bad", "drift"),
        ("run", "waiting for a second person"),
        ("held", "legal hold"),
        ("plain", "archived"),
    ]
    return SafeString(
        '<div class="gv-row-of">' + "".join(str(ui.Mark(tone, text)) for tone, text in tones) + "</div>"
    )


def steps() -> ui.Checklist:
    return ui.Checklist(
        [
            ui.Step("ok", "release a41c…, suites green", age="checked 11:02 UTC"),
            ui.Step(
                "warn",
                "alarms delivered",
                "machine ✓, receipt by a human missing",
                who="operate collection",
                action=ui.ActionButton("I received alarm 88f1…", "#", small=True),
            ),
            ui.Step("bad", "expiry is overdue", "last success 31 min ago"),
        ]
    )


def sections() -> list[SimpleNamespace]:
    paths = [
        [
            ui.Hop("start", "keys", "mention", 0.375),
            ui.Hop("rotation", "keys", "mention", 2.5, backwards=True),
        ],
        [ui.Hop("start", "index", "mention", None)],
    ]
    intervals = [
        ui.Interval("NDCG@10", 0.031, 0.012, 0.05, 64, 0.01, "passes"),
        ui.Interval("recall@10", 0.018, -0.004, 0.033, 64, 0.01, "below the minimum"),
        ui.Interval("MRR", None, verdict="14 of 20 groups"),
    ]
    now = clock.now()
    runs = [
        ui.Run(("ok", "ok", "failed", "missed", "ok")[at % 5], f"run {at}", "#" if at % 2 else "")
        for at in range(24)
    ]
    document = {
        "mode": "search",
        "window": None,
        "query": "x" * 400,
        "list": list(range(143)),
        "deep": {"a": {"b": [1, {"c": True}]}},
        HASH: HASH,
    }
    return [
        _section("Values", values()),
        _section("Marks", marks()),
        _section(
            "Notices",
            SafeString(
                "".join(
                    str(ui.Notice(tone, f"A sentence in the tone {tone}.", SafeString('<a href="#">Act</a>')))
                    for tone in ("ok", "warn", "bad", "run", "held")
                )
            ),
        ),
        _section("Sources", SafeString(f"{sources()}{ui.FeatureKey()}"), "10 of 12 recorded"),
        _section("Trends", trends()),
        _section("Paths", ui.PathDrawing(paths, "acme/app"), "strength is not relevance"),
        _section("What happened", happened()),
        _section("Gains", ui.IntervalPlot("Gains on the holdout", intervals)),
        _section(
            "Multipliers",
            ui.Multipliers([("semantic", 1.42), ("lexical", 1.1), ("graph", 0.8), ("recency", 0.25)]),
        ),
        _section("Promises", ui.RunStrip("expiry runs", runs)),
        _section(
            "Comparison",
            ui.SideBySide(
                "version 3",
                "version 4",
                [
                    ui.Difference("half-life", "3600 s", "3600 s"),
                    ui.Difference("retention", "90 days", "30 days"),
                    ui.Difference("hash", HASH, HASH[:-1] + "f"),
                ],
            ),
        ),
        _section("Steps", steps()),
        _section("Job", ui.JobLine("Replay", 3120, 5000, "receipts", timedelta(seconds=40), cancel_url="#")),
        _section("Settings", ui.JsonTree(document, "settings")),
        _section("Text", ui.LongText("\n".join(f"line {n} " + "words " * 20 for n in range(40)))),
        _section("Closed", ui.Lock("query closed", "/admin/gallery/reveal/", "query")),
        _section(
            "Empty",
            ui.EmptyState(
                "No search yet.",
                "Searches come through the API.",
                SafeString('<a class="gv-button primary" href="#">Make a token</a>'),
                "curl -H 'Authorization: Bearer …' http://localhost:8000/v1/search",
            ),
        ),
        _section(
            "Audit",
            ui.AuditTrail([ui.AuditEntry(now, "ana", "traces.reveal_query", "support case 41", "88f1")], "#"),
        ),
    ]


def gallery(request: HttpRequest) -> HttpResponse:
    actions = ui.ActionRow(
        [
            ui.ActionButton("Hold…", "#"),
            ui.ActionButton("Reverse…", "#", blocked="You proposed it; another person approves."),
            ui.ActionButton("Erase…", "#", "danger-link"),
        ]
    )
    context = {
        **admin.site.each_context(request),
        "title": "Trace 0197…6c36284",
        "lead": ui.Lock("query closed", "/admin/gallery/reveal/"),
        "newer_url": "#newer",
        "older_url": "#older",
        "actions": actions,
        "notices": [
            ui.Notice(
                "warn",
                "Since you opened this page ben activated 9a02.",
                SafeString('<a href="#">Show the new state</a>'),
            )
        ],
        "sections": sections(),
    }
    return TemplateResponse(request, "core/page.html", context)
