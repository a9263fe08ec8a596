#include "k8s-extender/apiserver/informer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <future>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "k8s-extender/apiserver/object_json.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kPageReaders = 3;  // pages that are read at a time
// A list that lacks this many objects of those that its requests asked for, or that has this many, has no end. Servers
// fill every page but the last.
constexpr int64_t kMaxMissing = 50'000;
constexpr size_t kMaxObjects = 2'000'000;
constexpr int kWatchSeconds = 300;
// Bookmarks arrive about once a minute; a stream that is silent for longer is dead.
constexpr absl::Duration kSilence = absl::Seconds(150);
constexpr int kMaxFailuresShift = 5;
constexpr size_t kErrorMessage = 1'000;
// Servers usually ask for about a second; longer requests are limited to this.
constexpr int kMaxRetryAfterS = 30;
// A watch that ends sooner without an event is a failure: the next one begins after a pause.
constexpr absl::Duration kShortWatch = absl::Seconds(1);
// After this many futile watches everything is listed again: the server may no longer have their version, or, after a
// restore, not yet have it.
constexpr int kMaxFutileWatches = 3;

std::string KeyOf(const Json& object) {
  const Json& metadata = Child(object, "metadata");
  return absl::StrCat(StringOrEmpty(metadata, "namespace"), "/", StringOrEmpty(metadata, "name"));
}

std::string VersionOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "resourceVersion"); }

void SetSucceeded(InformerStats* stats) {
  stats->error = absl::OkStatus();
  stats->failing_since = absl::InfiniteFuture();
}

// A response that is not a list gives no information about existing objects.
absl::Status CheckList(const Json& list) {
  const std::string kind = StringOrEmpty(list, "kind");
  const Json& items = Child(list, "items");
  const bool is_list = absl::EndsWith(kind, "List") && (items.is_array() || items.is_null());
  if (is_list && !StringOrEmpty(Child(list, "metadata"), "resourceVersion").empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("asked for a list, the API server answered with ",
                                             kind.empty() ? "something else" : Quoted(kind),
                                             is_list ? " without metadata.resourceVersion" : ""));
}

absl::Status HttpError(const KubeResponse& response) {
  const std::string message = StatusMessage(response);
  if (response.status == 410) return absl::OutOfRangeError(message);
  if (response.status == 401 || response.status == 403) return absl::PermissionDeniedError(message);
  if (response.status == 404) return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

}  // namespace

Informer::Informer(std::string path, KubeClient* client, Handlers handlers)
    : path_(std::move(path)), client_(client), handlers_(std::move(handlers)) {}

Informer::~Informer() { Stop(); }

void Informer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Informer::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&wait_mutex_);
    stop_ = true;
    stopped_.SignalAll();
  }
  client_->Stop();
  thread_.join();
}

void Informer::Run() {
  int failures = 0;
  while (!stop_) {
    if (futile_watches_ >= kMaxFutileWatches) {
      spdlog::info("informer {}: {} watches failed; listing again", path_, futile_watches_);
      ForgetVersion();
    }
    const bool lists = version().empty();
    if (lists) futile_watches_ = 0;
    absl::Status status = lists ? List() : Watch();
    if (stop_ || absl::IsCancelled(status)) return;
    if (status.ok()) {
      if (!lists) failures = 0;  // a failing watch after a successful list still backs off
      continue;
    }
    if (absl::IsOutOfRange(status)) {
      spdlog::info("informer {}: {}; listing again", path_, std::string(status.message()));
      ForgetVersion();
    }
    Fail(status, &failures);
  }
}

void Informer::Fail(const absl::Status& status, int* failures) {
  static thread_local std::mt19937 random(std::random_device{}());
  const int shift = std::min((*failures)++, kMaxFailuresShift);
  const int base_ms = 200 << shift;
  const int said_ms = 1000 * std::clamp(std::exchange(retry_after_s_, 0), 0, kMaxRetryAfterS);
  const int wait_ms = said_ms + base_ms / 2 + static_cast<int>(random() % static_cast<unsigned>(base_ms));
  {
    MutexLock lock(&mutex_);
    ++stats_.errors;
    // A removed API is a state of its own.
    if (absl::IsNotFound(stats_.error) != absl::IsNotFound(status)) stats_.failing_since = absl::InfiniteFuture();
    stats_.error = status;
    stats_.failing_since = std::min(stats_.failing_since, SteadyNow());
  }
  if (*failures == 1 || *failures % 10 == 0) {
    spdlog::warn("informer {}: {} (failure {}, next try in {} ms)", path_, std::string(status.message()), *failures,
                 wait_ms);
  }
  MutexLock lock(&wait_mutex_);
  if (!stop_) stopped_.WaitWithTimeout(&wait_mutex_, absl::Milliseconds(wait_ms));
}

Informer::Object Informer::Read(const Json& object) const {
  return {KeyOf(object), handlers_.identity(object), handlers_.read(object)};
}

std::future<Informer::Page> Informer::ReadPage(PageRequests::Page requested,
                                               std::promise<absl::StatusOr<PageHead>> head) {
  // Takes the page by value: its text and its share of the budget end when it has been read.
  const auto read = [this](PageRequests::Page received, std::promise<absl::StatusOr<PageHead>> first) {
    Page page;
    page.limit = received.limit;
    bool answered = false;
    const auto on_head = [&](const Json& list) {
      absl::Status is_list = CheckList(list);
      const Json& metadata = Child(list, "metadata");
      if (is_list.ok()) {
        first.set_value(PageHead{StringOrEmpty(metadata, "resourceVersion"), StringOrEmpty(metadata, "continue")});
      } else {
        first.set_value(is_list);
      }
      answered = true;
      return is_list;
    };
    const auto on_item = [&](const Json& item) {
      page.objects.push_back(Read(item));
      return !stop_;
    };
    page.status = ReadList(std::move(received.response.body), "list", on_head, on_item);
    if (!answered) first.set_value(page.status.ok() ? absl::InternalError("a list without a head") : page.status);
    return page;
  };
  return std::async(std::launch::async, read, std::move(requested), std::move(head));
}

absl::StatusOr<std::string> Informer::ReadPages(absl::FunctionRef<absl::Status(Page)> on_page) {
  std::string version;
  std::string token;
  std::deque<std::future<Page>> reading;
  const auto take = [&] {
    Page page = reading.front().get();
    reading.pop_front();
    return page.status.ok() ? on_page(std::move(page)) : page.status;
  };
  PageRequests requests(path_, client_);
  std::future<absl::StatusOr<PageRequests::Page>> next = requests.Request("");
  while (next.valid()) {
    absl::StatusOr<PageRequests::Page> requested = next.get();
    if (!requested.ok()) return requested.status();
    if (requested->response.status != 200) return Refused(requested->response);
    std::promise<absl::StatusOr<PageHead>> promised;
    std::future<absl::StatusOr<PageHead>> awaited = promised.get_future();
    reading.push_back(ReadPage(*std::move(requested), std::move(promised)));
    const absl::StatusOr<PageHead> head = awaited.get();
    if (!head.ok()) return head.status();
    if (!token.empty() && head->token == token) {
      return absl::UnavailableError("the list does not end: a page has the continue token that it was requested with");
    }
    version = head->version;
    token = head->token;
    // The server makes the next page while these are read.
    if (!token.empty()) next = requests.Request(token);
    if (reading.size() < kPageReaders) continue;
    if (absl::Status read = take(); !read.ok()) return read;
  }
  while (!reading.empty()) {
    if (absl::Status read = take(); !read.ok()) return read;
  }
  return version;
}

absl::Status Informer::TakePage(Page page, std::set<std::string>* seen, int64_t* missing) {
  const size_t before = seen->size();
  for (Object& object : page.objects) {
    seen->insert(object.key);
    MutexLock lock(&objects_mutex_);
    Upsert(std::move(object));
  }
  const auto fresh = static_cast<int64_t>(seen->size() - before);
  constexpr int64_t kFewestPart = 8;  // some servers return no more than 100 objects, whatever was asked for
  if (fresh < page.limit / kFewestPart) *missing += page.limit - fresh;
  if (*missing <= kMaxMissing && seen->size() <= kMaxObjects) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the list does not end: its pages have had ", seen->size(),
                                             " different objects, ", *missing, " fewer than were asked for"));
}

absl::Status Informer::List() {
  std::set<std::string> seen;
  int64_t missing = 0;
  const absl::StatusOr<std::string> version =
      ReadPages([&](Page page) { return TakePage(std::move(page), &seen, &missing); });
  if (!version.ok()) return version.status();
  size_t objects = 0;
  {
    MutexLock lock(&objects_mutex_);
    for (auto known = known_.begin(); known != known_.end();) {
      if (seen.count(known->first) > 0) {
        ++known;
        continue;
      }
      handlers_.remove(known->second, known->first);
      known = known_.erase(known);
    }
    version_ = *version;
    objects = known_.size();
  }
  bool first = false;
  {
    MutexLock lock(&mutex_);
    first = !stats_.synced;
    stats_.synced = true;
    ++stats_.relists;
    stats_.objects = objects;
    stats_.last_contact = SteadyNow();
    SetSucceeded(&stats_);
  }
  if (first && handlers_.synced) handlers_.synced();
  return absl::OkStatus();
}

absl::Status Informer::Watch() {
  absl::Status failure;
  const absl::Time begun = SteadyNow();
  const uint64_t before = events_;
  const std::string path = absl::StrCat(path_, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=", kWatchSeconds,
                                        "&resourceVersion=", EscapeQuery(version()));
  const auto opened = [this] {
    MutexLock lock(&mutex_);
    watch_opened_ = SteadyNow();
  };
  const absl::StatusOr<KubeResponse> response = client_->Watch(
      path, kSilence, opened, [&](absl::string_view line) { return OnLine(line, &failure); }, stop_);
  {
    MutexLock lock(&mutex_);
    if (WatchIsSteady()) SetSucceeded(&stats_);
    watch_opened_ = absl::InfiniteFuture();
  }
  // The next watch would have the same event again; a list reads what is in it.
  if (absl::IsResourceExhausted(response.status())) return absl::OutOfRangeError(response.status().message());
  if (!response.ok()) return response.status();
  const bool busy = response->status == 429 || response->status == 503;  // a list would load it even more
  if (!busy) ++futile_watches_;
  if (response->status != 200) return Refused(*response);
  if (failure.ok() && events_ == before && SteadyNow() - begun < kShortWatch) {
    return absl::UnavailableError("the watch ended as soon as it began");
  }
  if (failure.ok() || events_ != before) futile_watches_ = 0;
  return failure;  // a stream that ended normally resumes from its version
}

bool Informer::WatchIsSteady() const { return SteadyNow() - watch_opened_ >= kShortWatch; }

absl::Status Informer::Refused(const KubeResponse& response) {
  retry_after_s_ = response.retry_after_s;
  return HttpError(response);
}

bool Informer::OnLine(absl::string_view line, absl::Status* failure) {
  const absl::StatusOr<Json> event = ParseObjects(line, "watch event");
  if (!event.ok()) {
    *failure = event.status();
    return false;
  }
  const std::string type = StringOrEmpty(*event, "type");
  const Json& object = Child(*event, "object");
  if (type == "ERROR") {
    const int64_t code = IntAt(object, "code").value_or(0);
    const std::string message = Plain(StringOrEmpty(object, "message").substr(0, kErrorMessage));
    *failure = code == 410 ? absl::OutOfRangeError(message) : absl::UnavailableError(message);
    return false;
  }
  size_t objects = 0;
  {
    MutexLock lock(&objects_mutex_);
    OnEvent(type, object);
    const std::string version = VersionOf(object);
    if (!version.empty()) version_ = version;
    objects = known_.size();
  }
  MutexLock lock(&mutex_);
  ++stats_.events;
  stats_.objects = objects;
  stats_.last_contact = SteadyNow();
  if (type != "BOOKMARK") SetSucceeded(&stats_);
  return !stop_;
}

void Informer::OnEvent(const std::string& type, const Json& object) {
  if (type == "ADDED" || type == "MODIFIED") {
    ++events_;
    Upsert(Read(object));
  } else if (type == "DELETED") {
    ++events_;
    const std::string key = KeyOf(object);
    const std::string identity = handlers_.identity(object);
    const auto known = known_.find(key);
    // If another object has this name now, the deleted one was removed when that object appeared.
    if (known == known_.end() || known->second == identity) handlers_.remove(identity, key);
    if (known != known_.end() && known->second == identity) known_.erase(known);
  }
}

// Versions of one kind of object are numbers that grow (KEP-5504). What the watch has not reached yet cannot have been
// deleted before it either; and since it becomes known, a list that misses it removes it.
bool Informer::Offer(const Json& object) {
  MutexLock lock(&objects_mutex_);
  if (const auto known = known_.find(KeyOf(object)); known != known_.end())
    return known->second == handlers_.identity(object);
  uint64_t offered = 0;
  uint64_t reached = 0;
  const bool newer =
      absl::SimpleAtoi(VersionOf(object), &offered) && absl::SimpleAtoi(version_, &reached) && offered > reached;
  if (newer) Upsert(Read(object));
  return newer;
}

std::string Informer::version() const {
  MutexLock lock(&objects_mutex_);
  return version_;
}

void Informer::ForgetVersion() {
  MutexLock lock(&objects_mutex_);
  version_.clear();
}

// A name that appears with another identity is another object: the old one is gone.
void Informer::Upsert(Object object) {
  auto [known, added] = known_.try_emplace(object.key, object.identity);
  if (!added && known->second != object.identity) {
    handlers_.remove(known->second, object.key);
    known->second = std::move(object.identity);
  }
  object.announce();
}

InformerStats Informer::stats() const {
  MutexLock lock(&mutex_);
  InformerStats stats = stats_;
  if (WatchIsSteady()) SetSucceeded(&stats);
  return stats;
}

}  // namespace muster
