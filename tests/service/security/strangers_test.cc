// What callers without credentials cost: memory, files and log lines, on every listener (SPEC S-6, S-11).
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <thread>

#include "absl/strings/match.h"
#include "muster/v1/facts.grpc.pb.h"
#include "muster/v1/gang.grpc.pb.h"
#include "service/http/connection_table.h"
#include "service/security/file_limit.h"
#include "support/log_limit.h"
#include "support/sync.h"
#include "tests/service/security/security_fixture.h"
#include "tests/support/loopback.h"

namespace muster {
namespace {

constexpr int64_t kMib = 1 << 10;  // in KiB, as the resident memory

// A message of `bytes` bytes that becomes many times as large when it is parsed: pods without content.
grpc::ByteBuffer EmptyPods(size_t bytes) {
  std::string text;
  v1::UpdateFactsRequest one;
  one.add_pods();
  const std::string pod = one.SerializeAsString();
  while (text.size() + pod.size() <= bytes) text += pod;
  const grpc::Slice slice(text);
  return {&slice, 1};
}

// Sends `calls` of UpdateFacts at once, and returns their statuses.
std::vector<grpc::Status> SendMessages(const std::string& server,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                       const std::string& token, const grpc::ByteBuffer& message, int calls,
                                       grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };
  grpc::GenericStub stub(grpc::CreateChannel(server, credentials));
  grpc::CompletionQueue queue;
  std::deque<Call> sent(static_cast<size_t>(calls));
  for (Call& call : sent) {
    if (!token.empty()) call.context.AddMetadata("authorization", "Bearer " + token);
    call.context.set_compression_algorithm(compression);
    call.context.set_deadline(std::chrono::system_clock::now() + kPatience);
    call.reader = stub.PrepareUnaryCall(&call.context, "/muster.v1.FactsService/UpdateFacts", message, &queue);
    call.reader->StartCall();
    call.reader->Finish(&call.answer, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  for (int i = 0; i < calls && queue.Next(&tag, &ok); ++i) continue;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
  std::vector<grpc::Status> statuses;
  for (const Call& call : sent) statuses.push_back(call.status);
  return statuses;
}

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

class StrangersTest : public SecurityTest {
 protected:
  // Samples the memory of musterd while `attack` runs. Returns the largest growth in KiB.
  template <typename Attack>
  static int64_t GrowthDuring(const RunningMusterd& musterd, Attack attack) {
    const int64_t before = musterd.ResidentKib();
    int64_t most = before;
    std::atomic<bool> ended{false};
    std::thread watch([&] {
      while (!ended) {
        most = std::max(most, musterd.ResidentKib());
        absl::SleepFor(absl::Milliseconds(5));
      }
    });
    attack();
    ended = true;
    watch.join();
    return std::max(most, musterd.ResidentKib()) - before;
  }
};

TEST_F(StrangersTest, MessageOfStranger_IsNotReceived) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  ASSERT_TRUE(Read(Client(musterd, "", kReader)).ok());
  const grpc::ByteBuffer message = EmptyPods(4'000'000);
  for (const std::string& token : {std::string(), std::string("wrong-0123456789abcdef")}) {
    const int64_t grown = GrowthDuring(musterd, [&] {
      for (const grpc::Status& status : SendMessages(musterd.grpc(), Credentials(), token, message, 32)) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
      }
    });
    if (!kSanitized) {
      EXPECT_LT(grown, 60 * kMib) << "a parsed message takes some 400 MiB";
    }
  }
  EXPECT_TRUE(Read(Client(musterd, "", kReader)).ok());
}

// A few kilobytes on the wire would become megabytes before the size of the message could be checked.
TEST_F(StrangersTest, CompressedMessage_IsRefused) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const std::string zeros(100 << 20, '\0');
  const grpc::Slice slice(zeros);
  for (const std::string& token : {std::string(), std::string(kWriter)}) {
    const int64_t grown = GrowthDuring(musterd, [&] {
      for (const grpc::Status& status :
           SendMessages(musterd.grpc(), Credentials(), token, {&slice, 1}, 4, GRPC_COMPRESS_GZIP)) {
        EXPECT_FALSE(status.ok());
      }
    });
    if (!kSanitized) {
      EXPECT_LT(grown, 40 * kMib);
    }
  }
  EXPECT_TRUE(Write(Client(musterd, "", kWriter), "a").ok());
}

// The health check is for probes, which have no credentials.
TEST_F(StrangersTest, HealthCheck_NeedsNoCredentials) {
  const RunningMusterd musterd(absl::StrCat("auth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  EXPECT_TRUE(absl::IsUnauthenticated(Read(WithoutTls(musterd))));
  grpc::GenericStub stub(grpc::CreateChannel(musterd.grpc(), grpc::InsecureChannelCredentials()));
  for (const auto& [method, code] : {std::pair{"/grpc.health.v1.Health/Check", grpc::StatusCode::OK},
                                     {"/grpc.health.v1.Health/Watch", grpc::StatusCode::UNAUTHENTICATED}}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::ByteBuffer answer;
    grpc::Status status;
    const std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader =
        stub.PrepareUnaryCall(&context, method, EmptyPods(0), &queue);
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), code) << method << ": " << status.error_message();
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) continue;
  }
}

// Many authorities sign an e-mail address for its owner: it may look like the name of another caller.
TEST_F(StrangersTest, EmailInCertificate_IsNoName) {
  authority_.Issue("mailer", "somebody", 3600, "orchestrator");
  const RunningMusterd musterd(absl::StrCat(Tls(), "  extender: true\n  clientCaFile: ", authority_.ca_file(),
                                            "\nauth: {writers: ['cert:orchestrator']}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  EXPECT_TRUE(Read(Client(musterd, "client")).ok());
  const absl::Status refused = Read(Client(musterd, "mailer"));
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_EQ(AskExtender(musterd, "mailer"), 403);
}

// The process may open few files, and strangers open more connections than that.
TEST_F(StrangersTest, MoreConnectionsThanFiles_LeaveEveryListenerServing) {
  ASSERT_GT(RaiseFileLimit(), 4'096);  // of this process
  constexpr size_t kFiles = 600;
  const RunningMusterd musterd("", "{enabled: false}", kFiles);
  ASSERT_TRUE(musterd.running()) << musterd.log();
  EXPECT_TRUE(absl::StrContains(musterd.log(), "the limit of open files is 600: ")) << musterd.log();
  std::vector<int> idle;
  for (size_t i = 0; i < kFiles; ++i) {
    for (const int port : {musterd.bind_port(), musterd.extender_port(), musterd.admin_port()}) {
      idle.push_back(ConnectLoopback(port));
    }
  }
  const auto served = [&] {
    httplib::Client filter("127.0.0.1", musterd.extender_port());
    const httplib::Result decision = filter.Post("/filter", kFilter, "application/json");
    httplib::Client admin("127.0.0.1", musterd.admin_port());
    const httplib::Result ready = admin.Get("/readyz");
    return decision && decision->status == 200 && ready && ready->status == 200;
  };
  EXPECT_TRUE(served());
  EXPECT_TRUE(Read(WithoutTls(musterd)).ok());
  for (const int fd : idle) close(fd);
  // All connections to the gRPC listener are from this address, which has half of the places.
  std::vector<int> more;
  for (size_t i = 0; i < kFiles; ++i) more.push_back(ConnectLoopback(musterd.grpc_port()));
  EXPECT_TRUE(served()) << "the files of other listeners are not used up";
  for (const int fd : more) close(fd);
  EXPECT_TRUE(Eventually([&] { return Read(WithoutTls(musterd), kRefusedFor).ok(); }));
}

TEST_F(StrangersTest, FailedHandshakes_WriteFewLogLines) {
  const RunningMusterd musterd(absl::StrCat(Tls(), "auth: {tokensFile: ", tokens_, "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const size_t before = musterd.log().size();
  const absl::Time begun = absl::Now();
  for (int i = 0; i < 500; ++i) {
    const int fd = ConnectLoopback(musterd.grpc_port());
    constexpr char kNoTls[] = "this is not a handshake, whatever the other side expects\n";
    send(fd, kNoTls, sizeof(kNoTls), MSG_NOSIGNAL);
    char answer[64];
    while (recv(fd, answer, sizeof(answer), 0) > 0) continue;
    close(fd);
  }
  const auto seconds = static_cast<size_t>(absl::ToInt64Seconds(absl::Now() - begun)) + 2;
  EXPECT_LT(musterd.log().size() - before, seconds * 10 * 300) << musterd.log().substr(before);
  EXPECT_TRUE(Read(Client(musterd, "", kReader)).ok());
}

// The bodies that become the largest documents, from clients that nothing is known about.
TEST_F(StrangersTest, ReviewsOfStrangers_TakeLittleMemory) {
  const int port = FreePort();
  const RunningMusterd musterd(absl::StrCat("webhook: {listen: '127.0.0.1:", port,
                                            "', certFile: ", authority_.cert_file("server"),
                                            ", keyFile: ", authority_.key_file("server"), "}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  std::string body = R"({"request":{"uid":"u","object":)";
  for (int i = 0; i < 1'300'000; ++i) body += i == 0 ? "[[]" : ",[]";
  body += "]}}";
  const auto post = [&](const std::string& text) {
    httplib::SSLClient client("localhost", port);
    client.set_ca_cert_path(authority_.ca_file().c_str());
    client.set_read_timeout(std::chrono::seconds(60));
    const httplib::Result result = client.Post("/admit", text, "application/json");
    return result ? result->status : 0;
  };
  constexpr char kReview[] =
      R"({"request":{"uid":"u","operation":"CREATE","kind":{"kind":"Pod"},"namespace":"d","object":{"metadata":{}}}})";
  ASSERT_EQ(post(kReview), 200);
  const int64_t before = musterd.ResidentKib();
  const int64_t grown = GrowthDuring(musterd, [&] {
    std::vector<std::thread> strangers;
    for (int i = 0; i < 16; ++i) {
      strangers.emplace_back([&] {
        for (int k = 0; k < 3; ++k) {
          const int status = post(body);
          EXPECT_TRUE(status == 400 || status == 0) << status;
        }
      });
    }
    EXPECT_EQ(post(kReview), 200) << "others are served";
    for (std::thread& stranger : strangers) stranger.join();
  });
  const int too_long = post(std::string(5 << 20, ' '));
  EXPECT_TRUE(too_long == 413 || too_long == 0) << too_long << ": the connection may end while the client still sends";
  if (kSanitized) return;
  EXPECT_LT(grown, 100 * kMib);
  // Memory that was needed for a moment is released to the system.
  EXPECT_TRUE(Eventually([&] { return musterd.ResidentKib() < before + 30 * kMib; })) << musterd.ResidentKib();
}

TEST(FileShares, Files_AreDividedInProportion) {
  const ConnectionLimits many = DivideFiles(1 << 20, 5'000);
  EXPECT_EQ(many.max_holds, 5'000);
  EXPECT_GT(many.bind, 5'000);
  EXPECT_EQ(many.extender, 256);
  for (const size_t files : {size_t{256}, size_t{1'024}, size_t{4'096}, size_t{8'192}}) {
    const ConnectionLimits few = DivideFiles(files, 5'000);
    EXPECT_LT(few.admin + few.extender + few.webhook + few.grpc + few.bind, files) << files;
    EXPECT_LT(few.max_holds, 5'000);
    EXPECT_LT(static_cast<size_t>(few.max_holds), few.bind) << "some places answer other binds";
    EXPECT_GE(few.extender, 16);
  }
  EXPECT_EQ(DivideFiles(8'192, 100).max_holds, 100) << "few holds need few files";
  EXPECT_TRUE(CanOpenFile());
}

TEST(LogLimit, Lines_AreLimitedEachSecond) {
  LogLimit limit(2);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(limit.Admit(now), 0);
  EXPECT_EQ(limit.Admit(now), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.Admit(now + absl::Milliseconds(900)), std::nullopt);
  EXPECT_EQ(limit.Admit(now + absl::Seconds(1)), 5);
  EXPECT_EQ(limit.Admit(now + absl::Seconds(1)), 0);
}

// A connected pair of sockets: the other end of `own` notices when it is shut down.
struct SocketPair {
  SocketPair() {
    int ends[2];
    [[maybe_unused]] const int made = socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    own = ends[0];
    peer = ends[1];
  }
  ~SocketPair() {
    close(own);
    close(peer);
  }
  [[nodiscard]] bool IsShut() const {
    char byte = 0;
    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
  }
  int own = -1;
  int peer = -1;
};

TEST(ConnectionTable, BodiesTogether_AreLimited) {
  ConnectionTable table(/*limit=*/10, /*body_limit=*/100);
  SocketPair slow, answered, next;
  const int64_t slow_id = table.Add(slow.own);
  const int64_t answered_id = table.Add(answered.own);
  const int64_t next_id = table.Add(next.own);
  table.AcquireBody(slow_id, 40);
  table.AcquireBody(answered_id, 60);
  table.SetAnswering(answered_id, true);
  Notification acquired;
  std::thread waiting([&] {
    table.AcquireBody(next_id, 40);
    acquired.Notify();
  });
  // The connection that is still sending its body is shut down; the one whose request is answered is left alone.
  EXPECT_TRUE(Eventually([&] { return slow.IsShut(); }));
  EXPECT_FALSE(answered.IsShut());
  EXPECT_FALSE(next.IsShut());
  EXPECT_FALSE(acquired.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  table.Remove(slow_id);
  acquired.WaitForNotification();
  waiting.join();
  table.ReleaseBody(answered_id);
  table.ReleaseBody(next_id);
  table.AcquireBody(next_id, 1'000);  // larger than all together: admitted alone
  table.ReleaseBody(next_id);
}

}  // namespace
}  // namespace muster
