// A running musterd with certificates, tokens and callers.
#ifndef MUSTER_TESTS_SERVICE_SECURITY_SECURITY_FIXTURE_H_
#define MUSTER_TESTS_SERVICE_SECURITY_SECURITY_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/muster_client.h"
#include "tests/support/certificates.h"
#include "tests/support/requests.h"
#include "tests/support/running_musterd.h"
#include "tests/support/test_folder.h"

namespace muster {

inline constexpr char kWriter[] = "writer-0123456789abcdef";
inline constexpr char kReader[] = "reader-0123456789abcdef";
inline constexpr char kTokens[] =
    "# who may call\nalice read-write writer-0123456789abcdef\nbob read-only reader-0123456789abcdef\n"
    "carol read-write another-0123456789abcdef\n";

// AddressSanitizer retains freed memory, and makes everything several times slower.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// A client retries UNAVAILABLE until its time is over: short where that is the expected result, long where it is not,
// so that a busy machine fails no test.
inline constexpr std::chrono::milliseconds kRefusedFor(1'000);
inline constexpr std::chrono::milliseconds kPatience(30'000);
// The longest time that other clients may wait.
inline constexpr absl::Duration kUnaffected = absl::Seconds(kSanitized ? 15 : 1);

inline absl::StatusOr<std::unique_ptr<MusterClient>> ConnectWith(ClientOptions options,
                                                                 std::chrono::milliseconds timeout = kPatience) {
  options.timeout = timeout;
  return MusterClient::Connect(options);
}

inline absl::Status Read(const ClientOptions& options, std::chrono::milliseconds timeout = kPatience) {
  return (*ConnectWith(options, timeout))->ListGangs("").status();
}

inline bool Unreachable(const ClientOptions& options) { return absl::IsUnavailable(Read(options, kRefusedFor)); }

inline std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline bool Eventually(const std::function<bool()>& holds) {
  const absl::Time until = absl::Now() + absl::FromChrono(kPatience);
  while (!holds()) {
    if (absl::Now() > until) return false;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return true;
}

inline absl::Status Write(const ClientOptions& options, const std::string& gang) {
  return (*ConnectWith(options))->CreateGang(CreateOf(gang, 2)).status();
}

inline ClientOptions WithoutTls(const RunningMusterd& musterd) {
  ClientOptions options;
  options.server = musterd.grpc();
  return options;
}

inline constexpr char kFilter[] = R"({"Pod":{"metadata":{"name":"p","uid":"u"}},"NodeNames":["n"]})";

class SecurityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }  // servers close connections that these tests write to
  SecurityTest() : authority_(folder_.path(), "ca"), stranger_(folder_.path(), "other-ca") {
    authority_.Issue("server", "musterd");
    authority_.Issue("client", "orchestrator");
    authority_.Issue("late", "orchestrator", -60);
    stranger_.Issue("foreign", "orchestrator");
    tokens_ = folder_.Write("tokens", kTokens);
  }
  [[nodiscard]] std::string Tls() const {
    return absl::StrCat("tls:\n  certFile: ", authority_.cert_file("server"),
                        "\n  keyFile: ", authority_.key_file("server"), "\n");
  }
  [[nodiscard]] ClientOptions Client(const RunningMusterd& musterd, const std::string& certificate = "",
                                     const std::string& token = "") const {
    ClientOptions options = WithoutTls(musterd);
    options.ca_file = authority_.ca_file();
    options.token = token;
    if (!certificate.empty()) {
      options.cert_file = authority_.cert_file(certificate);
      options.key_file = authority_.key_file(certificate);
    }
    return options;
  }

  // For calls that the client does not offer.
  [[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> Credentials() const {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = Contents(authority_.ca_file());
    return grpc::SslCredentials(ssl);
  }

  // The status of a filter call over TLS that presents this certificate; 0: no response.
  [[nodiscard]] int AskExtender(const RunningMusterd& musterd, const std::string& certificate) const {
    httplib::SSLClient client("localhost", musterd.extender_port(), authority_.cert_file(certificate),
                              authority_.key_file(certificate));
    client.set_ca_cert_path(authority_.ca_file().c_str());
    const httplib::Result result = client.Post("/filter", kFilter, "application/json");
    return result ? result->status : 0;
  }

  TestFolder folder_;
  TestAuthority authority_;
  TestAuthority stranger_;
  std::string tokens_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_SECURITY_SECURITY_FIXTURE_H_
