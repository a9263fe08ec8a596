// A new folder below /tmp for the files of one test, removed by the destructor. Thread-safe.
#ifndef MUSTER_TESTS_SUPPORT_TEST_FOLDER_H_
#define MUSTER_TESTS_SUPPORT_TEST_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster {

class TestFolder {
 public:
  TestFolder() {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  // The path of a file in it.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file into it and returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::string path_ = "/tmp/muster-test-XXXXXX";
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_TEST_FOLDER_H_
