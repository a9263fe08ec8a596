// Runs every scenario file of tests/scenario/cases. A file is prose (lines that begin with '#'), then blocks of
//     commands (CommandsOf)
//     ----
//     the complete output, folded (FoldLines)
//
// separated by empty lines. `MUSTER_REWRITE=1` writes the actual output into the files instead of comparing: review the
// diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/scenario/core_target.h"

namespace muster {
namespace {

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, ScenarioFile_ProducesExpectedOutput) {
  std::ifstream in(GetParam());
  std::string line;
  std::string played;
  std::string expected;
  CoreTarget target;
  ScenarioLanguage language(&target);
  bool in_output = false;
  std::string output;
  int commands = 0;
  const auto end_block = [&] {
    if (in_output) played += output;
    in_output = false;
    output.clear();
  };
  while (std::getline(in, line)) {
    absl::StrAppend(&expected, line, "\n");
    if (absl::StartsWith(line, "#")) {
      absl::StrAppend(&played, line, "\n");
    } else if (line.empty()) {
      end_block();
      played += "\n";
    } else if (line == "----") {
      in_output = true;
      played += "----\n";
    } else if (!in_output) {
      absl::StrAppend(&played, line, "\n");
      for (const std::string& command : CommandsOf(line)) {
        output += FoldLines(language.Run(command));
        ++commands;
      }
    }
  }
  end_block();
  ASSERT_GT(commands, 0) << "no commands in " << GetParam();
  if (std::getenv("MUSTER_REWRITE") != nullptr) {
    std::ofstream(GetParam()) << played;
    return;
  }
  EXPECT_EQ(played.find("unknown command"), std::string::npos) << "in " << GetParam();
  EXPECT_NE(played.find("----\n"), std::string::npos) << "nothing is expected in " << GetParam();
  EXPECT_EQ(played, expected) << "in " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Cases, ScenarioTest, testing::ValuesIn(ScenarioFiles(MUSTER_SCENARIO_DIR)),
                         [](const auto& info) {
                           std::string name = std::filesystem::path(info.param).stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace muster
