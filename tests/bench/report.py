#!/usr/bin/env python3
"""Prints what tools/bench.sh measured.

report.py table FILE TARGETS [all]     each figure beside its target; all: fails if a target has no figure
report.py compare FILE TARGETS OUT     each figure of the older and the present programs, and the ratio; kept in OUT
"""
import json
import statistics
import sys

WORSE = 1.10  # ratios beyond this are marked
DEFAULT_TRIES = 64  # placement_bench also measures fewer, for comparison: stored, not printed


def rows(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.startswith("{")]


def table(measured, targets):
    print(f"{'figure':100} {'measured':>16} {'target':>14}")
    for row in measured:
        target = targets.get(row["figure"], {})
        fewer_tries = "tries" in row and not row["figure"].endswith(f"at most {DEFAULT_TRIES} tries")
        if fewer_tries and "limit" not in target:
            continue
        value = row.get(target.get("of", "median"), row["median"])
        limit = target.get("limit")
        sign, met = "", ""
        if limit is not None:
            sign = ">=" if target.get("at_least") else "<="
            met = "met" if (value >= limit if target.get("at_least") else value <= limit) else "MISSED"
        shown = "" if limit is None else limit
        print(f"{row['figure']:100} {value:>10.4g} {row['unit']:5} {sign:>3} {shown:>9} {met}")


def more_is_better(figure, unit, targets):
    return targets.get(figure, {}).get("at_least", False) or unit.endswith("/s") or unit == "x"


def compare(measured, targets, out):
    values = {}  # figure -> which -> medians of the runs
    units = {}
    for row in measured:
        values.setdefault(row["figure"], {}).setdefault(row["which"], []).append(row["median"])
        units[row["figure"]] = row["unit"]
    print(f"{'figure (median of the runs)':100} {'older':>10} {'present':>10} {'':6} {'ratio':>6}  in one round")
    kept = []
    unknown = {"older": [], "present": []}
    for figure, of in values.items():
        if len(of) < 2:
            unknown[next(iter(of))].append(figure)
            continue
        older, present = (statistics.median(of[which]) for which in ("older", "present"))
        ratio = present / older if older else float("nan")
        by_round = [new / old for old, new in zip(of["older"], of["present"]) if old] or [float("nan")]
        better_up = more_is_better(figure, units[figure], targets)
        worse = bool(ratio * WORSE < 1 if better_up else ratio > WORSE)
        kept.append({"figure": figure, "unit": units[figure], "older": older, "present": present, "ratio": ratio,
                     "more_is_better": better_up, "worse": worse, "older_runs": of["older"],
                     "present_runs": of["present"]})
        print(f"{figure:100} {older:>10.4g} {present:>10.4g} {units[figure]:6} {ratio:>6.3g}"
              f"  {min(by_round):.3g} to {max(by_round):.3g}{'  WORSE' if worse else ''}")
    for which, figures in unknown.items():
        for figure in figures:
            print(f"skipped: only the {which} programs know: {figure}")
    worse = sum(row["worse"] for row in kept)
    print(f"{len(kept)} figures compared, {worse} more than {WORSE - 1:.0%} worse")
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"compared": kept, "only": unknown}, file, indent=1)
        file.write("\n")


def main(args):
    whole = args[:1] == ["table"] and args[3:] == ["all"]
    if not whole and (args[:1], len(args)) not in ((["table"], 3), (["compare"], 4)):
        sys.exit(__doc__)
    with open(args[2], encoding="utf-8") as file:
        targets = json.load(file)
    if args[0] == "table":
        table(rows(args[1]), targets)
        missing = sorted(set(targets) - {row["figure"] for row in rows(args[1])}) if whole else []
        for figure in missing:
            print(f"no figure for the target of: {figure}")
        sys.exit(1 if missing else 0)
    else:
        compare(rows(args[1]), targets, args[3])


if __name__ == "__main__":
    main(sys.argv[1:])
