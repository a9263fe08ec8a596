// What an unauthorised or faulty client can do to a running musterd: nothing, or little, and without effect on others
// (SPEC S-6).
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/muster_client.h"
#include "k8s-extender/apiserver/token_review.h"
#include "muster/v1/gang.grpc.pb.h"
#include "service/security/access.h"
#include "service/security/limits.h"
#include "service/security/tls_context.h"
#include "support/sync.h"
#include "tests/service/security/security_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/expect_ok.h"
#include "tests/support/local_server.h"
#include "tests/support/loopback.h"
#include "tests/support/requests.h"
#include "tests/support/running_musterd.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace {

TEST_F(SecurityTest, MutualTls_RefusesUnknownAndExpired) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "  clientCaFile: ", authority_.ca_file(), "\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  EXPECT_TRUE(Read(Client(musterd, "client")).ok());
  EXPECT_TRUE(Write(Client(musterd, "client"), "a").ok());
  EXPECT_TRUE(Unreachable(Client(musterd))) << "no certificate";
  EXPECT_TRUE(Unreachable(Client(musterd, "foreign"))) << "of another CA";
  EXPECT_TRUE(Unreachable(Client(musterd, "late"))) << "expired";
  // A client that trusts another CA does not talk to this server.
  ClientOptions wrong = Client(musterd, "client");
  wrong.ca_file = stranger_.ca_file();
  EXPECT_TRUE(Unreachable(wrong));
  // Without TLS no call succeeds.
  EXPECT_FALSE(Read(WithoutTls(musterd), kRefusedFor).ok());
  EXPECT_TRUE(Read(Client(musterd, "client")).ok()) << "others are unaffected";
}

TEST_F(SecurityTest, Token_HasItsRole) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const absl::Status missing = Read(Client(musterd));
  EXPECT_TRUE(absl::IsUnauthenticated(missing)) << missing;
  EXPECT_TRUE(absl::StrContains(missing.message(), "authorization: Bearer")) << missing;
  EXPECT_TRUE(absl::IsUnauthenticated(Read(Client(musterd, "", "wrong-0123456789abcdef"))));
  EXPECT_TRUE(Read(Client(musterd, "", kReader)).ok());
  const absl::Status denied = Write(Client(musterd, "", kReader), "a");
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_TRUE(absl::StrContains(denied.message(), "token:bob is read-only")) << denied;
  EXPECT_TRUE(Write(Client(musterd, "", kWriter), "a").ok());
  // Streams are checked in the same way.
  const absl::Status stream =
      (*ConnectWith(Client(musterd, "", kReader)))->Permit(PermitOf("u", "n"), [](const v1::PermitEvent&) {
        return true;
      });
  EXPECT_TRUE(absl::IsPermissionDenied(stream)) << stream;

  // Changed files are read again without a restart: a token is removed, a certificate renewed.
  folder_.Write("tokens", "alice read-write renewed-0123456789abcdef\n");
  EXPECT_TRUE(Eventually([&] { return absl::IsUnauthenticated(Read(Client(musterd, "", kWriter))); }));
  EXPECT_TRUE(Read(Client(musterd, "", "renewed-0123456789abcdef")).ok());
}

TEST_F(SecurityTest, ChangedFiles_AreReadAgain) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "  extender: true\n  clientCaFile: ", authority_.ca_file(), "\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const auto extender = [&](const std::string& certificate) { return AskExtender(musterd, certificate); };
  EXPECT_EQ(extender("client"), 200);
  EXPECT_EQ(extender("foreign"), 0) << "of another CA";
  EXPECT_EQ(extender("late"), 0) << "expired";
  {
    httplib::SSLClient client("localhost", musterd.extender_port());
    client.set_ca_cert_path(authority_.ca_file().c_str());
    EXPECT_FALSE(client.Get("/filter")) << "no certificate";
    httplib::Client clear("127.0.0.1", musterd.extender_port());
    EXPECT_FALSE(clear.Get("/filter")) << "in the clear";
  }
  // Files that do not match, or are empty: the earlier contents stay in force, on every port.
  for (const std::string& bad : {std::string("no certificate"), Contents(authority_.cert_file("client"))}) {
    std::ofstream(authority_.cert_file("server")) << bad;
    absl::SleepFor(absl::Milliseconds(1'500));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(extender("client"), 200);
      EXPECT_TRUE(Read(Client(musterd, "client")).ok());
      absl::SleepFor(absl::Milliseconds(300));
    }
  }
  EXPECT_TRUE(absl::StrContains(musterd.log(), "the previous certificate stays in use")) << musterd.log();
  // The server's certificate expires; new connections get an error. Then it is renewed.
  authority_.Issue("server", "musterd", -60);
  EXPECT_TRUE(Eventually([&] { return extender("client") == 0; }));
  EXPECT_TRUE(Eventually([&] { return Unreachable(Client(musterd, "client")); }));
  authority_.Issue("server", "musterd");
  EXPECT_TRUE(Eventually([&] { return extender("client") == 200; }));
  EXPECT_TRUE(Read(Client(musterd, "client")).ok());
}

// Not covered by ChangedFiles_AreReadAgain: gRPC itself usually falls back to the earlier files. It does not if the
// files are valid one by one but not together, or are missing during a renewal.
TEST_F(SecurityTest, UncheckedFiles_AreNotUsed) {
  const std::string certificate = authority_.cert_file("server");
  TlsContext context({certificate, authority_.key_file("server"), authority_.ca_file()});
  ASSERT_TRUE(context.Load().ok());
  const TlsPem before = *context.CurrentPem();
  EXPECT_EQ(before.certificate, Contents(certificate));
  EXPECT_EQ(before.key, Contents(authority_.key_file("server")));
  for (const std::string& bad : {std::string("no certificate"), Contents(authority_.cert_file("client"))}) {
    std::ofstream(certificate) << bad;
    for (int i = 0; i < 2; ++i) {  // before the next check of the files, and after
      EXPECT_EQ(context.CurrentPem()->certificate, before.certificate);
      EXPECT_EQ(context.CurrentPem()->generation, before.generation);
      absl::SleepFor(absl::Milliseconds(1'100));
    }
  }
  ASSERT_EQ(unlink(certificate.c_str()), 0);
  EXPECT_EQ(context.CurrentPem()->certificate, before.certificate);
  authority_.Issue("server", "musterd");
  EXPECT_TRUE(Eventually([&] { return context.CurrentPem()->generation != before.generation; }));
  EXPECT_EQ(context.CurrentPem()->certificate, Contents(certificate));
  EXPECT_EQ(context.CurrentPem()->key, Contents(authority_.key_file("server")));
}

TEST_F(SecurityTest, Extender_ChecksTokensAndRoles) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "  extender: true\nauth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  httplib::SSLClient client("localhost", musterd.extender_port());
  client.set_ca_cert_path(authority_.ca_file().c_str());
  client.set_keep_alive(true);
  const auto ask = [&](const std::string& token) {
    httplib::Headers headers;
    if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
    // A header of Muster's that a caller invents has no effect.
    headers.emplace("X-Muster-Refusal", "Uinvented");
    const httplib::Result result = client.Post("/filter", headers, kFilter, "application/json");
    return result ? result->status : 0;
  };
  EXPECT_EQ(ask(""), 401);
  EXPECT_EQ(ask("wrong-0123456789abcdef"), 401);
  EXPECT_EQ(ask(kReader), 403);
  EXPECT_EQ(ask(kWriter), 200);
  EXPECT_EQ(ask(kWriter), 200);
}

// The text of a refusal never admits a request: a certificate's name with a line break, or one that is truncated.
TEST_F(SecurityTest, CertificateNameWithLineBreak_IsRefused) {
  authority_.Issue("broken", "bad\nname");
  authority_.Issue("longer", std::string("good\0.evil", 10));
  authority_.Issue("good", "good");
  const RunningMusterd musterd(absl::StrCat(Tls(), "  extender: true\n  clientCaFile: ", authority_.ca_file(),
                                            "\nauth: {writers: ['cert:good']}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const auto ask = [&](const std::string& certificate) { return AskExtender(musterd, certificate); };
  EXPECT_EQ(ask("good"), 200);
  EXPECT_EQ(ask("client"), 403);
  EXPECT_EQ(ask("broken"), 403);
  EXPECT_EQ(ask("longer"), 403);
}

// What HTTP allows and this server does not need: ranges, multipart, chunks, compression, bodies on paths without
// input.
TEST_F(SecurityTest, UnsupportedRequest_IsRefusedUnread) {
  const RunningMusterd musterd;
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const auto ask = [&](int port, const std::string& head, size_t body) {
    const int fd = ConnectLoopback(port);
    if (fd < 0) return std::string("no connection");
    timeval limit{5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const std::string request = head + "Host: x\r\n\r\n" + std::string(body, 'a');
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char answer[64] = "";
    const ssize_t got = recv(fd, answer, sizeof(answer) - 1, 0);
    close(fd);
    return got < 12 ? std::string("closed") : std::string(answer).substr(9, 3);
  };
  std::string ranges = "RaNge: bytes=0-1";
  for (int i = 0; i < 1500; ++i) ranges += ",0-1";
  const std::string part = absl::StrCat("Content-Type: multipart/form-data; boundary=", std::string(60, 'b'), "\r\n");
  const int64_t before = musterd.ResidentKib();
  for (const int port : {musterd.admin_port(), musterd.extender_port(), musterd.bind_port()}) {
    EXPECT_NE(ask(port, "GET /healthz HTTP/1.1\r\n" + ranges + "\r\n", 0), "200");
    EXPECT_EQ(ask(port, "POST /filter HTTP/1.1\r\nContent-Length: 9\r\n" + part, 9), "415");
    EXPECT_EQ(ask(port, "POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 0), "411");
    EXPECT_EQ(ask(port, "POST /filter HTTP/1.1\r\n", 0), "411");
    EXPECT_EQ(ask(port, "POST /filter HTTP/1.1\r\nContent-Length: 9\r\nContent-Encoding: gzip\r\n", 9), "415");
    EXPECT_EQ(ask(port, "POST /filter HTTP/1.1\r\nContent-Length: 99999999999\r\n", 9), "413");
    EXPECT_EQ(ask(port, "GET /healthz HTTP/1.1\r\nContent-Length: 9\r\n", 9), "413");
    EXPECT_EQ(ask(port, "PRI /x HTTP/1.1\r\n", 1 << 20), "405") << "what has no length is read to no end";
  }
  EXPECT_EQ(ask(musterd.admin_port(), "POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n", 9), "413");
  EXPECT_EQ(ask(musterd.admin_port(), "GET /healthz HTTP/1.1\r\n", 0), "200") << "and others are served";
  if (!kSanitized) {
    EXPECT_LT(musterd.ResidentKib(), before + (50 << 10));
  }
  EXPECT_TRUE(Read(WithoutTls(musterd)).ok());
}

// Ten thousand waiting calls of one client: it gets its own share, and others get theirs.
TEST_F(SecurityTest, ClientWithManyStreams_IsBounded) {
  const RunningMusterd musterd(
      absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\nlimits: {streamsPerClient: 500}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const std::unique_ptr<MusterClient> other = *ConnectWith(Client(musterd, "", kReader));
  ASSERT_TRUE(other->ListGangs("").ok());

  grpc::CompletionQueue queue;
  struct Call {
    grpc::ClientContext context;
    v1::WatchGangsRequest request;
    v1::GangEvent event;
    std::unique_ptr<grpc::ClientAsyncReader<v1::GangEvent>> reader;
    grpc::Status status;
  };
  std::vector<std::unique_ptr<v1::GangService::Stub>> stubs;
  for (int i = 0; i < 20; ++i) {  // one connection has fewer streams than this
    grpc::ChannelArguments arguments;
    arguments.SetInt("muster.test", i);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(v1::GangService::NewStub(grpc::CreateCustomChannel(musterd.grpc(), Credentials(), arguments)));
  }
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 10'000; ++i) {
    auto call = std::make_unique<Call>();
    call->context.AddMetadata("authorization", absl::StrCat("Bearer ", kWriter));
    call->reader = stubs[static_cast<size_t>(i % 20)]->PrepareAsyncWatchGangs(&call->context, call->request, &queue);
    call->reader->StartCall(nullptr);
    call->reader->Finish(&call->status, call.get());
    calls.push_back(std::move(call));
  }
  int refused = 0;
  void* tag = nullptr;
  bool ok = false;
  const auto until = std::chrono::system_clock::now() + std::chrono::seconds(kSanitized ? 120 : 20);
  while (refused < 9'000) {
    const auto next = queue.AsyncNext(&tag, &ok, until);
    if (next != grpc::CompletionQueue::GOT_EVENT) break;
    if (tag == nullptr) continue;
    const auto* call = static_cast<Call*>(tag);
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << call->status.error_message();
    ++refused;
    if (refused == 1'000 || refused == 5'000) {
      const absl::Time begun = absl::Now();
      EXPECT_TRUE(other->ListGangs("").ok());
      EXPECT_LT(absl::Now() - begun, kUnaffected);
    }
  }
  EXPECT_GE(refused, 9'000);
  EXPECT_TRUE(other->ListGangs("").ok());
  if (!kSanitized) {
    EXPECT_LT(musterd.ResidentKib(), 400 << 10);
  }
  for (const auto& call : calls) call->context.TryCancel();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  EXPECT_TRUE(Read(Client(musterd, "", kWriter)).ok()) << "its streams are released";
}

TEST_F(SecurityTest, ClientWithManyCalls_IsBounded) {
  const RunningMusterd musterd(
      absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\nlimits: {callsPerSecond: 20, messageBytes: 4096}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const auto fast = *ConnectWith(Client(musterd, "", kWriter));
  ASSERT_TRUE(fast->ListGangs("").ok());
  int limited = 0;
  const auto stub = v1::GangService::NewStub(grpc::CreateChannel(musterd.grpc(), Credentials()));
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", kWriter));
    v1::ListGangsResponse response;
    const grpc::Status status = stub->ListGangs(&context, v1::ListGangsRequest(), &response);
    limited += status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
  EXPECT_GT(limited, 50);
  EXPECT_TRUE(Read(Client(musterd, "", kReader)).ok()) << "others are unaffected";
  EXPECT_TRUE(fast->ListGangs("").ok()) << "a client that waits as requested gets its answer";

  v1::UpdateFactsRequest large;
  large.add_manifests(std::string(10'000, ' '));
  const absl::Time asked = absl::Now();
  const absl::Status refused =
      (*ConnectWith(Client(musterd, "", "another-0123456789abcdef")))->UpdateFacts(large).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_LT(absl::Now() - asked, absl::FromChrono(kPatience) / 2) << "what stays too large is not sent again";
}

// Connections that send a byte now and then, or nothing, on every port: other callers are served.
TEST_F(SecurityTest, SlowConnections_DoNotBlockOthers) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const RunningMusterd musterd;
  ASSERT_TRUE(musterd.running()) << musterd.log();
  std::vector<int> slow;
  for (int i = 0; i < 400; ++i) {
    for (const int port : {musterd.extender_port(), musterd.grpc_port(), musterd.bind_port()}) {
      const int fd = ConnectLoopback(port);
      ASSERT_GE(fd, 0);
      slow.push_back(fd);
    }
  }
  std::atomic<bool> stop{false};
  std::thread dribble([&] {
    const std::string head = "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nX-Slow: ";
    for (size_t at = 0; !stop; ++at) {
      for (const int fd : slow) send(fd, at < head.size() ? &head[at] : "a", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      absl::SleepFor(absl::Milliseconds(50));
    }
  });
  absl::SleepFor(absl::Seconds(1));
  for (int i = 0; i < 5; ++i) {
    const absl::Time begun = absl::Now();
    httplib::Client client("127.0.0.1", musterd.extender_port());
    const httplib::Result result = client.Post("/filter", kFilter, "application/json");
    ASSERT_TRUE(result) << "filter";
    EXPECT_EQ(result->status, 200);
    httplib::Client bind("127.0.0.1", musterd.bind_port());
    const httplib::Result bound =
        bind.Post("/bind", R"({"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"})", "application/json");
    ASSERT_TRUE(bound) << "bind";
    EXPECT_EQ(bound->status, 200);
    EXPECT_TRUE(Read(WithoutTls(musterd)).ok());
    EXPECT_LT(absl::Now() - begun, 2 * kUnaffected);
  }
  stop = true;
  dribble.join();
  for (const int fd : slow) close(fd);
}

TEST(Tokens, Lines_AreParsedOrRefused) {
  const auto good = ExpectOk(ParseTokens(kTokens));
  EXPECT_EQ(good.size(), 3);
  EXPECT_EQ(good.at(kReader).role, Role::kReadOnly);
  for (const char* bad : {"alice read-write short", "alice admin 0123456789abcdef", "alice read-write",
                          "a read-only 0123456789abcdef\nb read-only 0123456789abcdef"}) {
    const absl::Status refused = ParseTokens(bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << bad;
    EXPECT_TRUE(absl::StrContains(refused.message(), "line ")) << refused;
  }
}

// SPEC S-6: Kubernetes' own tokens, checked by an API server that knows one of them.
TEST(TokenReview, Token_IsReviewedAndCached) {
  std::atomic<int> asked{0};
  LocalServer<> server;
  server->Post(
      "/apis/authentication.k8s.io/v1/tokenreviews", [&](const httplib::Request& request, httplib::Response& response) {
        ++asked;
        const bool known = absl::StrContains(request.body, "known-token");
        const bool unknown = absl::StrContains(request.body, "stranger-token");
        response.status = 201;
        response.set_content(known || unknown ? absl::StrCat(R"({"status":{"authenticated":true,"user":{"username":")",
                                                             known ? "runner" : "stranger", R"(","groups":["ml"]}}})")
                                              : std::string(R"({"status":{"authenticated":false}})"),
                             "application/json; charset=utf-8");
      });
  KubeClient client(ServerAt(server.Start()));
  AccessOptions options;
  options.token_review = true;
  options.writers = {"user:runner"};
  options.readers = {"group:nobody"};
  Access access(options, [&](const std::string& token) -> absl::StatusOr<ReviewedUser> {
    const absl::StatusOr<TokenOwner> owner = ReviewToken(&client, token);
    if (!owner.ok()) return owner.status();
    return ReviewedUser{owner->user, owner->groups};
  });
  ASSERT_TRUE(access.Start().ok());
  const auto identify = [&](const std::string& token) {
    Notification done;
    absl::StatusOr<Identity> identity = absl::UnknownError("");
    access.Identify(token, {}, "here", [&](absl::StatusOr<Identity> answer) {
      identity = std::move(answer);
      done.Notify();
    });
    done.WaitForNotification();
    return identity;
  };
  const auto known = ExpectOk(identify("known-token"));
  EXPECT_EQ(known.name, "user:runner");
  EXPECT_EQ(known.role, Role::kReadWrite);
  EXPECT_TRUE(identify("known-token").ok());
  EXPECT_EQ(asked, 1) << "a review is cached for a while";
  EXPECT_TRUE(absl::IsPermissionDenied(identify("stranger-token").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(identify("forged-token").status()));
  server.Stop();
  EXPECT_TRUE(absl::IsUnavailable(identify("another-token").status())) << "without a review, access is refused";
  access.Stop();
  client.Stop();
}

TEST(ClientLimits, CallsAndStreams_AreCountedByClient) {
  ClientLimits limits({/*calls_per_second=*/10, /*streams=*/2});
  const absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limits.CountCall("a", now).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(limits.CountCall("a", now)));
  EXPECT_TRUE(limits.CountCall("b", now).ok());
  EXPECT_TRUE(limits.CountCall("b", now - absl::Hours(1)).ok()) << "a clock that is set back takes no calls away";
  EXPECT_TRUE(limits.CountCall("a", now + absl::Milliseconds(100)).ok());
  EXPECT_FALSE(limits.CountCall("a", now + absl::Milliseconds(100)).ok());
  EXPECT_TRUE(limits.OpenStream("a").ok());
  EXPECT_TRUE(limits.OpenStream("a").ok());
  EXPECT_FALSE(limits.OpenStream("a").ok());
  EXPECT_TRUE(limits.OpenStream("b").ok());
  limits.CloseStream("a");
  EXPECT_TRUE(limits.OpenStream("a").ok());
}

TEST(ClientLimits, CallsOnStreams_LeaveAPartToOtherCalls) {
  ClientLimits limits({/*calls_per_second=*/100, /*streams=*/2});
  const absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 95; ++i) EXPECT_EQ(limits.CountStreamCall("a", now), absl::ZeroDuration());
  EXPECT_EQ(limits.CountStreamCall("a", now), absl::Milliseconds(10)) << "when the next one may come";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limits.CountCall("a", now).ok());
  EXPECT_FALSE(limits.CountCall("a", now).ok());
  EXPECT_EQ(limits.CountStreamCall("a", now), absl::Milliseconds(60));
  EXPECT_EQ(limits.CountStreamCall("a", now + absl::Milliseconds(61)), absl::ZeroDuration());
  ClientLimits least({/*calls_per_second=*/1, /*streams=*/1});
  EXPECT_EQ(least.CountStreamCall("a", now), absl::ZeroDuration()) << "a rate of one is not a rate of none";
}

}  // namespace
}  // namespace muster
