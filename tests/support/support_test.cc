#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "k8s-extender/apiserver/kube_config.h"
#include "service/config/config.h"
#include "support/file.h"
#include "support/json.h"
#include "support/recent_map.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace {

TEST(RecentMap, FullMap_DropsOldestEntry) {
  RecentMap<int> map(3);
  for (const char* key : {"a", "b", "c"}) map.Add(key)->second = key[0];
  EXPECT_EQ(map.Add("a")->second, 'a') << "what is there stays as it is";
  map.Add("d");
  EXPECT_TRUE(map.find("a") == map.end()) << "added first, forgotten first";
  EXPECT_EQ(map.find("b")->second, 'b');
  map.erase(map.find("c"));
  map.Add("e");
  EXPECT_EQ(map.find("b")->second, 'b') << "there was room";
  map.erase(map.find("b"));
  map.Add("b")->second = 'B';
  map.Add("f");
  EXPECT_TRUE(map.find("d") == map.end());
  EXPECT_EQ(map.find("b")->second, 'B') << "it came again later than that";
  for (const char* key : {"b", "e", "f"}) map.erase(map.find(key));
  // An entry that is added and erased repeatedly leaves nothing behind.
  for (int i = 0; i < 10; ++i) map.erase(map.Add("d"));
  EXPECT_EQ(map.size(), 0U);
  EXPECT_EQ(map.Add("d")->second, 0);
}

// SPEC S-6: numbers beyond every type and deep nesting are refused.
TEST(Json, NumbersAndDepth_AreBounded) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson("8930E830959", "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson("[1e999]", "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(std::string(1000, '['), "x").status()));
  EXPECT_TRUE(ParseJson(R"({"text":"[[[[\"{{{"})", "x").ok()) << "brackets in strings do not count";
  EXPECT_TRUE(ParseJson(std::string(200, '[') + std::string(200, ']'), "x").ok());
  EXPECT_FALSE(ParseJson("{\"a\":", "x").ok());
  // The size of the tree is limited, not only that of the text.
  EXPECT_TRUE(ParseJson(R"([1,{"a":[]}])", "x", /*max_values=*/5).ok());
  EXPECT_TRUE(ParseJson(R"([",,,,[[[["])", "x", /*max_values=*/3).ok());
  const absl::Status many = ParseJson(R"([[],[],[]])", "x", /*max_values=*/5).status();
  EXPECT_EQ(many.message(), "x: more than 5 values");
  const absl::StatusOr<Json> cut =
      ParseJsonCut(R"({"a":1,"b":)" + std::string(1000, '[') + std::string(1000, ']') + "}", "x");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ((*cut)["a"], 1);
  EXPECT_LT(cut->dump().size(), 500);
}

class FileTest : public testing::Test {
 protected:
  TestFolder files_;
  const std::string folder_ = files_.path();
};

TEST_F(FileTest, ReadFile_ReadsWholeFileWithinBound) {
  EXPECT_EQ(*ReadFile(files_.Write("empty", "")), "");
  std::string text(200'000, 'x');  // several reads
  text[0] = '\0';
  text.back() = '\n';
  const std::string path = files_.Write("long", text);
  EXPECT_EQ(*ReadFile(path), text);
  EXPECT_EQ(*ReadFile(path, text.size()), text);
  const absl::Status larger = ReadFile(path, text.size() - 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(larger));
  EXPECT_EQ(larger.message(), "cannot read " + path + ": it is larger than 199999 bytes");
  std::filesystem::create_symlink(path, folder_ + "/link");
  EXPECT_EQ(*ReadFile(folder_ + "/link"), text) << "as Kubernetes mounts secrets";
  EXPECT_FALSE(ReadFile("/proc/self/cmdline")->empty()) << "a file that tells no size";
}

TEST_F(FileTest, ReadFile_RefusesNonRegularFiles) {
  const std::string missing = folder_ + "/missing";
  EXPECT_TRUE(absl::IsNotFound(ReadFile(missing).status()));
  EXPECT_EQ(ReadFile(missing).status().message(), "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(ReadFile(folder_).status().message(), "cannot read " + folder_ + ": it is a directory");
  EXPECT_EQ(ReadFile("/dev/zero").status().message(), "cannot read /dev/zero: it is not a regular file");
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(pipe).status())) << "and nobody waits for its writer";
}

// A client without credentials still verifies the API server's certificate.
TEST_F(FileTest, KubeConfig_ReadsCaForEveryUser) {
  for (const char* user : {"{name: u}", "{name: u, user: }", "{name: u, user: {}}", "{name: u, user: {token: t}}"}) {
    const std::string path = files_.Write("kubeconfig", absl::StrCat(R"(
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://localhost", certificate-authority-data: Y2E=}}]
users: [)",
                                                                     user, "]\n"));
    const absl::StatusOr<KubeConfig> config = LoadKubeConfig(path, "");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->ca_pem, "ca") << user;
    EXPECT_FALSE(config->skip_verify);
  }
}

// A token file is relative to the kubeconfig, as certificates are. A missing one is an error here, because the API
// server's later refusal would not name the cause.
TEST_F(FileTest, TokenFile_IsRelativeToKubeconfig) {
  const auto load = [&](const std::string& token_file) {
    return LoadKubeConfig(files_.Write("kubeconfig", absl::StrCat(R"(
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://localhost"}}]
users: [{name: u, user: {tokenFile: ")",
                                                                  token_file, "\"}}]\n")),
                          "");
  };
  const std::string token = files_.Write("token", "secret");
  for (const std::string& named : {std::string("token"), token}) {
    const absl::StatusOr<KubeConfig> config = load(named);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(*ReadFile(config->token_file), "secret") << named;
  }
  EXPECT_EQ(load("missing").status().message(),
            absl::StrCat("kubeconfig ", folder_, "/kubeconfig: users.u.tokenFile: cannot read ", folder_,
                         "/missing: No such file or directory"));
  EXPECT_EQ(load("")->token_file, "");
}

// SPEC S-7: a directory in place of a file is reported, not read as an empty file.
TEST_F(FileTest, Directory_IsNotConfiguration) {
  const std::string why = "cannot read " + folder_ + ": it is a directory";
  EXPECT_EQ(LoadConfig(folder_).status().message(), why);
  EXPECT_TRUE(LoadConfig(files_.Write("defaults.yaml", "")).ok()) << "an empty file is one";
  EXPECT_EQ(LoadKubeConfig(folder_, "").status().message(), why);
  const std::string kubeconfig = files_.Write("kubeconfig", R"(
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://localhost", certificate-authority: .}}]
users: [{name: u, user: {token: t}}]
)");
  EXPECT_NE(LoadKubeConfig(kubeconfig, "").status().message().find("it is a directory"), absl::string_view::npos);

  Config config;
  config.access.tokens_file = folder_;
  EXPECT_EQ(FileProblems(config), std::vector<std::string>{"auth.tokensFile: " + why});
  config.access.tokens_file.clear();
  config.tls.certificate = config.tls.key = folder_;
  EXPECT_EQ(FileProblems(config), std::vector<std::string>{"tls.certFile: " + why});
}

}  // namespace
}  // namespace muster
