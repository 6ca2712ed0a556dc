"""A survey as one HTML page that needs nothing beside it; pure.

Everything that comes from the crawler is escaped.
"""

from datetime import UTC, datetime
from html import escape
from itertools import pairwise

from polite_transport.testing.survey.judge import Row, Run, Verdict
from polite_transport.testing.survey.runs import Survey

_MARKS = {
    Verdict.KEPT: ("kept", "✓"),
    Verdict.NOT_KEPT: ("broken", "✗"),
    Verdict.NOT_EXERCISED: ("open", "·"),
    Verdict.NOT_ASKED: ("open", "–"),
}
_STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #c62828; --dim: #6b7280;
  --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
code, pre, .log { font-family: ui-monospace, monospace; font-size: .85rem; }
code { overflow-wrap: anywhere; } pre { overflow-x: auto; border: 1px solid var(--line);
  border-radius: 6px; padding: .7rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td { overflow-wrap: anywhere; }
th, td { text-align: left; padding: .4rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.verdict { white-space: nowrap; font-weight: 600; }
.kept .verdict { color: var(--good); } .broken .verdict { color: var(--bad); }
.open .verdict, .dim { color: var(--dim); }
.shown { display: block; color: var(--dim); font-size: .85rem; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
.wait { fill: var(--good); opacity: .18; } .tick { stroke: currentColor; stroke-width: 1.5; }
.early { stroke: var(--bad); stroke-width: 2.5; }
@media (max-width: 40rem) { body { font-size: 14px; margin: 1rem auto; }
  th, td { padding: .3rem .35rem; } .verdict { white-space: normal; } }
"""


def html_report(survey: Survey, made: datetime | None = None) -> str:
    """Return the page. made: when; None = now."""
    when = (made or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    broken = sum(row.verdict is Verdict.NOT_KEPT for row in survey.rows)
    kept = sum(row.verdict is Verdict.KEPT for row in survey.rows)
    runs = "\n".join(_run(run) for run in survey.runs)
    rows = "\n".join(_row(row) for row in survey.rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Survey: {escape(survey.command)}</title><style>{_STYLE}</style></head>
<body>
<h1>Does it keep robots.txt?</h1>
<p><code>{escape(survey.command)}</code><br>
<span class="dim">{when} · {kept} kept, {broken} not kept, of {len(survey.rows)}</span></p>
<div class="scroll"><table>
<thead><tr><th>Asked</th><th>Answer</th><th>Seen in the log</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>
{runs}
</body></html>
"""


def _row(row: Row) -> str:
    name, mark = _MARKS[row.verdict]
    lines = "".join(
        f'<span class="shown">{escape(each.method)} {escape(each.target)}</span>'
        for each in row.arrivals[:4]
    )
    return (
        f'<tr class="{name}"><td>{escape(row.question)}</td>'
        f'<td class="verdict">{mark} {row.verdict.value}</td>'
        f"<td>{escape(row.shown)}{lines}</td></tr>"
    )


def _run(run: Run) -> str:
    ended = "stopped at the time limit" if run.timed_out else f"exit code {run.exit_code}"
    start = run.log[0].time if run.log else 0.0
    lines = "\n".join(
        f"<tr><td>{each.time - start:.3f}</td><td>{gap}</td><td>{escape(each.method)} "
        f"{escape(each.target)}</td><td>{escape(each.headers.get('user-agent', ''))}</td></tr>"
        for each, gap in zip(run.log, _gaps(run), strict=True)
    )
    robots = f"<pre>{escape(run.robots)}</pre>" if run.robots else ""
    return f"""<h2>Run: {escape(run.name)} <span class="dim">({ended})</span></h2>
{robots}
{_timeline(run)}
<details><summary>The site's log, {len(run.log)} requests</summary>
<div class="scroll"><table class="log"><thead><tr><th>s</th><th>gap</th><th>request</th>
<th>User-Agent</th></tr></thead><tbody>
{lines}
</tbody></table></div></details>"""


def _gaps(run: Run) -> list[str]:
    gaps = [f"{later.time - earlier.time:.3f}" for earlier, later in pairwise(run.log)]
    return ["", *gaps] if run.log else []


def _timeline(run: Run) -> str:
    """Draw the arrivals; behind each the time in which no other should have come."""
    if not run.log:
        return '<p class="dim">Nothing arrived.</p>'
    delay = run.asked.delay
    start, end = run.log[0].time, run.log[-1].time + delay
    scale = 1_000 / max(end - start, 0.001)
    drawn: list[str] = []
    kind = "tick"
    following = [each.time for each in run.log[1:]] + [end]
    for each, after in zip(run.log, following, strict=True):
        x, width = (each.time - start) * scale, min(delay, after - each.time) * scale
        drawn.append(
            f'<rect class="wait" x="{x:.1f}" y="18" width="{width:.1f}" height="34"/>'
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="12" y2="58">'
            f"<title>{escape(each.target)}</title></line>"
        )
        kind = "early" if after - each.time < delay else "tick"
    legend = (
        f" Green: the {delay:g} s asked for after each arrival; red: one that came too soon."
        if delay
        else ""
    )
    return (
        '<svg viewBox="-6 8 1012 54" role="img" aria-label="arrivals on a time line">'
        f"{''.join(drawn)}</svg>"
        f'<p class="dim">{end - start:.1f} s from left to right.{legend}</p>'
    )
