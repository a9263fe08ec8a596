#!/usr/bin/env python3
"""House rules that the build checks: include direction, bans in the pure core, file length.

  check_rules.py ROOT        print every violation; exit 1 if there is one
  check_rules.py --self-test prove that each rule catches what it is for
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# A folder may include the folders it names (and itself). Nothing sees tests/.
MAY_INCLUDE = {
    "state/base": [],
    "state/model": ["state/base"],
    "state/placement": ["state/base", "state/model"],
    "state/queueing": ["state/base"],
    "state/messages": ["state/base", "state/model"],
    "state/gangs": ["state/base", "state/model", "state/placement", "state/queueing"],
    "state/records": ["state/base", "state/model", "state/gangs", "state/messages", "proto/muster/store"],
    "state/starts": ["state/base", "state/model", "state/placement", "state/queueing", "state/messages", "state/gangs",
                     "state/records"],
    "state/drivers": ["state/base", "state/model", "state/placement", "state/queueing", "state/messages", "state/gangs",
                      "state/starts"],
    "state/machine": ["state"],
    "service/support": [],  # a leaf: what service/ and k8s-extender/ both need
    "k8s-extender": ["state", "k8s-extender", "service/support"],
    "service/store": ["state", "service/support"],
    "service/engine": ["state", "service/store", "service/support"],
    "service/security": ["service/support"],
    "service/http": ["service/support", "service/security"],
    "service/telemetry": [],
    "service/config": ["state", "service/security", "service/support"],
    "service/rpc": ["state", "service/engine", "service/support", "service/security", "proto/muster/v1", "proto/google/rpc"],
    "service/demo": ["state", "service", "k8s-extender"],
    "service": ["state", "service", "k8s-extender"],
    "clients": ["clients", "proto/muster/v1", "proto/google/rpc"],
}
# (pattern, where, why). The core has no clock, randomness, threads or I/O.
BANS = [
    (r"absl::Now\(|system_clock|steady_clock|time\(nullptr\)", "state/", "the core has no clock: time is an argument"),
    (r"std::random|std::mt19937|\brand\(\)", "state/", "the core has no randomness"),
    (r"std::thread|std::mutex|service/support|sleep_for|SleepFor", "state/", "the core has no threads"),
    (r"std::ifstream|std::ofstream|std::cout|<iostream>|socket\(", "state/", "the core does no I/O"),
    (r"absl::(Mutex|CondVar|Notification)\b", "", "use service/support/sync.h: ThreadSanitizer cannot see Debian's absl::Mutex"),
    *[(r"std::ifstream|\bfopen\(|YAML::LoadFile", side, "use ReadFile of service/support/file.h: a bound, and directories refused")
      for side in ("service/", "k8s-extender/")],
    (r"\bassert\(", "", "use MUSTER_CHECK: it stays on in production"),
    (r"std::string_view", "", "use absl::string_view: Debian's Abseil has a type of its own"),
]
MAX_LINES = 600


def folder_of(path):
    matches = [f for f in MAY_INCLUDE if str(path).startswith(f + "/")]
    return max(matches, key=len) if matches else None


def violations(root, files):
    out = []
    for path in files:
        if path.suffix not in (".h", ".cc") or str(path).startswith("tests/"):
            continue
        folder = folder_of(path)
        lines = (root / path).read_text().splitlines()
        if len(lines) > MAX_LINES:
            out.append(f"{path}: {len(lines)} lines; at most {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            include = re.match(r'#include "((?:state|service|k8s-extender|clients|proto|tests)/[^"]+)"', line)
            if include and folder:
                target = include.group(1)
                allowed = MAY_INCLUDE[folder] + [folder]
                if not any(target.startswith(a + "/") for a in allowed):
                    out.append(f"{path}:{number}: {folder} may not include {target}")
            for pattern, where, why in BANS:
                if str(path).startswith(where) and re.search(pattern, line.split("//")[0]):
                    out.append(f"{path}:{number}: {why}")
    return out


def self_test():
    cases = {
        "state/base/a.h": '#include "service/engine/engine.h"',
        "state/model/a.h": '#include "state/machine/machine.h"',
        "service/http/a.cc": '#include "state/base/check.h"',
        "clients/cpp/a.cc": '#include "state/base/check.h"',
        "state/machine/a.cc": "auto now = absl::Now();",
        "state/machine/b.cc": "std::thread t;",
        "state/machine/c.cc": "std::random_device d;",
        "state/machine/d.cc": "std::cout << 1;",
        "service/a.cc": "\n" * (MAX_LINES + 1),
        "service/b.cc": "assert(x);",
        "service/d.cc": "absl::Mutex m;",
        "service/config/a.cc": "std::ifstream in(path);",
        "k8s-extender/apiserver/a.cc": "YAML::LoadFile(path);",
        "service/c.h": '#include "tests/x.h"',
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            if not violations(root, [Path(name)]):
                print(f"self-test: nothing was found in {name}: {text[:60]!r}")
                return 1
        (root / "state/machine/fine.cc").write_text('#include "state/base/check.h"\n// absl::Now() in a comment\n')
        found = violations(root, [Path("state/machine/fine.cc")])
        if found:
            print("self-test: a clean file was refused:", found)
            return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1])
    names = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [Path(name) for name in names.stdout.split() if (root / name).is_file()]
    found = violations(root, files)
    print("\n".join(found))
    if not any(str(f).startswith("state/") for f in files):
        print("no source was found: nothing was checked")
        return 1
    return 1 if found else 0


sys.exit(main())
