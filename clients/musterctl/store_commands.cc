#include "clients/musterctl/store_commands.h"

#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "clients/musterctl/output.h"
#include "proto/muster/store/v1/records.pb.h"
#include "service/store/sqlite_store.h"

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

// What the record says; of kinds that this version does not know, its bytes.
std::string Readable(const Record& record) {
  std::string text;
  if (record.kind == "gang") text = AsJson<store::v1::GangRecord>(record.value);
  if (record.kind == "start") text = AsJson<store::v1::StartRecord>(record.value);
  if (record.kind == "commit") text = AsJson<store::v1::CommitRecord>(record.value);
  if (record.kind == "plans") text = AsJson<store::v1::PlansRecord>(record.value);
  if (record.kind == "effects") text = AsJson<store::v1::EffectsRecord>(record.value);
  if (record.kind == "queues") text = AsJson<store::v1::QueuesRecord>(record.value);
  if (record.kind == "node") text = AsJson<store::v1::NodeRecord>(record.value);
  if (record.kind == "pod") text = AsJson<store::v1::PodRecord>(record.value);
  if (record.kind == "podgroup" || record.kind == "created") text = AsJson<store::v1::PodGroupRecord>(record.value);
  if (record.kind == "announcer") text = AsJson<store::v1::AnnouncerRecord>(record.value);
  if (record.kind == "submission") text = AsJson<store::v1::SubmissionRecord>(record.value);
  if (record.kind == "answer") text = AsJson<store::v1::AnswerRecord>(record.value);
  return text.empty() ? absl::StrCat("base64:", absl::Base64Escape(record.value)) : text;
}

absl::StatusOr<Record> ReadLine(const std::string& line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("is no JSON object");
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
  if (format == object.end() || !format->is_number_integer()) {
    return absl::InvalidArgumentError("\"format\": expected a number");
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
  store_ = cli->add_subcommand("store", "the file in which musterd keeps what it promised (store.path)");
  store_->require_subcommand(1);
  inspect_ = store_->add_subcommand("inspect", "what is in it; musterd may be running");
  verify_ = store_->add_subcommand("verify", "whether every page and every record is as it was written");
  export_ = store_->add_subcommand("export", "its records on standard output, one JSON object a line");
  import_ = store_->add_subcommand("import", "a new file with the records on standard input, as export wrote them");
  backup_ = store_->add_subcommand("backup", "a copy as it is at one moment, while musterd goes on writing");
  upgrade_ = store_->add_subcommand(
      "upgrade",
      "the newest format, which older versions of Muster refuse; stop musterd, and back the file up, before");
  for (CLI::App* command : {inspect_, verify_, export_, import_, backup_, upgrade_}) {
    command->add_option("file", file_, "the store's file")->required();
  }
  inspect_->add_option(
      "--kind", kind_,
      "every record of this kind: gang, start, commit, plans, effects, answer; node, pod, podgroup, announcer, "
      "submission; created");
  backup_->add_option("to", to_, "the copy; must not be there")->required();
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
    for (const Record& record : report->records) {
      if (record.kind != kind_) continue;
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

int StoreCommands::Verify() const {
  const absl::StatusOr<StoreReport> report = ReadStore(file_);
  if (!report.ok()) return Fail(report.status());
  for (const std::string& problem : report->problems) std::cout << Printable(problem) << "\n";
  if (report->problems.empty()) {
    std::cout << file_ << ": " << report->records.size() << " records, no damage\n";
    return 0;
  }
  std::cout << file_ << ": damaged; put a backup in its place. What can still be read: musterctl store export " << file_
            << " > records, then musterctl store import NEWFILE < records\n";
  return 1;
}

int StoreCommands::Export() const {
  const absl::StatusOr<StoreReport> report = ReadStore(file_);
  if (!report.ok()) return Fail(report.status());
  for (const Record& record : report->records) {
    // Escaped: keys may hold any bytes, a line is ASCII.
    std::cout << nlohmann::ordered_json{{"kind", record.kind},
                                        {"key", record.key},
                                        {"incarnation", record.incarnation},
                                        {"format", record.format},
                                        {"value", absl::Base64Escape(record.value)}}
                     .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  }
  for (const std::string& problem : report->problems) {
    std::cerr << "musterctl: left out: " << Printable(problem) << "\n";
  }
  return report->problems.empty() ? 0 : 1;
}

int StoreCommands::Import() const {
  std::vector<Record> records;
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    absl::StatusOr<Record> record = ReadLine(line);
    if (!record.ok()) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", record.status().message())));
    }
    records.push_back(*std::move(record));
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
              << "; versions of Muster that know only " << *before << " refuse it from now on\n";
  }
  return 0;
}

int StoreCommands::BackUp() const {
  if (const absl::Status copied = BackUpStore(file_, to_); !copied.ok()) return Fail(copied);
  std::cout << to_ << " written; musterd starts from it as from the original\n";
  return 0;
}

}  // namespace muster
