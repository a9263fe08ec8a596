#!/usr/bin/env python3
"""House rules that the build checks: include direction, bans in the pure core, file length, how many components a class uses.

  check_rules.py ROOT        print every violation; exit 1 if there is one
  check_rules.py --self-test prove that each rule catches what it is for
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The folders and files that a folder, or a source file without its ending, may include besides itself. No entry
# includes tests/. The process and the Kubernetes side include each other only where they are wired: in app and main.
# The components of the core, lowest first: a component may include those before it.
CORE = ["state/base", "state/model", "state/api", "state/cluster", "state/planner", "state/gangs", "state/queueing",
        "state/persistence", "state/reservations", "state/binding", "state/scheduling", "state/views",
        "state/frontends"]
MAY_INCLUDE = {
    **{room: CORE[:i] for i, room in enumerate(CORE)},
    "state/cluster": ["state/base", "state/model"],  # includes no commands
    "state/persistence": [*CORE[:CORE.index("state/persistence")], "muster/store"],
    "state/machine": ["state"],
    "state/recording": ["state"],
    "state/whatif": ["state"],
    "state/simulate": ["state"],
    "support": [],  # a leaf: shared by service/ and k8s-extender/
    "k8s-extender": ["state", "support"],
    "service/store": ["state", "support"],
    "service/tracing": ["state/base", "support"],
    "service/engine": ["state", "service/store", "support", "service/tracing/span"],
    "service/recorder": ["state", "service/engine/command_recorder", "support"],
    "service/security": ["support"],
    "service/http": ["support", "service/security"],
    "service/telemetry": ["support"],
    "service/config": ["state", "k8s-extender/dialects/owners", "service/security", "support", "service/tracing"],
    "service/rpc": ["state", "service/engine", "service/tracing", "support", "service/security", "muster/v1", "google/rpc"],
    "service/demo": ["state", "service/engine", "service/rpc", "support"],
    "service/app": ["support", "state", "service", "k8s-extender"],
    "service/gauges": ["support", "state", "service", "k8s-extender"],
    "service/main": ["service", "k8s-extender"],
    "tools": [],
    "clients/musterctl/store_commands": ["clients", "service/store", "state/api", "state/persistence", "muster/store"],
    "clients/musterctl/simulate": ["clients", "support", "state"],
    "clients/musterctl/trace_file": ["state"],
    "clients/musterctl/chart": ["state"],
    "clients/musterctl/replay": ["clients", "service/recorder/segment", "support", "state"],
    "clients": ["clients", "muster/v1", "google/rpc"],
}
# The text of a reason and the message of a status are for people. Whether they changed may be compared.
TEXT = r"(\.text\b(?!\()|\bwhy\b(?!\()|\bmessage\(\))"
BY_TEXT = "errors and reasons are not recognised by their text: give them a type, as in state/base/problem.h"
# (pattern, where, why). The core has no clock, randomness, threads or I/O.
BANS = [
    (r'#include ".*\.cc"', "", "a source is compiled, not included"),
    (r"absl::Now\(|system_clock|steady_clock|time\(nullptr\)", "state/", "the core has no clock: time is an argument"),
    *[(r"absl::Now\(|GetCurrentTimeNanos", side, "deadlines: Clock or SteadyNow(); what people are shown: WallNow() of support/clock.h")
      for side in ("service/", "k8s-extender/")],
    (r"std::random|std::mt19937|\brand\(\)", "state/", "the core has no randomness"),
    (r"std::thread|std::mutex|sleep_for|SleepFor", "state/", "the core has no threads"),
    (r"std::ifstream|std::ofstream|std::cout|<iostream>|socket\(", "state/", "the core does no I/O"),
    (r"absl::(Mutex|CondVar|Notification)\b", "", "use support/sync.h: ThreadSanitizer cannot see Debian's absl::Mutex"),
    *[(r"std::ifstream|\bfopen\(|YAML::LoadFile", side, "use ReadFile of support/file.h: a bound, and directories refused")
      for side in ("service/", "k8s-extender/")],
    *[(r"(\.|->)rooms\(\)", side, "Machine::rooms() is for tests: use Machine::reader()")
      for side in ("service/", "k8s-extender/", "clients/", "state/recording/", "state/whatif/", "state/simulate/")],
    (r"gangs(_|)(->|\.)SetState\(", "state/(?!binding/pod_lifecycle)", "PodLifecycle::Apply changes the state of a pod"),
    (r"const Gang[&*]", "state/(queueing/|scheduling/|reservations/(backfill|domains|future_res|projected))",
     "what waits, plans, reserves and is ordered is a Claim"),
    (r"\bassert\(", "", "use MUSTER_CHECK: it stays on in production"),
    (r"std::string_view", "", "use absl::string_view: Debian's Abseil has a type of its own"),
    *[(pattern, "", BY_TEXT) for pattern in (
        rf"\b(StartsWith|EndsWith|StrContains|ConsumePrefix|ConsumeSuffix)(IgnoreCase)?\([^;]*{TEXT}",
        rf"{TEXT}\)?\.(find|rfind|substr|starts_with|ends_with|compare)\(",
        rf"{TEXT} [!=]= (\"|k[A-Z])")],
]
# Members of classes with Recorded() that a recording does not contain, and why. Pointers, constants and names that end
# in "settings_" need not be listed: they are given at construction.
NOT_RECORDED = {
    "Gangs": {"pods_", "gangs_", "lone_",  # rebuilt
              "touched_"},        # empty between two commands
    "Deadlines": {"order_",  # rebuilt
                  "dirty_"},  # empty between two commands
    "Cluster": {"released_classes_"},  # empty between two commands
    "NodeOffer": {"set_"},  # rebuilt
    "Activations": {"nominate_"},   # a setting
    "QueueTree": {"queues_", "ids_", "resources_"},  # rebuilt
    "Queues": {"shares_", "shares_known_"},  # rebuilt in each round
    "FutureReservations": {"terminating_by_node_"},  # rebuilt
    "PodAffinity": {"known_", "terms_", "unused_", "ids_", "by_pair_", "not_indexed_", "classes_by_pair_", "labels_",
                   "epoch_"},  # rebuilt
    # Components without a state of their own, and caches.
    "MachineRooms": {"index", "topology", "domains", "eligibility", "recorder", "reasons", "placer", "future_placer",
                     "planning", "plan_lifecycle", "broken_plans", "member_filter", "extender_frontend",
                     "verbs_frontend", "submissions_frontend", "gang_facts", "pod_facts", "ingest", "queue_step",
                     "reconciler", "reader"},
}
MAX_LINES = 500
# How many components (the types of MachineRooms' members) a class or struct in state/ may point to: beyond that, it has
# more than one subject and is split. A struct that only bundles pointers counts as well, for itself and for its class.
MAX_COMPONENTS = 10


def folder_of(path):
    matches = [f for f in MAY_INCLUDE if str(path).startswith((f + "/", f + "."))]
    return max(matches, key=len) if matches else None


def not_recorded(path, text):
    """Members of a class with Recorded() that are neither recorded nor excused."""
    for recorded in re.finditer(r"^  static constexpr auto Recorded\(\) \{(.*?)\n  \}", text, re.S | re.M):
        names = re.findall(r"&(\w+)::(\w+_?)\b", recorded.group(1))
        kind = names[0][0]
        kept = {name for _, name in names} | NOT_RECORDED.get(kind, set())
        head = re.search(rf"^(class|struct) {kind} [^;{{]*\{{$", text, re.M)
        if head is None:
            yield f"{path}: Recorded() names members of {kind}, which is no class here"
            continue
        begin = head.end()
        body = re.sub("//.*", "", text[begin:text.index("\n};", begin)])
        underscore = "_" if head.group(1) == "class" else ""
        if "kNotRecorded" in body:
            continue  # the compiler counts its members
        # At the class's own indentation; not those of structs within it.
        for member in re.finditer(rf"^  (?! )(?!return |using |friend |static )([^()\n]*?)\b(\w+{underscore})(?: = [^;]*|\{{[^;]*)?;", body, re.M):
            kind_of, name = member.groups()
            given = kind_of.startswith("const ") or "* " in kind_of or kind_of.endswith("*") or name.endswith("settings_")
            if name not in kept and not given:
                yield f"{path}: {kind}::{name} is neither in Recorded() nor excused in NOT_RECORDED: a recording would lose it"


def components(root):
    """The types of the members of MachineRooms."""
    header = root / "state/machine/machine.h"
    text = header.read_text() if header.is_file() else ""
    rooms = re.search(r"^struct MachineRooms \{$(.*?)^\};$", text, re.S | re.M)
    return set(re.findall(r"^  ([A-Z]\w+) \w+;$", rooms.group(1), re.M)) if rooms else set()


def components_used(text, known):
    """(class or struct, how many pointers and references to components its members hold)."""
    own, values, kinds = {}, {}, {}
    for head in re.finditer(r"^( *)(class|struct) (\w+)(?: final)?(?: : [^;{]*)? \{$", text, re.M):
        indent, kind, name = head.groups()
        body = text[head.end():text.index(f"\n{indent}}};", head.end()) + 1]
        member = rf"^{indent}  (?:const )?(\w+)"
        own[name] = sum(type_ in known for type_ in re.findall(rf"{member}(?: const)?[*&] ?(?:const )?\w+(?: = \w+)?;", body, re.M))
        values[name] = re.findall(rf"{member} \w+;", body, re.M)
        kinds[name] = kind
    for name in own:
        yield name, own[name] + sum(own[value] for value in values[name] if kinds.get(value) == "struct")


def uses_too_many(used):
    """`used`: (path, class or struct) -> how many components its members point to."""
    for (path, name), count in used.items():
        if count > MAX_COMPONENTS:
            yield f"{path}: {name} holds {count} pointers to components; at most {MAX_COMPONENTS}: split it by subject"


def violations(root, files):
    out = []
    known, used = components(root), {}
    for path in files:
        if path.suffix not in (".h", ".cc") or str(path).startswith("tests/"):
            continue
        folder = folder_of(path)
        if folder is None:
            out.append(f"{path}: nothing says what it may include: name its folder in MAY_INCLUDE")
        text = (root / path).read_text()
        lines = text.splitlines()
        out.extend(not_recorded(path, text))
        if str(path).startswith("state/"):
            used.update({(path, name): count for name, count in components_used(text, known)})
        if len(lines) > MAX_LINES:
            out.append(f"{path}: {len(lines)} lines; at most {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            include = re.match(r'#include "((?:support|state|service|k8s-extender|clients|muster|google|tests)/[^"]+)"', line)
            if include and folder:
                target = include.group(1)
                allowed = MAY_INCLUDE[folder] + [folder]
                if not any(target.startswith((a + "/", a + ".")) for a in allowed):
                    out.append(f"{path}:{number}: {folder} may not include {target}")
            for pattern, where, why in BANS:
                if re.match(where, str(path)) and re.search(pattern, line.split("//")[0]):
                    out.append(f"{path}:{number}: {why}")
    return out + list(uses_too_many(used))


RECORDED = """class A {
 public:
  static constexpr auto Recorded() {
    return std::tuple(&A::old_, &A::new_);
  }

 private:
  struct Inner {
    int inner_ = 0;
  };
  Gangs* gangs_;
  const int64_t limit_ms_;
  ById<std::unique_ptr<Inner>> old_;
  int64_t new_;
};
"""

# A machine with components C1 to C11, and members that point to those from `first` to `last`.
MACHINE = "struct MachineRooms {\n" + "".join(f"  C{i} c{i};\n" for i in range(1, 12)) + "};\n"


def pointers(first, last):
    return "".join(f"  {'const ' if i % 2 else ''}C{i}{'*' if i % 3 else '&'} c{i}_;\n" for i in range(first, last + 1))


def self_test():
    # (file, its contents, a part of the expected message)
    refused = [
        ("state/base/a.h", '#include "service/engine/engine.h"', "may not include"),
        ("state/model/a.h", '#include "state/machine/machine.h"', "may not include"),
        ("state/model/b.h", '#include "support/json.h"', "may not include"),
        ("state/machine/e.cc", '#include "tests/verify/hash.h"', "may not include"),
        ("state/recording/a.cc", '#include "tests/verify/hash.h"', "may not include"),
        ("service/engine/a.cc", '#include "tests/verify/invariants.h"', "may not include"),
        ("service/rpc/b.cc", "machine.rooms().cluster;", "reader()"),
        ("state/queueing/c.cc", "Reason Check(const Gang& gang);", "is a Claim"),
        ("service/http/a.cc", '#include "state/base/check.h"', "may not include"),
        ("support/a.cc", '#include "state/base/check.h"', "may not include"),
        ("support/b.cc", '#include "service/engine/engine.h"', "may not include"),
        ("service/rpc/a.cc", '#include "k8s-extender/dialects/dialects.h"', "may not include"),
        ("service/config/b.cc", '#include "k8s-extender/apiserver/kube_config.h"', "may not include"),
        ("service/demo/a.cc", '#include "k8s-extender/dialects/dialects.h"', "may not include"),
        ("service/demo/b.cc", '#include "service/app.h"', "may not include"),
        ("state/base/b.cc", '#include "state/base/text.cc"', "not included"),
        ("k8s-extender/webhook/a.cc", '#include "service/http/http_listener.h"', "may not include"),
        ("k8s-extender/actuator/a.cc", '#include "service/app.h"', "may not include"),
        ("clients/cpp/a.cc", '#include "state/base/check.h"', "may not include"),
        ("service/http/c.h", '#include "tests/x.h"', "may not include"),
        ("service/new/a.cc", "", "name its folder"),
        ("service/apples.cc", "", "name its folder"),
        ("state/machine/a.cc", "auto now = absl::Now();", "no clock"),
        ("state/machine/b.cc", "std::thread t;", "no threads"),
        ("state/machine/c.cc", "std::random_device d;", "no randomness"),
        ("state/machine/d.cc", "std::cout << 1;", "no I/O"),
        ("state/machine/f.cc", "r_.gangs->SetState(pod, now);", "PodLifecycle"),
        ("service/app.cc", "\n" * (MAX_LINES + 1), "lines; at most"),
        ("service/http/b.cc", "assert(x);", "MUSTER_CHECK"),
        ("service/http/d.cc", "absl::Mutex m;", "sync.h"),
        ("service/config/a.cc", "std::ifstream in(path);", "ReadFile"),
        ("k8s-extender/apiserver/a.cc", "YAML::LoadFile(path);", "ReadFile"),
        ("service/rpc/c.cc", 'if (absl::StartsWith(status.message(), "queue ")) return;', "by their text"),
        ("state/views/a.cc", "if (!absl::StrContains(gang.reason.text, kStale)) return;", "by their text"),
        ("state/views/b.cc", 'const bool head = reason.text.rfind("another gang", 0) == 0;', "by their text"),
        ("state/gangs/e.cc", "return status.message() == kStopped;", "by their text"),
        ("state/gangs/c.h", RECORDED.replace("new_;", "new_;\n  int64_t lost_ = 0;"),
         "A::lost_ is neither"),
        ("state/gangs/f.h", "class A {\n" + pointers(1, 11) + "};\n", "A holds 11 pointers"),
        ("state/gangs/g.h", "struct ARooms {\n" + pointers(1, 11) + "};\n", "ARooms holds 11 pointers"),
        ("state/gangs/h.h", "struct ARooms {\n" + pointers(1, 5) + "};\nclass A {\n  const ARooms r_;\n" + pointers(6, 11) +
         "};\n", "A holds 11 pointers"),
    ]
    fine = [
        ("state/gangs/d.h", RECORDED),
        ("state/gangs/j.h", "class A {\n" + pointers(1, 10) + "  const int64_t* now_ms_;\n  C11 own_;\n};\n"),
        ("state/machine/machine.h", MACHINE),
        ("state/machine/fine.cc", '#include "state/base/check.h"\n// absl::Now() in a comment\n'),
        ("k8s-extender/apiserver/fine.cc", '#include "k8s-extender/dialects/keys.h"\n#include "support/json.h"\n'),
        ("service/app.h", '#include "k8s-extender/webhook/extender.h"\n#include "service/engine/engine.h"\n'),
        ("service/main.cc", '#include "k8s-extender/dialects/dialects.h"\n#include "service/app.h"\n'),
        ("service/engine/fine.cc", "if (last_error_ != status.message()) Log(reason.text);"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "state/machine").mkdir(parents=True)
        (root / "state/machine/machine.h").write_text(MACHINE)

        def said_of(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            return violations(root, [Path(name)])

        for name, text, expected in refused:
            found = said_of(name, text)
            if len(found) != 1 or expected not in found[0]:
                print(f"self-test: {name} with {text[:60]!r}: expected \"{expected}\", got {found}")
                return 1
        for name, text in fine:
            if found := said_of(name, text):
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
