#include "clients/musterctl/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr double kMaxS = 1e10;  // 300 years: anything longer is a mistake
constexpr size_t kMaxListedProblems = 20;

// splitmix64 (Steele, Lea, Flood 2014): the standard library's distributions differ between machines.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  // A number above 0, at most 1.
  double Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>(((z ^ (z >> 31)) >> 11) + 1) * 0x1.0p-53;
  }
  double Normal() { return std::sqrt(-2 * std::log(Next())) * std::cos(2 * M_PI * Next()); }

 private:
  uint64_t state_;
};

// Splits the fields of a line (RFC 4180, section 2). A quoted field may contain commas; a quote is written twice. A
// field cannot span several lines.
std::vector<std::string> Fields(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool twice = quoted && line.substr(i, 2) == "\"\"";
    if (twice || (line[i] != '"' && (quoted || line[i] != ','))) {
      fields.back().push_back(line[i]);
      if (twice) ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else {
      fields.emplace_back();
    }
  }
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  return fields;
}

class Reader {
 public:
  absl::Status ReadHeader(absl::string_view line) {
    const std::vector<std::string> names = Fields(line);
    for (size_t i = 0; i < names.size(); ++i) columns_.emplace(absl::AsciiStrToLower(names[i]), i);
    for (const char* needed : {"job_id", "submission_time", "duration", "num_gpu"}) {
      if (columns_.count(needed) == 0) {
        return absl::InvalidArgumentError(absl::StrCat("line 1: there is no column ", needed,
                                                       "; expected a header with job_id, submission_time, duration "
                                                       "and num_gpu"));
      }
    }
    return absl::OkStatus();
  }
  void ReadLine(size_t number, absl::string_view line) {
    number_ = number;
    cells_ = Fields(line);
    simulate::Job job;
    job.name = absl::AsciiStrToLower(Cell("job_id"));
    if (job.name.empty()) Expected("job_id", "a name");
    job.submit_ms = Milliseconds("submission_time", 0);
    job.duration_ms = Milliseconds("duration", 0.001);
    if (!absl::SimpleAtoi(Cell("num_gpu"), &job.gpus) || job.gpus < 1) Expected("num_gpu", "a whole number from 1 on");
    job.queue = Cell("queue");
    if (!job.queue.empty() && !IsQueueName(job.queue)) Expected("queue", kQueueNames);
    if (const std::string priority = Cell("priority"); !priority.empty()) {
      if (!absl::SimpleAtoi(priority, &job.priority)) Expected("priority", "a whole number");
    }
    jobs_.push_back(std::move(job));
  }
  absl::StatusOr<std::vector<simulate::Job>> Finish() {
    if (!problems_.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
    if (jobs_.empty()) return absl::InvalidArgumentError("there is no job in it");
    std::stable_sort(jobs_.begin(), jobs_.end(),
                     [](const auto& a, const auto& b) { return a.submit_ms < b.submit_ms; });
    const int64_t first_ms = jobs_.front().submit_ms;
    for (simulate::Job& job : jobs_) job.submit_ms -= first_ms;
    return std::move(jobs_);
  }

 private:
  [[nodiscard]] std::string Cell(const std::string& column) const {
    const auto at = columns_.find(column);
    if (at == columns_.end() || at->second >= cells_.size()) return "";
    return cells_[at->second];
  }
  int64_t Milliseconds(const std::string& column, double least) {
    double seconds = 0;
    if (!absl::SimpleAtod(Cell(column), &seconds) || !(seconds >= least) || seconds > kMaxS) {
      Expected(column, least > 0 ? "seconds above zero" : "seconds, 0 or more");
      return 0;
    }
    return std::llround(seconds * 1000);
  }
  void Expected(const std::string& column, absl::string_view expected) {
    if (problems_.size() >= kMaxListedProblems) return;
    problems_.push_back(absl::StrCat("line ", number_, ": ", column, ": \"", Cell(column), "\"; expected ", expected));
  }

  std::map<std::string, size_t> columns_;
  size_t number_ = 0;
  std::vector<std::string> cells_;
  std::vector<simulate::Job> jobs_;
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<std::vector<simulate::Job>> ParseTrace(const std::string& csv) {
  Reader reader;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(csv, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (number == 1) {
      absl::ConsumePrefix(&line, "\xEF\xBB\xBF");  // spreadsheets begin with a byte order mark
      if (absl::Status header = reader.ReadHeader(line); !header.ok()) return header;
    } else if (!line.empty()) {
      reader.ReadLine(number, line);
    }
  }
  return reader.Finish();
}

std::vector<simulate::Job> MakeTrace(const SyntheticWorkload& wish) {
  constexpr double kMedianMs = 20 * 60 * 1000;
  constexpr double kSpread = 1.2;
  constexpr double kMinMs = 60 * 1000;
  constexpr double kMaxMs = 24.0 * 60 * 60 * 1000;
  Dice dice(wish.seed);
  std::vector<simulate::Job> jobs;
  double work = 0;  // GPU milliseconds
  for (int64_t i = 0; i < wish.jobs; ++i) {
    simulate::Job& job = jobs.emplace_back();
    job.name = absl::StrFormat("job-%06d", i);
    job.gpus = 1;
    while (2 * job.gpus <= wish.largest && dice.Next() < 0.55) job.gpus *= 2;
    const double duration = kMedianMs * std::exp(kSpread * dice.Normal());
    job.duration_ms = std::llround(std::clamp(duration, kMinMs, kMaxMs));
    work += static_cast<double>(job.gpus) * static_cast<double>(job.duration_ms);
  }
  const double every_ms = work / static_cast<double>(wish.jobs) / (wish.load * static_cast<double>(wish.gpus));
  double now_ms = 0;
  for (simulate::Job& job : jobs) {
    job.submit_ms = std::llround(now_ms);
    now_ms += -std::log(dice.Next()) * every_ms;
  }
  return jobs;
}

}  // namespace muster
