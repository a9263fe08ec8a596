#include "k8s-extender/apiserver/client.h"

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "state/base/text.h"
#include "support/file.h"
#include "support/json.h"

namespace muster {
namespace {

constexpr absl::Duration kTokenAge = absl::Minutes(1);
// Proxies and API servers drop connections after some idle minutes, often without notice.
constexpr absl::Duration kIdle = absl::Minutes(1);
constexpr absl::Duration kConnect = absl::Seconds(5);
constexpr size_t kMaxIdle = 64;
// At most this long, Stop keeps closing connections that are in use.
constexpr absl::Duration kStop = absl::Seconds(1);
constexpr absl::Duration kStopPollInterval = absl::Milliseconds(10);
constexpr size_t kMaxLine = 16 << 20;  // an object in etcd has at most 1.5 MiB, and as JSON a few times as much
constexpr size_t kMaxPages = size_t{96} << 20;  // pages of lists in flight; reading one takes a few times its size
constexpr size_t kMaxStatus = 1 << 20;
constexpr size_t kStatusMessage = 1'000;
constexpr size_t kMessage = 200;

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;

BioPtr Memory(const std::string& pem) { return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

// Returns a store of every certificate in `pem`; nullptr when there is none. The caller owns it.
X509_STORE* StoreOf(const std::string& pem) {
  X509_STORE* store = X509_STORE_new();
  const BioPtr bio = Memory(pem);
  bool any = false;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    any = X509_STORE_add_cert(store, certificate) == 1 || any;
    X509_free(certificate);
  }
  if (any) return store;
  X509_STORE_free(store);
  return nullptr;
}

// Uncompressed: the API server is near, and decompressing every watch event costs more than the bytes.
httplib::Headers CommonHeaders() {
  return {{"Accept", "application/json"}, {"Accept-Encoding", "identity"}, {"User-Agent", "musterd"}};
}

const char* MethodName(KubeMethod method) {
  if (method == KubeMethod::kGet) return "GET";
  if (method == KubeMethod::kDelete) return "DELETE";
  return method == KubeMethod::kPost ? "POST" : "PATCH";
}

const char* ContentType(KubeMethod method) {
  switch (method) {
    case KubeMethod::kPatchMerge:
      return "application/merge-patch+json";
    case KubeMethod::kPatchStrategic:
      return "application/strategic-merge-patch+json";
    default:
      return "application/json";
  }
}

// An encoded body is refused unread: a few kilobytes can decompress to gigabytes.
absl::Status CheckEncoding(const httplib::Response& answer) {
  const std::string encoding = answer.get_header_value("Content-Encoding");
  if (encoding.empty() || encoding == "identity") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("API server: answered HTTP ", answer.status,
                                                    " with Content-Encoding ", Quoted(Plain(encoding)),
                                                    "; the request accepts only identity"));
}

absl::Status TooLarge(absl::string_view what, size_t max_bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("API server: ", what, " of more than ", max_bytes >> 20, " MiB"));
}

absl::Status TransportError(httplib::Error error) {
  const std::string text = absl::StrCat("API server: ", httplib::to_string(error));
  if (error == httplib::Error::Read || error == httplib::Error::Write) return absl::DeadlineExceededError(text);
  return absl::UnavailableError(text);
}

}  // namespace

KubeClient::KubeClient(KubeConfig config) : config_(std::move(config)), pages_(kMaxPages) {}
KubeClient::~KubeClient() { Stop(); }

absl::StatusOr<KubeClient::Connection> KubeClient::Connect() {
  Connection connection;
  if (config_.tls) {
    X509* certificate = nullptr;
    EVP_PKEY* key = nullptr;
    if (!config_.client_cert_pem.empty()) {
      certificate = PEM_read_bio_X509(Memory(config_.client_cert_pem).get(), nullptr, nullptr, nullptr);
      key = PEM_read_bio_PrivateKey(Memory(config_.client_key_pem).get(), nullptr, nullptr, nullptr);
      if (certificate == nullptr || key == nullptr) {
        X509_free(certificate);
        EVP_PKEY_free(key);
        return absl::InvalidArgumentError("kubeconfig: the client certificate or its key is not readable PEM");
      }
    }
    auto ssl = std::make_shared<httplib::SSLClient>(config_.host, config_.port, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (!config_.ca_pem.empty()) {
      X509_STORE* store = StoreOf(config_.ca_pem);
      if (store == nullptr) return absl::InvalidArgumentError("kubeconfig: certificate-authority holds no certificate");
      ssl->set_ca_cert_store(store);
      // Without this path cpp-httplib would also load the system's authorities into this store. They are not trusted
      // here, and parsing them takes 70 ms per connection. A directory is only searched by hash.
      ssl->set_ca_cert_path("", "/nonexistent");
    }
    ssl->enable_server_certificate_verification(!config_.skip_verify);
    connection = std::move(ssl);
  } else {
    connection = std::make_shared<httplib::ClientImpl>(config_.host, config_.port);
  }
  connection->set_keep_alive(true);
  connection->set_tcp_nodelay(true);
  connection->set_decompress(false);
  connection->set_connection_timeout(absl::ToInt64Seconds(kConnect));
  return connection;
}

// The most recently used connection, unless it was idle for longer than kIdle: the other side may have dropped it.
absl::StatusOr<KubeClient::Connection> KubeClient::AcquireConnection(absl::Duration timeout) {
  absl::StatusOr<Connection> connection = nullptr;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return absl::CancelledError("stopping");
    if (!idle_.empty() && SteadyNow() - idle_.back().since > kIdle) idle_.clear();
    if (!idle_.empty()) {
      connection = std::move(idle_.back().connection);
      idle_.pop_back();
    }
  }
  if (*connection == nullptr) connection = Connect();
  if (!connection.ok()) return connection;
  MutexLock lock(&mutex_);
  if (stopped_) return absl::CancelledError("stopping");
  in_use_.push_back({*connection, WatchTime(*connection, timeout)});
  return connection;
}

int64_t KubeClient::WatchTime(const Connection& connection, absl::Duration time) {
  return watchdog_.Add(SteadyNow() + time, [connection] { connection->stop(); });
}

bool KubeClient::RemoveInUse(const Connection& connection) {
  int64_t watched = 0;
  {
    MutexLock lock(&mutex_);
    const auto mine =
        std::find_if(in_use_.begin(), in_use_.end(), [&](const InUse& use) { return use.connection == connection; });
    watched = mine->watched;
    in_use_.erase(mine);
  }
  return watchdog_.Remove(watched);
}

bool KubeClient::ReturnConnection(const Connection& connection, bool fine) {
  const bool in_time = RemoveInUse(connection);
  MutexLock lock(&mutex_);
  if (!fine || !in_time) {
    idle_.clear();  // whatever broke this one has probably broken the idle ones
  } else if (!stopped_ && idle_.size() < kMaxIdle) {
    idle_.push_back({connection, SteadyNow()});
  }
  return in_time;
}

absl::Status KubeClient::StatusOfError(httplib::Error error) {
  MutexLock lock(&mutex_);
  return stopped_ ? absl::CancelledError("stopping") : TransportError(error);
}

std::string KubeClient::Token() {
  if (config_.token_file.empty()) return config_.token;
  MutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  if (now - token_read_ > kTokenAge) {
    const absl::StatusOr<std::string> text = ReadFile(config_.token_file);
    const absl::string_view token = absl::StripAsciiWhitespace(text.ok() ? *text : absl::string_view());
    if (!token.empty()) token_ = std::string(token);  // an unreadable file leaves the last token in use
    token_read_ = now;
  }
  return token_;
}

// The token may have been rotated.
void KubeClient::InvalidateToken() {
  MutexLock lock(&mutex_);
  token_read_ = absl::InfinitePast();
}

absl::StatusOr<KubeResponse> KubeClient::Send(KubeMethod method, const std::string& path, const std::string& body,
                                              absl::Duration timeout, size_t max_bytes) {
  absl::StatusOr<Connection> connection = AcquireConnection(timeout);
  if (!connection.ok()) return connection.status();
  httplib::Headers headers = CommonHeaders();
  if (const std::string token = Token(); !token.empty())
    headers.emplace("Authorization", absl::StrCat("Bearer ", token));
  const auto micros = absl::ToInt64Microseconds(timeout);
  (*connection)->set_connection_timeout(absl::ToInt64Seconds(std::min(kConnect, timeout)) + 1);
  (*connection)->set_read_timeout(micros / 1'000'000, micros % 1'000'000);
  (*connection)->set_write_timeout(micros / 1'000'000, micros % 1'000'000);
  KubeResponse response;
  httplib::Request request;
  request.method = MethodName(method);
  request.path = path;
  request.headers = std::move(headers);
  if (!body.empty()) {
    request.body = body;
    request.headers.emplace("Content-Type", ContentType(method));
  }
  absl::Status refused;
  request.response_handler = [&](const httplib::Response& head) {
    refused = CheckEncoding(head);
    size_t length = 0;
    if (!absl::SimpleAtoi(head.get_header_value("Content-Length"), &length)) length = 0;
    if (refused.ok() && length > max_bytes) refused = TooLarge("an answer", max_bytes);
    if (refused.ok()) response.body.reserve(length);
    return refused.ok();
  };
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (size > max_bytes - response.body.size()) refused = TooLarge("an answer", max_bytes);
    if (refused.ok()) response.body.append(data, size);
    return refused.ok();
  };
  httplib::Response answer;
  httplib::Error error = httplib::Error::Success;
  const bool sent = (*connection)->send(request, answer, error);
  if (!ReturnConnection(*connection, sent)) return absl::DeadlineExceededError("API server: no whole answer in time");
  if (!sent) return refused.ok() ? StatusOfError(error) : refused;
  response.status = answer.status;
  if (response.status == 401) InvalidateToken();
  if (!absl::SimpleAtoi(answer.get_header_value("Retry-After"), &response.retry_after_s)) response.retry_after_s = 0;
  return response;
}

absl::StatusOr<KubeResponse> KubeClient::Watch(const std::string& path, absl::Duration silence,
                                               const std::function<void()>& opened,
                                               const std::function<bool(absl::string_view)>& line,
                                               const std::atomic<bool>& stop) {
  absl::StatusOr<Connection> made = Connect();
  if (!made.ok()) return made.status();
  const Connection connection = *made;
  int64_t watched = 0;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return absl::CancelledError("stopping");
    watched = WatchTime(connection, silence);  // until the response headers arrive
    in_use_.push_back({connection, watched});
  }
  connection->set_read_timeout(absl::ToInt64Seconds(silence));
  httplib::Headers headers = CommonHeaders();
  if (const std::string token = Token(); !token.empty())
    headers.emplace("Authorization", absl::StrCat("Bearer ", token));
  KubeResponse response;
  absl::Status refused;
  std::string pending;
  const auto head = [&](const httplib::Response& answer) {
    response.status = answer.status;
    watchdog_.SetDeadline(watched, absl::InfiniteFuture());
    if (!absl::SimpleAtoi(answer.get_header_value("Retry-After"), &response.retry_after_s)) response.retry_after_s = 0;
    refused = CheckEncoding(answer);
    if (refused.ok() && response.status == 200) opened();
    return refused.ok();
  };
  const auto body = [&](const char* data, size_t size) {
    if (stop) return false;
    const size_t before = pending.size();  // the beginning of a line
    pending.append(data, size);
    if (response.status != 200) return pending.size() < kMaxStatus;
    size_t start = 0;
    for (size_t end = pending.find('\n', before); end != std::string::npos; end = pending.find('\n', start)) {
      if (!line(absl::string_view(pending).substr(start, end - start))) return false;
      start = end + 1;
    }
    pending.erase(0, start);
    if (pending.size() > kMaxLine) refused = TooLarge("a line of a watch", kMaxLine);
    return refused.ok();
  };
  const httplib::Result result = connection->Get(path, headers, head, body);
  static_cast<void>(RemoveInUse(connection));
  if (response.status == 401) InvalidateToken();
  if (!refused.ok()) return refused;
  if (response.status == 0) return StatusOfError(result.error());
  if (response.status != 200) response.body = std::move(pending);
  return response;
}

void KubeClient::Stop() {
  pages_.Close();
  // Repeated: a request that is just about to begin would miss a single attempt.
  for (const absl::Time end = SteadyNow() + kStop; SteadyNow() < end; absl::SleepFor(kStopPollInterval)) {
    std::vector<Connection> in_use;
    {
      MutexLock lock(&mutex_);
      stopped_ = true;
      for (const InUse& use : in_use_) in_use.push_back(use.connection);
      idle_.clear();
    }
    if (in_use.empty()) return;
    for (const Connection& connection : in_use) connection->stop();
  }
}

std::string StatusMessage(const KubeResponse& response) {
  std::string message;
  if (response.body.size() <= kMaxStatus) {
    const absl::StatusOr<Json> parsed = ParseJson(response.body, "response");
    if (parsed.ok()) message = StringOrEmpty(*parsed, "message").substr(0, kStatusMessage);
  }
  // A proxy's answer may be binary.
  if (message.empty()) message = response.body.substr(0, kMessage);
  return absl::StrCat("HTTP ", response.status, ": ", Plain(message));
}

std::string EscapeQuery(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      static constexpr char kHex[] = "0123456789ABCDEF";
      out += '%';
      out += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

}  // namespace muster
