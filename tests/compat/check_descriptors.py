#!/usr/bin/env python3
"""What commit fbdcc39 promised on the wire still stands in proto/: files, messages, fields, enum values, services, methods.

  check_descriptors.py ROOT PROTOC              compare ROOT/proto with the kept FileDescriptorSet; exit 1 if something broke
  check_descriptors.py --self-test PROTOC       prove that each kind of breakage is found, and that additions are none
  check_descriptors.py --print ROOT PROTOC      the FileDescriptorSet of ROOT in the form that is kept

Kept is the text form, so that a change of it can be read. protoc writes and reads it: nothing else is needed here.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "fbdcc39/descriptors.txtpb"
KEPT_FACTS = 383  # a cut file would promise less
# muster.v1, and the error details that its statuses carry.
FILES = ["proto/google/rpc/error_details.proto", "proto/muster/v1/muster.proto", "proto/muster/v1/facts.proto",
         "proto/muster/v1/decisions.proto"]


def print_set(root, files, protoc):
    """The FileDescriptorSet of some files as protoc prints it, without comments and without what they import."""
    binary = subprocess.run([protoc, f"-I{root}", "--descriptor_set_out=/dev/stdout", *files], capture_output=True)
    if binary.returncode != 0:
        raise SystemExit("protoc cannot read the present protos:\n" + binary.stderr.decode())
    command = [protoc, "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"]
    return subprocess.run(command, input=binary.stdout, capture_output=True, check=True).stdout.decode()


def parse(text):
    """protoc's text form, one item a line, as dictionaries of lists."""
    stack = [{}]
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            stack[-1].setdefault(line[:-2], []).append({})
            stack.append(stack[-1][line[:-2]][-1])
        elif re.fullmatch(r'\w+: .+', line):
            key, value = line.split(": ", 1)
            stack[-1].setdefault(key, []).append(value.strip('"'))
        elif line and not line.startswith("#"):
            raise SystemExit(f"line {number} of a descriptor set is not understood: {line}")
    if len(stack) != 1:
        raise SystemExit("a descriptor set ends in the middle")
    return stack[0]


def one(item, key, default=""):
    return item.get(key, [default])[0]


def field_fact(message, field):
    """Number, label, type, oneof and JSON name of a field, in words."""
    words = [f"number {one(field, 'number')}"]
    label = one(field, "label").replace("LABEL_", "").lower()
    proto3_optional = one(field, "proto3_optional") == "true"
    # Without the word, proto3 has no "optional": presence is not told.
    words.append("optional" if proto3_optional else "singular" if label == "optional" else label)
    words.append(one(field, "type_name").lstrip(".") or one(field, "type").replace("TYPE_", "").lower())
    if "oneof_index" in field and not proto3_optional:
        words.append("of oneof " + one(message["oneof_decl"][int(one(field, "oneof_index"))], "name"))
    words += [f"{key} {value}" for key, values in sorted(one(field, "options", {}).items()) for value in values
              if key in ("packed", "jstype")]
    return ", ".join(words + [f"in JSON {one(field, 'json_name')}"])


def facts_of(text):
    """name -> what clients rely on about it. Messages and the like are facts of their own, so that one that moved or went is one
    difference and not only those of its fields."""
    out = {}

    def enums(parent, scope, where):
        for enum in parent.get("enum_type", []):
            name = f"{scope}.{one(enum, 'name')}"
            out[f"enum {name}"] = where
            for value in enum.get("value", []):
                out[f"enum value {name}.{one(value, 'name')}"] = f"number {one(value, 'number')}"

    def message(m, scope, where):
        name = f"{scope}.{one(m, 'name')}"
        entry = one(one(m, "options", {}), "map_entry") == "true"
        out[f"message {name}"] = where + (", entries of a map" if entry else "")
        for field in m.get("field", []):
            out[f"field {name}.{one(field, 'name')}"] = field_fact(m, field)
        enums(m, name, where)
        for nested in m.get("nested_type", []):
            message(nested, name, where)

    for file in parse(text).get("file", []):
        package, where = one(file, "package"), f"in {one(file, 'name')}"
        out[f"file {one(file, 'name')}"] = f"package {package}, {one(file, 'syntax', 'proto2')}"
        for m in file.get("message_type", []):
            message(m, package, where)
        enums(file, package, where)
        for service in file.get("service", []):
            name = f"{package}.{one(service, 'name')}"
            out[f"service {name}"] = where
            for method in service.get("method", []):
                takes, gives = (one(method, side).lstrip(".") for side in ("input_type", "output_type"))
                takes = ("stream of " if one(method, "client_streaming") == "true" else "") + takes
                gives = ("stream of " if one(method, "server_streaming") == "true" else "") + gives
                out[f"method {name}.{one(method, 'name')}"] = f"takes {takes}, gives {gives}"
    return out


def breakages(kept, present):
    """What was there and is not there unchanged. Additions are none."""
    out = []
    for name, was in kept.items():
        if name not in present:
            out.append(f"{name} is gone (it was: {was})")
        elif present[name] != was:
            out.append(f"{name} was: {was}; is: {present[name]}")
    return out


EXAMPLE = """syntax = "proto3";
package example;
message Other { string x = 1; }
message Thing {
  string plain = 1;
  optional int32 perhaps = 2;
  repeated string many = 3;
  map<string, string> table = 4;
  Other other = 5;
  oneof either { string left = 6; string right = 7; }
  bytes raw = 11;
  enum Kind { UNSET = 0; A = 1; B = 2; }
  Kind kind = 8;
  message Inner { string x = 1; }
}
enum Top { ZERO = 0; ONE = 1; }
service Service {
  rpc Get(Thing) returns (Thing);
  rpc Watch(Thing) returns (stream Thing);
}
service Second { rpc Get(Other) returns (Other); }
"""
# (what stands there, what is put instead, what must be said); nothing said: no breakage.
CASES = [
    ("string plain = 1;", "string plain = 9;", "field example.Thing.plain was: number 1"),
    ("string plain = 1;", "string simple = 1;", "field example.Thing.plain is gone"),
    ("string plain = 1;", "bytes plain = 1;", "field example.Thing.plain was: number 1, singular, string"),
    ("string plain = 1;", "optional string plain = 1;", "is: number 1, optional, string"),
    ("string plain = 1;", "repeated string plain = 1;", "is: number 1, repeated, string"),
    ("string plain = 1;", 'string plain = 1 [json_name = "p"];', "in JSON plain; is:"),
    ("string plain = 1;", "reserved 1;", "field example.Thing.plain is gone"),
    ("optional int32 perhaps", "int32 perhaps", "field example.Thing.perhaps was: number 2, optional"),
    ("repeated string many", "string many", "field example.Thing.many was: number 3, repeated"),
    ("map<string, string>", "map<string, int32>", "field example.Thing.TableEntry.value was:"),
    ("map<string, string> table", "repeated Other table", "message example.Thing.TableEntry is gone"),
    ("Other other = 5", "Inner other = 5", "field example.Thing.other was:"),
    ("string right = 7; }", "} string right = 7;", "of oneof either, in JSON right; is:"),
    ("oneof either {", "oneof neither {", "is: number 6, singular, string, of oneof neither"),
    ("oneof either { string left = 6;", "string left = 6; oneof either {", "field example.Thing.left was:"),
    ("A = 1;", "", "enum value example.Thing.Kind.A is gone"),
    ("A = 1;", "A = 3;", "enum value example.Thing.Kind.A was: number 1; is: number 3"),
    ("A = 1;", "C = 1;", "enum value example.Thing.Kind.A is gone"),
    ("ONE = 1;", "", "enum value example.Top.ONE is gone"),
    ("enum Top {", "enum Head {", "enum example.Top is gone"),
    ("message Inner { string x = 1; }", "", "message example.Thing.Inner is gone"),
    ("(stream Thing)", "(Thing)", "method example.Service.Watch was: takes example.Thing, gives stream of"),
    ("rpc Get(Thing)", "rpc Get(stream Thing)", "method example.Service.Get was:"),
    ("rpc Get(Thing)", "rpc Get(Other)", "method example.Service.Get was: takes example.Thing"),
    ("Get(Thing) returns (Thing)", "Get(Thing) returns (Other)", "method example.Service.Get was:"),
    ("rpc Get(Thing) returns (Thing);", "", "method example.Service.Get is gone"),
    ("rpc Watch", "rpc Look", "method example.Service.Watch is gone"),
    ("service Second { rpc Get(Other) returns (Other); }", "", "service example.Second is gone"),
    ("package example;", "package sample;", "file example.proto was: package example"),
    # Additions, also in the midst; another order; comments.
    ("string plain = 1;", "string plain = 1; int64 more = 100;", None),
    ("string right = 7; }", "string right = 7; string third = 9; }", None),
    ("B = 2;", "B = 2; C = 3;", None),
    ("rpc Get(Thing)", "rpc Put(Thing) returns (Thing); rpc Get(Thing)", None),
    ("message Thing {", "message Fresh { string x = 1; }\nenum New { NIL = 0; }\nmessage Thing {", None),
    ("string plain = 1;\n  optional int32 perhaps = 2;", "optional int32 perhaps = 2;\n  // As it is.\n  string plain = 1;", None),
]


def self_test(protoc):
    with tempfile.TemporaryDirectory() as folder:
        def facts(text):
            (Path(folder) / "example.proto").write_text(text)
            return facts_of(print_set(folder, ["example.proto"], protoc))

        kept = facts(EXAMPLE)
        for old, new, said in CASES:
            if EXAMPLE.count(old) != 1:
                print(f"self-test: {old!r} does not stand in the example once")
                return 1
            found = breakages(kept, facts(EXAMPLE.replace(old, new)))
            if (said is None) != (not found) or (said is not None and not any(said in f for f in found)):
                print(f"self-test: {old!r} became {new!r}; expected {said!r}, found {found}")
                return 1
    print(f"{len(CASES)} changes: each breakage is found, no addition is called one")
    return 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2])
    if sys.argv[1] == "--print":
        sys.stdout.write(print_set(sys.argv[2], FILES, sys.argv[3]))
        return 0
    kept = facts_of(KEPT.read_text())
    if len(kept) != KEPT_FACTS:
        print(f"{KEPT.name} tells {len(kept)} facts, not {KEPT_FACTS}: it is not as it was kept")
        return 1
    found = breakages(kept, facts_of(print_set(sys.argv[1], FILES, sys.argv[2])))
    for line in found:
        print(line)
    print(f"{len(kept)} facts of fbdcc39, {len(found)} broken" if found else f"{len(kept)} facts of fbdcc39 stand unchanged")
    return 1 if found else 0


sys.exit(main())
