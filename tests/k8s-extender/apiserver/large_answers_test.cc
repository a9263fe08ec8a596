// The client and the informer against large, endless and encoded answers (SPEC K-10, S-6, S-11).
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/apiserver/informer.h"
#include "k8s-extender/apiserver/page_budget.h"
#include "support/sync.h"
#include "tests/support/local_server.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

std::string Thing(int number, size_t bytes = 0) {
  return absl::StrCat(R"({"metadata":{"namespace":"d","name":"t)", number, R"(","uid":"u)", number,
                      R"(","resourceVersion":"1","annotations":{"filling":")", std::string(bytes, 'x'), R"("}}})");
}

std::string List(const std::string& items, const std::string& token) {
  return absl::StrCat(R"({"kind":"ThingList","metadata":{"resourceVersion":"5","continue":")", token, R"("},"items":[)",
                      items, "]}");
}

// In chunks, as kube-apiserver sends lists.
void SendChunked(std::string body, httplib::Response* response) {
  const auto kept = std::make_shared<const std::string>(std::move(body));
  response->set_chunked_content_provider("application/json", [kept](size_t offset, httplib::DataSink& sink) {
    const size_t size = std::min(kept->size() - offset, size_t{256} << 10);
    if (size == 0) {
      sink.done();
      return true;
    }
    return sink.write(kept->data() + offset, size);
  });
}

// Serves /things: lists by a function, and watches that stay open and silent.
class ListServer {
 public:
  using Answer = std::function<void(const httplib::Request&, httplib::Response*)>;
  explicit ListServer(Answer list) {
    server_->Get("/things",
                 [this, list = std::move(list)](const httplib::Request& request, httplib::Response& response) {
                   if (request.has_param("watch")) {
                     response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
                       absl::SleepFor(absl::Milliseconds(10));
                       return sink.is_writable();
                     });
                     return;
                   }
                   ++lists;
                   list(request, &response);
                 });
    EXPECT_TRUE(WarmLibraries());
    port = server_.Start();
  }
  int port = 0;
  std::atomic<int> lists{0};

 private:
  LocalServer<> server_;
};

// The objects that an informer has announced, by UID.
class Announced {
 public:
  [[nodiscard]] Informer::Handlers Handlers() {
    Informer::Handlers handlers;
    handlers.identity = [](const Json& object) { return StringOrEmpty(Child(object, "metadata"), "uid"); };
    handlers.read = [this, identity = handlers.identity](const Json& object) {
      return [this, uid = identity(object)] {
        MutexLock lock(&mutex_);
        uids_.insert(uid);
      };
    };
    handlers.remove = [](const std::string&, const std::string&) {};
    return handlers;
  }
  [[nodiscard]] std::multiset<std::string> uids() const {
    MutexLock lock(&mutex_);
    return uids_;
  }

 private:
  mutable Mutex mutex_;
  std::multiset<std::string> uids_ ABSL_GUARDED_BY(mutex_);
};

// At most a minute: a page may have tens of megabytes.
void AwaitSynced(const Informer& informer) {
  for (int i = 0; i < 6'000 && !informer.stats().synced; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(informer.stats().synced) << informer.stats().error;
}

int Parameter(const httplib::Request& request, const char* name) {
  int value = 0;
  static_cast<void>(absl::SimpleAtoi(request.get_param_value(name), &value));
  return value;
}

// A tenant's pods may have 1.5 MB each: 500 of them are no page that can be held in memory.
TEST(LargeLists, LargePods_AreReadInSmallerPages) {
  static constexpr int kLarge = 24;
  static constexpr int kAll = 2'024;
  ListServer server([](const httplib::Request& request, httplib::Response* response) {
    const int begin = Parameter(request, "continue");
    const int end = std::min(kAll, begin + Parameter(request, "limit"));
    std::string items;
    for (int i = begin; i < end; ++i) {
      absl::StrAppend(&items, i == begin ? "" : ",", Thing(i, i < kLarge ? 1'500'000 : 0));
    }
    SendChunked(List(items, end < kAll ? absl::StrCat(end) : ""), response);
  });
  KubeClient client(ServerAt(server.port));
  Announced announced;
  Informer informer("/things", &client, announced.Handlers());
  informer.Start();
  AwaitSynced(informer);
  informer.Stop();
  EXPECT_EQ(informer.stats().errors, 0U) << "a page that is too large is no failure";
  const std::multiset<std::string> uids = announced.uids();
  EXPECT_EQ(uids.size(), size_t{kAll}) << "each once";
  EXPECT_EQ(std::set<std::string>(uids.begin(), uids.end()).size(), size_t{kAll});
  EXPECT_LT(server.lists, 25) << "the pages grow again behind the large pods";
}

// Servers may ignore limits: then the smallest page is the whole list.
TEST(LargeLists, LimitsIgnored_WholeListIsRead) {
  std::string items;
  for (int i = 0; i < 36; ++i) absl::StrAppend(&items, i == 0 ? "" : ",", Thing(i, 1'000'000));
  const std::string list = List(items, "");
  ListServer server([&](const httplib::Request&, httplib::Response* response) {
    response->set_content(list, "application/json; charset=utf-8");
  });
  KubeClient client(ServerAt(server.port));
  Announced announced;
  Informer informer("/things", &client, announced.Handlers());
  informer.Start();
  AwaitSynced(informer);
  informer.Stop();
  EXPECT_EQ(announced.uids().size(), 36U);
}

// A list without an end fails with its reason, after a bounded number of pages, and is repeated with pauses.
TEST(EndlessLists, Fail_WithReasonAndPauses) {
  struct Case {
    const char* name;
    std::function<std::string(int page)> list;
  };
  const std::vector<Case> cases = {
      {"the same token", [](int page) { return List(Thing(page), "again"); }},
      {"the same token and no objects", [](int) { return List("", "again"); }},
      {"no objects", [](int page) { return List("", absl::StrCat(page)); }},
      {"the same objects",
       [](int page) { return List(absl::StrCat(Thing(1), ",", Thing(2)), absl::StrCat(page % 2)); }},
      {"one new object a page", [](int page) { return List(Thing(page), absl::StrCat(page)); }}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    std::atomic<int> page{0};
    ListServer server([&](const httplib::Request&, httplib::Response* response) {
      response->set_content(each.list(++page), "application/json; charset=utf-8");
    });
    KubeClient client(ServerAt(server.port));
    Announced announced;
    Informer informer("/things", &client, announced.Handlers());
    informer.Start();
    for (int i = 0; i < 3'000 && informer.stats().errors < 3; ++i) absl::SleepFor(absl::Milliseconds(10));
    informer.Stop();
    const InformerStats stats = informer.stats();
    EXPECT_GE(stats.errors, 3U);
    EXPECT_FALSE(stats.synced);
    EXPECT_NE(stats.error.message().find("the list does not end"), std::string::npos) << stats.error;
    EXPECT_LE(server.lists, 110 * static_cast<int>(stats.errors + 1));
  }
}

// An event that is too large to be read: the object is listed instead.
TEST(LargeEvents, LongerThanAnyEvent_ListsAgain) {
  LocalServer<> server;
  std::atomic<int> lists{0};
  server->Get("/things", [&](const httplib::Request& request, httplib::Response& response) {
    if (request.has_param("watch")) return SendChunked(std::string(size_t{17} << 20, 'x'), &response);
    ++lists;
    response.set_content(List(Thing(1), ""), "application/json; charset=utf-8");
  });
  ASSERT_TRUE(WarmLibraries());
  KubeClient client(ServerAt(server.Start()));
  Announced announced;
  Informer informer("/things", &client, announced.Handlers());
  informer.Start();
  for (int i = 0; i < 2'000 && lists < 2; ++i) absl::SleepFor(absl::Milliseconds(10));
  informer.Stop();
  EXPECT_GE(lists, 2);
  EXPECT_GE(informer.stats().errors, 1U);
}

TEST(KubeClientAnswers, LargerThanTheBound_ResourceExhausted) {
  LocalServer<> server;
  server->Get("/length", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(std::string(static_cast<size_t>(Parameter(request, "bytes")), 'x'), "text/plain");
  });
  server->Get("/chunks", [](const httplib::Request& request, httplib::Response& response) {
    SendChunked(std::string(static_cast<size_t>(Parameter(request, "bytes")), 'x'), &response);
  });
  ASSERT_TRUE(WarmLibraries());
  KubeClient client(ServerAt(server.Start()));
  for (const char* path : {"/length", "/chunks"}) {
    const auto send = [&](int bytes) {
      return client.Send(KubeMethod::kGet, absl::StrCat(path, "?bytes=", bytes), "", absl::Seconds(20), 100'000);
    };
    const absl::StatusOr<KubeResponse> fits = send(100'000);
    ASSERT_TRUE(fits.ok()) << fits.status();
    EXPECT_EQ(fits->body.size(), 100'000U);
    EXPECT_TRUE(absl::IsResourceExhausted(send(100'001).status())) << send(100'001).status();
    EXPECT_TRUE(send(1).ok()) << "the next request is answered";
  }
}

// A few kilobytes can decompress to gigabytes: an encoded answer is refused, not decompressed and not read.
TEST(KubeClientAnswers, ContentEncoding_RefusedUnread) {
  std::atomic<size_t> sent{0};
  std::atomic<bool> other_encoding_accepted{false};
  LocalServer<> server;
  server->Get("/gzip", [&](const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value("Accept-Encoding") != "identity") other_encoding_accepted = true;
    response.set_header("Content-Encoding", "gzip");
    response.set_chunked_content_provider("application/json", [&](size_t, httplib::DataSink& sink) {
      static const std::string kPiece(size_t{64} << 10, '\x1f');
      if (!sink.write(kPiece.data(), kPiece.size())) return false;
      sent += kPiece.size();
      return true;
    });
  });
  ASSERT_TRUE(WarmLibraries());
  KubeClient client(ServerAt(server.Start()));
  const absl::Status got = client.Send(KubeMethod::kGet, "/gzip", "", absl::Seconds(20)).status();
  const std::atomic<bool> stop{false};
  const absl::Status watched = client
                                   .Watch(
                                       "/gzip", absl::Seconds(20), [] { ADD_FAILURE() << "opened"; },
                                       [](absl::string_view) { return true; }, stop)
                                   .status();
  for (const absl::Status& status : {got, watched}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("gzip"), std::string::npos) << status;
  }
  server.Stop();
  EXPECT_FALSE(other_encoding_accepted);
  EXPECT_LT(sent, size_t{16} << 20) << "what buffers of the connections hold";
}

TEST(PageBudget, Share_WaitsUntilItFits) {
  PageBudget budget(100);
  auto first = std::make_unique<absl::StatusOr<PageBudget::Share>>(budget.Acquire(60));
  ASSERT_TRUE(first->ok());
  std::atomic<bool> acquired{false};
  std::thread waiting([&] {
    const absl::StatusOr<PageBudget::Share> second = budget.Acquire(60);
    acquired = second.ok();
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(acquired);
  (*first)->ReduceTo(40);
  waiting.join();
  EXPECT_TRUE(acquired);
  first.reset();
  EXPECT_TRUE(budget.Acquire(1'000).ok()) << "alone, a share may be larger than the budget";
  EXPECT_TRUE(budget.Acquire(100).ok()) << "the end of a share returns it";
}

TEST(PageBudget, Closed_EndsWaits) {
  PageBudget budget(100);
  const absl::StatusOr<PageBudget::Share> first = budget.Acquire(100);
  ASSERT_TRUE(first.ok());
  std::thread waiting([&] { EXPECT_TRUE(absl::IsCancelled(budget.Acquire(1).status())); });
  budget.Close();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(budget.Acquire(1).status()));
}

}  // namespace
}  // namespace muster
