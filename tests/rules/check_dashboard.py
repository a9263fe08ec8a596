#!/usr/bin/env python3
"""The dashboard queries what musterd exports, and shows every metric of queues; the metrics page lists exactly these.

  check_dashboard.py ROOT        print every problem; exit 1 if there is one
  check_dashboard.py --self-test prove that each rule catches its fault

Names come from service/telemetry/metrics.cc, labels from docs/reference/metrics.md.
"""
import json
import re
import sys
from pathlib import Path

BUILT_IN = {"job", "le", "__rate_interval", "datasource"}
PAGE = "docs/reference/metrics.md"


def problems(dashboard, source, docs):
    out = []
    names = set(re.findall(r'"(muster_[a-z_]+)"', source))
    shown = set()
    at = {}
    variables = {each["name"] for each in dashboard["templating"]["list"]} | BUILT_IN
    # `muster_x{label,label}` in the first column of the page's tables
    labels = {name: set(listed.split(",")) - {""} for name, listed in re.findall(r"^\| `(muster_[a-z_]+)(?:\{([a-z_,]+)\})?` \|", docs, re.M)}
    out += [f"{PAGE} does not list {name}" for name in sorted(names - labels.keys())]
    out += [f"{PAGE} lists {name}, which musterd does not export" for name in sorted(labels.keys() - names)]
    queries = [(f'panel "{panel["title"]}"', target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [(f'variable {each["name"]}', each["query"]["query"]) for each in dashboard["templating"]["list"] if isinstance(each["query"], dict)]
    for where, text in queries:
        for open_, close in ("()", "{}", "[]"):
            if text.count(open_) != text.count(close):
                out.append(f"{where}: {open_} and {close} do not match: {text}")
        for variable in re.findall(r"\$\{?(\w+)", text):
            if variable not in variables:
                out.append(f"{where}: there is no variable ${variable}")
        for metric, selector in re.findall(r"\b(muster_[a-z_]+)(\{[^}]*\})?", text):
            name = re.sub(r"_(bucket|sum|count)$", "", metric)
            shown.add(name)
            if name not in names:
                out.append(f"{where}: musterd exports no {metric}")
            for label in re.findall(r'(\w+)(?:=~|!~|!=|=)"', selector):
                if label not in labels.get(name, set()) | BUILT_IN:
                    out.append(f"{where}: {metric} has no label {label} in {PAGE}")
        for grouped in re.findall(r"by \(([^)]*)\) \((?:rate\()?(muster_[a-z_]+)", text):
            for label in grouped[0].replace(" ", "").split(","):
                name = re.sub(r"_(bucket|sum|count)$", "", grouped[1])
                if label not in labels.get(name, set()) | BUILT_IN:
                    out.append(f"{where}: {name} has no label {label} in {PAGE}")
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        if grid["x"] + grid["w"] > 24:
            out.append(f'panel "{panel["title"]}" is wider than the page')
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                if at.setdefault((x, y), panel["title"]) != panel["title"]:
                    out.append(f'panel "{panel["title"]}" lies over "{at[x, y]}"')
                    break
    if len({panel["id"] for panel in dashboard["panels"]}) != len(dashboard["panels"]):
        out.append("two panels have one id")
    out += [f"no panel shows {name}" for name in sorted(names) if name.startswith("muster_queue_") and name not in shown]
    return sorted(set(out))


def self_test():
    source = '"muster_nodes" "muster_queue_used" "muster_spans_lost_total"'
    docs = "| `muster_nodes` | gauge |\n| `muster_queue_used{queue}` | gauge |\n| `muster_spans_lost_total` | counter |\n"

    def board(expr, grid=None, more=()):
        panel = lambda i, e, g: {"id": i, "title": f"p{i}", "gridPos": g, "targets": [{"expr": e}]}
        grid = grid or {"x": 0, "y": 0, "w": 12, "h": 4}
        return {"templating": {"list": [{"name": "queue", "query": "x"}]},
                "panels": [panel(1, expr, grid), panel(2, 'sum by (queue) (muster_queue_used{queue="$queue"})', {"x": 12, "y": 0, "w": 12, "h": 4}), *more]}

    cases = [
        (board("muster_nodes"), None),
        (board("muster_pods"), "musterd exports no muster_pods"),
        (board("sum(muster_nodes"), "do not match"),
        (board('muster_nodes{queue="a"}'), "no label queue"),
        (board("sum by (path) (muster_nodes)"), "no label path"),
        (board('muster_queue_used{queue="$team"}'), "no variable $team"),
        (board("muster_nodes", {"x": 4, "y": 2, "w": 12, "h": 4}), "lies over"),
        (board("muster_nodes", {"x": 20, "y": 9, "w": 12, "h": 4}), "wider"),
        ({**board("muster_nodes"), "panels": board("muster_nodes")["panels"][:1]}, "no panel shows muster_queue_used"),
    ]
    for changed, expected in ((docs.replace("`muster_nodes`", ""), f"{PAGE} does not list muster_nodes"),
                              (docs + "| `muster_old{queue}` | gauge |\n", f"{PAGE} lists muster_old, which musterd does not export")):
        if problems(board("muster_nodes"), source, changed) != [expected]:
            sys.exit(f"not found: {expected}")
    for dashboard, expected in cases:
        found = problems(dashboard, source, docs)
        if (expected is None) != (not found) or (expected and not any(expected in each for each in found)):
            sys.exit(f"expected {expected!r}, found {found}")
    print(f"{len(cases) + 2} cases")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1])
    found = problems(json.loads((root / "deploy/dashboards/muster.json").read_text()),
                     (root / "service/telemetry/metrics.cc").read_text(), (root / PAGE).read_text())
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
