// The informer against an API server that misbehaves (SPEC K-10, S-6): pages, bookmarks, resume, 410, 401, 429, 500,
// and missed deletions.
#include "k8s-extender/apiserver/informer.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "support/sync.h"
#include "tests/support/local_server.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

// Serves /things from a script: each list and each watch takes the next answer.
class FakeApi {
 public:
  FakeApi() {
    server_->Get("/things", [this](const httplib::Request& request, httplib::Response& response) {
      MutexLock lock(&mutex_);
      const bool watch = request.has_param("watch");
      requests_.push_back(request.target);
      std::vector<std::pair<int, std::string>>& script = watch ? watches : lists;
      if (script.empty()) {
        response.status = 500;
        return;
      }
      response.status = script.front().first;
      if (retry_after_s > 0 && response.status != 200)
        response.set_header("Retry-After", std::to_string(retry_after_s));
      response.set_content(script.front().second, "application/json; charset=utf-8");
      script.erase(script.begin());
    });
    EXPECT_TRUE(WarmLibraries());
    port = server_.Start();
  }
  int port = 0;
  int retry_after_s = 0;  // sent with every failure, unless it is 0
  std::vector<std::pair<int, std::string>> lists;
  std::vector<std::pair<int, std::string>> watches;
  // The requests so far. An abandoned request may still be under way.
  std::vector<std::string> Requests() {
    MutexLock lock(&mutex_);
    return requests_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  LocalServer<> server_;
};

std::string Thing(const std::string& name, const std::string& uid, int version) {
  return absl::StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"d","uid":")", uid, R"(","resourceVersion":")",
                      version, R"("}})");
}
std::string List(const std::string& items, const std::string& token, int version) {
  return absl::StrCat(R"({"kind":"ThingList","metadata":{"resourceVersion":")", version, R"(","continue":")", token,
                      R"("},"items":[)", items, "]}");
}
std::string Event(const char* type, const std::string& object) {
  return absl::StrCat(R"({"type":")", type, R"(","object":)", object, "}\n");
}

std::string UidOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "uid"); }

Informer::Handlers IgnoreAll() {
  Informer::Handlers handlers;
  handlers.identity = UidOf;
  handlers.read = [](const Json&) { return [] {}; };
  handlers.remove = [](const std::string&, const std::string&) {};
  return handlers;
}

// The events of an informer, in order.
class EventLog {
 public:
  void Add(std::string what) {
    MutexLock lock(&mutex_);
    all_.push_back(std::move(what));
  }
  // Waits for `count` events, at most 20 s.
  void Await(size_t count) {
    for (int i = 0; i < 2000 && all().size() < count; ++i) absl::SleepFor(absl::Milliseconds(10));
  }
  std::vector<std::string> all() {
    MutexLock lock(&mutex_);
    return all_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> all_ ABSL_GUARDED_BY(mutex_);
};

// "+UID" for an object that is there, "-UID" for one that is gone.
Informer::Handlers LogInto(EventLog* log) {
  Informer::Handlers handlers = IgnoreAll();
  handlers.read = [log](const Json& object) { return [log, uid = UidOf(object)] { log->Add("+" + uid); }; };
  handlers.remove = [log](const std::string& identity, const std::string&) { log->Add("-" + identity); };
  return handlers;
}

TEST(Informer, MisbehavingServer_StaysInSync) {
  FakeApi api;
  api.lists = {{500, "broken"},
               {401, "{}"},
               {429, "{}"},
               {200, "not json"},
               {200, R"({"kind":"Status","status":"Success","metadata":{"resourceVersion":"4"}})"},
               {200, R"({"kind":"ThingList","metadata":{},"items":[]})"},
               {200, List(Thing("a", "u-a", 1), "page2", 5)},
               {200, List(Thing("b", "u-b", 2), "", 5)},
               // After the 410: b is gone, a has come back as another object.
               {200, List(Thing("a", "u-a2", 9), "", 10)}};
  api.watches = {// An earlier object c was deleted; its event arrives late.
                 {200, Event("ADDED", Thing("c", "u-c", 6)) + Event("DELETED", Thing("c", "u-c0", 4)) +
                           Event("BOOKMARK", R"({"metadata":{"resourceVersion":"7"}})")},
                 {200, Event("DELETED", Thing("c", "u-c", 8)) + "{torn"},
                 {200, Event("ERROR", R"({"code":410,"message":"too old"})")}};
  EventLog events;
  Informer::Handlers handlers = LogInto(&events);
  handlers.synced = [&] { events.Add("synced"); };
  KubeClient client(ServerAt(api.port));
  Informer informer("/things", &client, handlers);
  informer.Start();
  const std::vector<std::string> expected = {"+u-a", "+u-b", "synced", "+u-c", "-u-c", "-u-a", "+u-a2", "-u-b"};
  events.Await(expected.size());
  informer.Stop();
  EXPECT_EQ(events.all(), expected);
  bool resumed = false;
  for (const std::string& request : api.Requests())
    resumed = resumed || request.find("resourceVersion=7") != std::string::npos;
  EXPECT_TRUE(resumed) << "the second watch goes on from the bookmark";
  EXPECT_GE(informer.stats().errors, 7u);
}

TEST(Informer, Pages_NextIsRequestedWhileOneIsRead) {
  FakeApi api;
  api.lists = {{200, List(Thing("a", "1", 1), "page2", 5)},
               {200, List(Thing("b", "2", 2), "page 3", 5)},
               {200, List(Thing("c", "3", 3), "", 5)}};
  KubeClient client(ServerAt(api.port));
  EventLog log;
  Informer::Handlers handlers = LogInto(&log);
  handlers.read = [&](const Json& object) {
    const std::string uid = UidOf(object);
    const size_t expected = std::min<size_t>(3, 1 + static_cast<size_t>(uid[0] - '0'));
    for (int i = 0; i < 2000 && api.Requests().size() < expected; ++i) absl::SleepFor(absl::Milliseconds(10));
    const std::string seen = absl::StrCat("+", uid, " after ", std::min(expected, api.Requests().size()), " requests");
    return [&log, seen] { log.Add(seen); };
  };
  Informer informer("/things", &client, handlers);
  informer.Start();
  log.Await(3);
  informer.Stop();
  EXPECT_EQ(log.all(), (std::vector<std::string>{"+1 after 2 requests", "+2 after 3 requests", "+3 after 3 requests"}));
  const std::vector<std::string> requests = api.Requests();
  ASSERT_GE(requests.size(), 3U);
  EXPECT_EQ(std::vector<std::string>(requests.begin(), requests.begin() + 3),
            (std::vector<std::string>{"/things?limit=500", "/things?limit=500&continue=page2",
                                      "/things?limit=500&continue=page%203"}));
}

// Reading takes longer than the server takes to make a page.
TEST(Informer, Pages_AreReadTogetherAndAnnouncedInOrder) {
  FakeApi api;
  api.lists = {{200, List(absl::StrCat(Thing("a", "1", 1), ",", Thing("b", "2", 1)), "2", 5)},
               {200, List(Thing("c", "3", 2), "3", 5)},
               {200, List(Thing("d", "4", 3), "4", 5)},
               {200, List(Thing("e", "5", 4), "", 5)}};
  KubeClient client(ServerAt(api.port));
  EventLog log;
  Informer::Handlers handlers = LogInto(&log);
  std::atomic<int> begun{0};
  handlers.read = [&](const Json& object) {
    ++begun;
    for (int i = 0; i < 2000 && begun < 3; ++i) absl::SleepFor(absl::Milliseconds(10));
    const std::string seen = absl::StrCat("+", UidOf(object), begun < 3 ? " alone" : "");
    return [&log, seen] { log.Add(seen); };
  };
  Informer informer("/things", &client, handlers);
  informer.Start();
  log.Await(5);
  informer.Stop();
  EXPECT_EQ(log.all(), (std::vector<std::string>{"+1", "+2", "+3", "+4", "+5"}));
}

// A stop while a page is under way does not wait for it.
TEST(Informer, StoppedDuringList_EndsSoon) {
  LocalServer<> server;
  server->Get("/things", [](const httplib::Request& request, httplib::Response& response) {
    if (!request.has_param("continue")) {
      return response.set_content(List(Thing("a", "1", 1), "more", 5), "application/json; charset=utf-8");
    }
    response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
      absl::SleepFor(absl::Milliseconds(10));
      return sink.is_writable();
    });
  });
  KubeClient client(ServerAt(server.Start()));
  EventLog log;
  Informer::Handlers handlers = IgnoreAll();
  handlers.read = [&](const Json& object) {
    log.Add(UidOf(object));
    return [] {};
  };
  Informer informer("/things", &client, handlers);
  informer.Start();
  log.Await(1);
  const absl::Time begun = absl::Now();
  informer.Stop();
  EXPECT_LT(absl::Now() - begun, absl::Seconds(10));
}

// K-2: kube-scheduler may know of an object before this watch does. Versions tell what it cannot know yet from what it
// has seen deleted.
TEST(Informer, OfferedObject_KnownUnlessTheWatchHasPassedIt) {
  FakeApi api;
  api.lists = {{200, List(Thing("a", "1", 5), "", 10)}};
  api.watches = {{200, Event("ADDED", Thing("b", "2", 12)) + Event("DELETED", Thing("b", "2", 14))}};
  KubeClient client(ServerAt(api.port));
  EventLog log;
  Informer informer("/things", &client, LogInto(&log));
  const auto offer = [&](const std::string& name, const std::string& uid, int version) {
    return informer.Offer(Json::parse(Thing(name, uid, version)));
  };
  EXPECT_FALSE(offer("a", "1", 5)) << "nothing is listed yet: the list may lack what was deleted";
  informer.Start();
  log.Await(3);
  ASSERT_EQ(log.all(), (std::vector<std::string>{"+1", "+2", "-2"}));
  while (informer.stats().events < 2) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(offer("a", "1", 5)) << "known already";
  EXPECT_FALSE(offer("a", "other", 99)) << "another object has the name here: the watch will say which is the later";
  EXPECT_FALSE(offer("b", "2", 12)) << "it was deleted";
  EXPECT_FALSE(offer("b", "2", 14));
  EXPECT_FALSE(informer.Offer(Json::parse(R"({"metadata":{"name":"x","namespace":"d","uid":"9"}})"))) << "no version";
  EXPECT_EQ(log.all().size(), 3U);
  EXPECT_TRUE(offer("c", "3", 15));
  EXPECT_TRUE(offer("c", "3", 15));
  EXPECT_EQ(log.all().back(), "+3");
  EXPECT_EQ(log.all().size(), 4U) << "announced once";
  informer.Stop();
}

// A list that lacks what was offered removes it: its deletion was missed.
TEST(Informer, OfferedObject_RemovedByNextList) {
  FakeApi api;
  api.lists = {{200, List("", "", 10)}, {200, List("", "", 30)}};
  KubeClient client(ServerAt(api.port));
  EventLog log;
  Informer informer("/things", &client, LogInto(&log));
  informer.Start();
  while (!informer.stats().synced) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(informer.Offer(Json::parse(Thing("c", "3", 15))));
  log.Await(2);  // every watch fails, so everything is listed again
  EXPECT_EQ(log.all(), (std::vector<std::string>{"+3", "-3"}));
  informer.Stop();
}

// Any object may contain deeply nested fields. Such fields are cut, and all objects are read.
TEST(Informer, DeepNesting_IsCut) {
  const auto deep = [](const std::string& name, int version) {
    const std::string nested = absl::StrCat(std::string(3'000, '['), std::string(3'000, ']'));
    return absl::StrCat(R"({"spec":{"deep":)", nested, R"(,"size":3},"metadata":{"name":")", name,
                        R"(","namespace":"d","uid":"u-)", name, R"(","resourceVersion":")", version, R"("}})");
  };
  FakeApi api;
  api.lists = {{200, List(deep("a", 1) + "," + Thing("b", "u-b", 2), "", 5)}};
  api.watches = {{200, Event("ADDED", deep("c", 6)) + Event("ADDED", Thing("d", "u-d", 7))}};
  EventLog events;
  Informer::Handlers handlers = IgnoreAll();
  handlers.read = [&](const Json& object) {
    EXPECT_LT(object.dump().size(), 1'000);
    return [&events, seen = absl::StrCat(UidOf(object), " ", IntAt(Child(object, "spec"), "size").value_or(0))] {
      events.Add(seen);
    };
  };
  KubeClient client(ServerAt(api.port));
  Informer informer("/things", &client, handlers);
  informer.Start();
  events.Await(4);
  informer.Stop();
  EXPECT_EQ(events.all(), (std::vector<std::string>{"u-a 3", "u-b 0", "u-c 3", "u-d 0"}));
}

// A response that is not a list removes nothing: known objects stay.
TEST(Informer, NotAList_RemovesNothing) {
  FakeApi api;
  api.lists = {{200, List(Thing("a", "u-a", 1), "", 5)},
               {200, R"({"kind":"Status","status":"Success"})"},
               {200, R"({"kind":"ThingList","metadata":{"resourceVersion":""},"items":[]})"},
               {200, R"({"kind":"ThingList","metadata":{"resourceVersion":"9"},"items":{}})"}};
  api.watches = {{410, "{}"}};
  std::atomic<int> removed{0};
  Informer::Handlers handlers = IgnoreAll();
  handlers.remove = [&](const std::string&, const std::string&) { ++removed; };
  KubeClient client(ServerAt(api.port));
  Informer informer("/things", &client, handlers);
  informer.Start();
  for (int i = 0; i < 1'000 && api.Requests().size() < 6; ++i) absl::SleepFor(absl::Milliseconds(10));
  informer.Stop();
  EXPECT_GE(api.Requests().size(), 6U);
  EXPECT_EQ(removed, 0);
}

// As after a restore of etcd: the server never had the version from which the informer watches.
TEST(Informer, FailingWatches_ListAgain) {
  FakeApi api;
  api.lists.assign(50, {200, List("", "", 900)});
  api.watches.assign(50, {504, R"({"kind":"Status","message":"Too large resource version"})"});
  KubeClient client(ServerAt(api.port));
  Informer informer("/things", &client, IgnoreAll());
  informer.Start();
  const auto lists = [&] {
    int count = 0;
    for (const std::string& request : api.Requests()) count += request.find("watch=1") == std::string::npos ? 1 : 0;
    return count;
  };
  for (int i = 0; i < 1'000 && lists() < 2; ++i) absl::SleepFor(absl::Milliseconds(10));
  informer.Stop();
  EXPECT_GE(lists(), 2);
  EXPECT_LE(api.Requests().size(), 7U) << "with pauses";
}

// A server that ends every watch at once, or asks for a pause, is not flooded with requests.
TEST(Informer, BusyServer_NotFlooded) {
  const auto asked = [](FakeApi* api, absl::Duration for_how_long) {
    KubeClient client(ServerAt(api->port));
    Informer informer("/things", &client, IgnoreAll());
    informer.Start();
    absl::SleepFor(for_how_long);
    informer.Stop();
    return api->Requests().size();
  };
  FakeApi hasty;
  hasty.lists.assign(1'000, {200, List("", "", 5)});
  hasty.watches.assign(1'000, {200, ""});
  EXPECT_LE(asked(&hasty, absl::Seconds(1)), 8U) << "0.1 to 0.3 s after the first, then longer";
  FakeApi remarks;
  remarks.lists.assign(1'000, {200, List("", "", 5)});
  remarks.watches.assign(1'000, {200, Event("BOOKMARK", R"({"metadata":{"resourceVersion":"7"}})")});
  EXPECT_LE(asked(&remarks, absl::Seconds(1)), 8U) << "a bookmark is no news";
  FakeApi nameless;
  nameless.lists.assign(1'000, {200, R"({"kind":"ThingList","metadata":{},"items":[]})"});
  EXPECT_LE(asked(&nameless, absl::Seconds(1)), 8U) << "there is no version to watch from";
  FakeApi gone;
  gone.lists.assign(1'000, {200, List("", "", 5)});
  gone.watches.assign(1'000, {410, "{}"});
  EXPECT_LE(asked(&gone, absl::Seconds(1)), 12U) << "a list and a watch each time";
  EXPECT_EQ(gone.Requests().at(2).find("watch=1"), std::string::npos) << "the first 410 is enough to list again";
  FakeApi busy;
  busy.retry_after_s = 2;
  busy.lists.assign(1'000, {429, "{}"});
  EXPECT_EQ(asked(&busy, absl::Milliseconds(1'500)), 1U) << "not before the 2 s are over";
}

// Whether an informer is failing, since when and why: its facts are current only while lists or watches succeed.
TEST(Informer, FailingLists_ShownUntilOneSucceeds) {
  FakeApi api;
  api.retry_after_s = 1;
  api.lists = {{403, R"({"kind":"Status","message":"things is forbidden"})"}, {200, List("", "", 5)}};
  KubeClient client(ServerAt(api.port));
  Informer informer("/things", &client, IgnoreAll());
  EXPECT_TRUE(informer.stats().error.ok());
  const absl::Time begun = SteadyNow();
  informer.Start();
  InformerStats stats = informer.stats();
  for (int i = 0; i < 2'000 && stats.error.ok(); ++i, stats = informer.stats()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsPermissionDenied(stats.error)) << stats.error;
  EXPECT_NE(stats.error.message().find("things is forbidden"), std::string::npos) << stats.error;
  EXPECT_GE(stats.failing_since, begun);
  EXPECT_LE(stats.failing_since, SteadyNow());
  for (int i = 0; i < 2'000 && !stats.synced; ++i, stats = informer.stats()) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(stats.synced);
  // The watches fail now.
  const absl::Time listed = stats.last_contact;
  for (int i = 0; i < 2'000 && stats.error.ok(); ++i, stats = informer.stats()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(stats.error.ok());
  EXPECT_GE(stats.failing_since, listed) << "the list was a success";
  informer.Stop();
}

// On a quiet cluster a watch has no event for a minute.
TEST(Informer, SilentWatch_EndsFailure) {
  std::atomic<int> watches{0};
  LocalServer<> server;
  server->Get("/things", [&](const httplib::Request& request, httplib::Response& response) {
    if (!request.has_param("watch")) return response.set_content(List("", "", 5), "application/json; charset=utf-8");
    if (++watches == 1) {
      response.status = 500;
      return;
    }
    response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
      absl::SleepFor(absl::Milliseconds(10));
      return sink.is_writable();
    });
  });
  ASSERT_TRUE(WarmLibraries());
  KubeClient client(ServerAt(server.Start()));
  Informer informer("/things", &client, IgnoreAll());
  informer.Start();
  const auto fails = [&] { return !informer.stats().error.ok(); };
  for (int i = 0; i < 2'000 && !fails(); ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(fails());
  for (int i = 0; i < 2'000 && fails(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(fails());
  EXPECT_EQ(informer.stats().errors, 1U);
  informer.Stop();
}

TEST(KubeClient, HangingServer_TimesOut) {
  LocalServer<> server;
  server->Get("/slow", [](const httplib::Request&, httplib::Response&) { absl::SleepFor(absl::Seconds(2)); });
  KubeClient client(ServerAt(server.Start()));
  const absl::Time start = absl::Now();
  const absl::StatusOr<KubeResponse> response = client.Send(KubeMethod::kGet, "/slow", "", absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(1500));
}

// The timeout covers the whole request, even if the response arrives byte by byte.
TEST(KubeClient, DrippingServer_TimesOut) {
  std::atomic<bool> over{false};
  LocalServer<> server;
  const auto drip = [&over](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("application/json", [&over](size_t, httplib::DataSink& sink) {
      absl::SleepFor(absl::Milliseconds(20));
      return !over && sink.write(" ", 1);
    });
  };
  server->Get("/slow", drip);
  server->Post("/slow", drip);
  ASSERT_TRUE(WarmLibraries());
  KubeClient client(ServerAt(server.Start()));
  for (const KubeMethod method : {KubeMethod::kGet, KubeMethod::kPost}) {
    const absl::Time start = absl::Now();
    const absl::StatusOr<KubeResponse> response = client.Send(method, "/slow", "{}", absl::Milliseconds(300));
    EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
    EXPECT_LT(absl::Now() - start, absl::Milliseconds(1500));
  }
  over = true;
}

TEST(KubeClient, InvalidUtf8_IsReplaced) {
  KubeResponse response;
  response.status = 403;
  response.body = "<html>Acc\xe8s refus\xe9\x1b[1m\n\xf0\x9f\x98\x80";
  EXPECT_EQ(StatusMessage(response), "HTTP 403: <html>Acc?s refus??[1m \xf0\x9f\x98\x80");
  response.body = std::string(199, 'a') + "\xc3\xa9";
  EXPECT_EQ(StatusMessage(response), absl::StrCat("HTTP 403: ", std::string(199, 'a'), "?")) << "cut in the middle";
}

}  // namespace
}  // namespace muster
