#include "clients/musterctl/chart.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

constexpr int kWidth = 960;
constexpr int kLeft = 64;
constexpr int kRight = 20;
constexpr int kTop = 56;
constexpr int kPanel = 190;
constexpr int kBetween = 44;
constexpr int kBelow = 40;
constexpr int kColumns = kWidth - kLeft - kRight;
// Distinguishable with red-green colour blindness (Okabe and Ito), and by their dashes.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"};
constexpr const char* kDashes[] = {"none", "7 3", "2 3", "10 3 2 3", "4 4", "1 2"};

// The mean of `value` in each column of the picture, weighted by time.
std::vector<double> Columns(const simulate::Result& result, int64_t end_ms,
                            const std::function<double(const simulate::Sample&)>& value) {
  std::vector<double> sums(kColumns, 0);
  const double column_ms = std::max(1.0, static_cast<double>(end_ms) / kColumns);
  for (size_t i = 0; i < result.samples.size(); ++i) {
    const double last = i + 1 < result.samples.size() ? static_cast<double>(result.samples[i + 1].at_ms)
                                                      : static_cast<double>(result.samples[i].at_ms);
    double at = static_cast<double>(result.samples[i].at_ms);
    while (at < last) {
      const int column = std::clamp(static_cast<int>(at / column_ms), 0, kColumns - 1);
      const double until = column == kColumns - 1 ? last : std::min(last, (column + 1) * column_ms);
      sums[static_cast<size_t>(column)] += value(result.samples[i]) * (until - at) / column_ms;
      at = std::max(until, std::nextafter(at, last));
    }
  }
  return sums;
}

// The grid step: 1, 2 or 5 times a power of ten, such that about five steps make `most`.
double StepFor(double most) {
  if (most <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (most / (times * power) <= 6) return times * power;
  }
  return 10 * power;
}

struct Panel {
  std::string title;
  int top;
  double most;
  std::string unit;
  std::function<double(const simulate::Sample&)> value;
};

void DrawPanel(const Panel& panel, const std::vector<ChartedRun>& runs, int64_t end_ms, std::string* out) {
  const auto y_of = [&](double value) { return panel.top + kPanel - value / panel.most * kPanel; };
  absl::StrAppendFormat(out, "<text x=\"%d\" y=\"%d\" class=\"title\">%s</text>\n", kLeft, panel.top - 8, panel.title);
  const double step = StepFor(panel.most);
  const int steps = static_cast<int>(panel.most * 1.0001 / step);
  for (int i = 0; i <= steps; ++i) {
    const double value = i * step;
    absl::StrAppendFormat(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>", kLeft,
                          kWidth - kRight, y_of(value), y_of(value));
    absl::StrAppendFormat(out, "<text x=\"%d\" y=\"%.1f\" class=\"value\">%g%s</text>\n", kLeft - 8, y_of(value) + 4,
                          value, panel.unit);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double> values = Columns(*runs[i].result, end_ms, panel.value);
    std::string points;
    for (size_t x = 0; x < values.size(); ++x) {
      absl::StrAppendFormat(&points, "%d,%.1f ", kLeft + static_cast<int>(x), y_of(std::min(values[x], panel.most)));
    }
    absl::StrAppendFormat(out, "<polyline points=\"%s\" stroke=\"%s\" stroke-dasharray=\"%s\" class=\"line\"/>\n",
                          points, kColours[i % std::size(kColours)], kDashes[i % std::size(kDashes)]);
  }
}

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

void DrawTimes(int64_t end_ms, int bottom, std::string* out) {
  const double hours = static_cast<double>(end_ms) / 3.6e6;
  const bool days = hours > 72;
  const double most = days ? hours / 24 : hours;
  const double step = StepFor(most);
  for (int i = 0; i <= static_cast<int>(most / step); ++i) {
    const double value = i * step;
    const double x = kLeft + value / std::max(most, 1e-9) * kColumns;
    absl::StrAppendFormat(out, "<text x=\"%.1f\" y=\"%d\" class=\"time\">%g</text>\n", x, bottom + 18, value);
  }
  absl::StrAppendFormat(out, "<text x=\"%d\" y=\"%d\" class=\"time\">%s since the first submission</text>\n",
                        kLeft + kColumns / 2, bottom + 34, days ? "days" : "hours");
}

}  // namespace

std::string Chart(const std::vector<ChartedRun>& runs, int64_t all_gpus) {
  int64_t end_ms = 1;
  double most_waiting = 1;
  for (const ChartedRun& run : runs) {
    if (run.result->samples.empty()) continue;
    end_ms = std::max(end_ms, run.result->samples.back().at_ms);
  }
  const auto waiting = [](const simulate::Sample& sample) { return static_cast<double>(sample.waiting); };
  for (const ChartedRun& run : runs) {
    for (const double value : Columns(*run.result, end_ms, waiting)) most_waiting = std::max(most_waiting, value);
  }
  const int second = kTop + kPanel + kBetween;
  const int bottom = second + kPanel;
  std::string out = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
      "<title>Cluster usage by policy</title>\n"
      "<style>text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.value{text-anchor:end}"
      ".time{text-anchor:middle}.grid{stroke:#ddd}.line{fill:none;stroke-width:1.5}</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kWidth, bottom + kBelow, kWidth, bottom + kBelow);
  int x = kLeft;
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppendFormat(&out,
                          "<line x1=\"%d\" x2=\"%d\" y1=\"20\" y2=\"20\" stroke=\"%s\" stroke-dasharray=\"%s\" "
                          "class=\"line\"/><text x=\"%d\" y=\"24\">%s</text>\n",
                          x, x + 28, kColours[i % std::size(kColours)], kDashes[i % std::size(kDashes)], x + 34,
                          Escaped(runs[i].name));
    x += 60 + 7 * static_cast<int>(runs[i].name.size());
  }
  const auto used = [all_gpus](const simulate::Sample& sample) {
    return 100.0 * static_cast<double>(sample.used_gpus) / static_cast<double>(all_gpus);
  };
  DrawPanel({"GPUs used", kTop, 100, "%", used}, runs, end_ms, &out);
  DrawPanel({"jobs waiting", second, most_waiting, "", waiting}, runs, end_ms, &out);
  DrawTimes(end_ms, bottom, &out);
  return out + "</svg>\n";
}

}  // namespace muster
