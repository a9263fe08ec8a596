#include "clients/musterctl/store_commands.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/musterctl/output.h"
#include "muster/store/v1/records.pb.h"
#include "service/store/sqlite_store.h"
#include "state/persistence/records.h"

namespace muster {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "musterctl: " << Printable(std::string(status.message())) << "\n";
  return 1;
}

template <typename Message>
std::string AsJson(const std::string& value) {
  Message message;
  std::string text;
  if (!message.ParseFromString(value)) return "";
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  return google::protobuf::util::MessageToJsonString(message, &text, options).ok() ? text : "";
}

struct Kind {
  const char* name;
  std::string (*as_json)(const std::string& value);
};
constexpr std::array kKinds{Kind{"gang", AsJson<store::v1::GangRecord>},
                            Kind{"start", AsJson<store::v1::StartRecord>},
                            Kind{"commit", AsJson<store::v1::CommitRecord>},
                            Kind{"plans", AsJson<store::v1::PlansRecord>},
                            Kind{"effects", AsJson<store::v1::EffectsRecord>},
                            Kind{"queues", AsJson<store::v1::QueuesRecord>},
                            Kind{"answer", AsJson<store::v1::AnswerRecord>},
                            Kind{"node", AsJson<store::v1::NodeRecord>},
                            Kind{"pod", AsJson<store::v1::PodRecord>},
                            Kind{"podgroup", AsJson<store::v1::PodGroupRecord>},
                            Kind{"created", AsJson<store::v1::PodGroupRecord>},
                            Kind{"announcer", AsJson<store::v1::AnnouncerRecord>},
                            Kind{"submission", AsJson<store::v1::SubmissionRecord>}};

std::string KindNames() {
  return absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& kind) { out->append(kind.name); });
}

// The contents of the record; for kinds that this version does not know, its bytes.
std::string Readable(const Record& record) {
  std::string text;
  for (const Kind& kind : kKinds) {
    if (record.kind == kind.name) text = kind.as_json(record.value);
  }
  return text.empty() ? absl::StrCat("base64:", absl::Base64Escape(record.value)) : text;
}

// The last line of an export is the number of its records. A truncated export has no such line.
constexpr char kRecords[] = "records";

absl::StatusOr<Record> ReadLine(const std::string& line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  Record record;
  for (const auto& [key, text] : {std::pair<const char*, std::string*>{"kind", &record.kind},
                                  {"key", &record.key},
                                  {"incarnation", &record.incarnation},
                                  {"value", &record.value}}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", key, "\": expected a string"));
    }
    *text = found->get<std::string>();
  }
  const auto format = object.find("format");
  if (format == object.end() || !format->is_number_integer() || *format < 1 ||
      *format > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("\"format\": expected a number from 1 to 2147483647");
  }
  record.format = format->get<int32_t>();
  std::string bytes;
  if (!absl::Base64Unescape(record.value, &bytes) || bytes.empty()) {
    return absl::InvalidArgumentError("\"value\": expected bytes in base64");
  }
  record.value = std::move(bytes);
  return record;
}

}  // namespace

StoreCommands::StoreCommands(CLI::App* cli) {
  store_ = cli->add_subcommand("store", "the SQLite file with the durable records of musterd (store.path)");
  store_->require_subcommand(1);
  inspect_ = store_->add_subcommand("inspect", "show the contents; musterd may be running");
  verify_ = store_->add_subcommand("verify", "verify the checksums of every page and record");
  export_ = store_->add_subcommand("export", "write the records to standard output, one JSON object per line");
  import_ = store_->add_subcommand("import", "create a file from the records on standard input, as export wrote them");
  backup_ = store_->add_subcommand("backup", "make a consistent copy while musterd runs");
  upgrade_ = store_->add_subcommand(
      "upgrade",
      "change to the newest format, which older versions of Muster refuse; first stop musterd and back up the file");
  for (CLI::App* command : {inspect_, verify_, export_, import_, backup_, upgrade_}) {
    command->add_option("file", file_, "the store's file")->required();
  }
  inspect_->add_option("--kind", kind_, absl::StrCat("every record of this kind: ", KindNames()));
  backup_->add_option("to", to_, "the copy; must not exist yet")->required();
}

int StoreCommands::Run() const {
  if (inspect_->parsed()) return Inspect();
  if (verify_->parsed()) return Verify();
  if (export_->parsed()) return Export();
  if (import_->parsed()) return Import();
  if (upgrade_->parsed()) return Upgrade();
  return BackUp();
}

int StoreCommands::Inspect() const {
  const absl::StatusOr<StoreReport> report = ReadStore(file_);
  if (!report.ok()) return Fail(report.status());
  if (!kind_.empty()) {
    const auto is = [&](const Record& record) { return record.kind == kind_; };
    const bool known = std::any_of(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind_ == kind.name; });
    if (!known && std::none_of(report->records.begin(), report->records.end(), is)) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("--kind: \"", kind_, "\"; expected one of ", KindNames())));
    }
    for (const Record& record : report->records) {
      if (!is(record)) continue;
      std::cout << Printable(record.key) << "  " << Printable(record.incarnation) << "  " << Readable(record) << "\n";
    }
    return 0;
  }
  std::map<std::string, int64_t> kinds;
  for (const Record& record : report->records) ++kinds[record.kind];
  std::cout << "format:   " << report->format << " (this musterctl reads up to " << SqliteStore::kFormat << ")\n"
            << "epoch:    " << report->epoch << " (rises whenever a musterd takes the store over)\n"
            << "records:  " << report->records.size() << "\n";
  for (const auto& [kind, count] : kinds) std::cout << "  " << Printable(kind) << ": " << count << "\n";
  for (const std::string& problem : report->problems) std::cout << "DAMAGED:  " << Printable(problem) << "\n";
  return report->problems.empty() ? 0 : 1;
}

// Checks what would stop musterd: a record that it cannot read.
absl::Status CanBeLoaded(std::vector<Record> records) {
  if (const auto answers = TakeAnswers(&records); !answers.ok()) return answers.status();
  return RestoredRecords().Load(records);
}

int StoreCommands::Verify() const {
  absl::StatusOr<StoreReport> report = ReadStore(file_);
  if (!report.ok()) return Fail(report.status());
  if (const absl::Status loads = CanBeLoaded(report->records); !loads.ok()) {
    report->problems.emplace_back(loads.message());
  }
  for (const std::string& problem : report->problems) std::cout << Printable(problem) << "\n";
  if (report->problems.empty()) {
    std::cout << file_ << ": " << report->records.size() << " records, no damage\n";
    return 0;
  }
  std::cout << file_ << ": damaged; restore a backup. What can still be read: musterctl store export " << file_
            << " > records, then musterctl store import NEWFILE < records\n";
  return 1;
}

int StoreCommands::Export() const {
  const absl::StatusOr<StoreReport> report = ReadStore(file_);
  if (!report.ok()) return Fail(report.status());
  for (const Record& record : report->records) {
    // Escaped: keys may contain any bytes, a line is ASCII.
    std::cout << nlohmann::ordered_json{{"kind", record.kind},
                                        {"key", record.key},
                                        {"incarnation", record.incarnation},
                                        {"format", record.format},
                                        {"value", absl::Base64Escape(record.value)}}
                     .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  }
  std::cout << nlohmann::json{{kRecords, report->records.size()}} << "\n";
  for (const std::string& problem : report->problems) {
    std::cerr << "musterctl: skipped: " << Printable(problem) << "\n";
  }
  return report->problems.empty() ? 0 : 1;
}

int StoreCommands::Import() const {
  std::vector<Record> records;
  std::map<std::pair<std::string, std::string>, int> lines;  // by kind and key
  bool whole = false;
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    const auto fail = [&](absl::string_view why) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", why)));
    };
    if (whole) return fail("follows the line with the record count");
    if (const nlohmann::json last = nlohmann::json::parse(line, nullptr, false);
        last.is_object() && last.size() == 1 && last.contains(kRecords)) {
      whole = last[kRecords] == records.size();
      if (!whole) return fail(absl::StrCat("has ", line, ", but ", records.size(), " records precede it"));
      continue;
    }
    absl::StatusOr<Record> record = ReadLine(line);
    if (!record.ok()) return fail(record.status().message());
    const auto [first, fresh] = lines.emplace(std::pair(record->kind, record->key), number);
    if (!fresh) return fail(absl::StrCat("repeats the record of line ", first->second, ": ", RecordName(*record)));
    records.push_back(*std::move(record));
  }
  if (!whole) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("it ends without the line {\"", kRecords, "\":", records.size(),
                     "} after its records: the export is incomplete. To import it nevertheless, append that line")));
  }
  if (const absl::Status made = MakeStore(file_, records); !made.ok()) return Fail(made);
  std::cout << file_ << ": " << records.size() << " records written\n";
  return 0;
}

int StoreCommands::Upgrade() const {
  const absl::StatusOr<int> before = UpgradeStore(file_);
  if (!before.ok()) return Fail(before.status());
  if (*before == SqliteStore::kFormat) {
    std::cout << file_ << ": of format " << *before << " already, the newest that this musterctl knows\n";
  } else {
    std::cout << file_ << ": format " << *before << " -> " << SqliteStore::kFormat
              << "; versions of Muster that know only " << *before << " refuse it now\n";
  }
  return 0;
}

int StoreCommands::BackUp() const {
  if (const absl::Status copied = BackUpStore(file_, to_); !copied.ok()) return Fail(copied);
  std::cout << to_ << " written; musterd can start from it. Without Kubernetes, announce the nodes again "
            << "then, because a copy may be outdated. To move to another machine, stop musterd and move " << file_
            << " itself\n";
  return 0;
}

}  // namespace muster
