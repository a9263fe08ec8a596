// The log of Muster's decisions and the views that readers share (SPEC S-4, S-5).
#include "service/engine/event_log.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace muster {
namespace {

class KeepingSink : public EffectSink {
 public:
  void Carry(std::vector<Effect> effects) override {
    for (Effect& effect : effects) carried.push_back(std::move(effect));
  }
  std::vector<Effect> carried;
};

std::vector<Effect> Notes(int count) {
  std::vector<Effect> notes;
  for (int i = 0; i < count; ++i) notes.push_back(EmitPodEvent{{"d", absl::StrCat("p", i), ""}, false, {}});
  return notes;
}

TEST(EventLog, Effect_BecomesEventAndIsForwarded) {
  KeepingSink next;
  EventLog log(&next);
  const PodRef pod{"d", "p", "u"};
  const int64_t before = absl::ToUnixMillis(absl::Now());
  log.Carry({BindPod{pod, "n", 0}, ActivatePod{pod, true, "m", 7}, MarkTimedOut{pod}, EvictPod{pod, "why"},
             EmitPodEvent{pod, true, {ReasonCode::kBindFailed, "x"}},
             EmitPodEvent{pod, false, {ReasonCode::kNoRoom, "y"}}});
  EXPECT_EQ(next.carried.size(), 6U);
  const EventLog::Page page = log.After(0);
  ASSERT_EQ(page.events.size(), 6U);
  EXPECT_EQ(page.missed, 0);
  struct Expected {
    EventType type;
    const char* node;
    ReasonCode code;
  };
  const std::vector<Expected> expected = {
      {EventType::kBind, "n", ReasonCode::kBinding},      {EventType::kActivate, "m", ReasonCode::kPlanned},
      {EventType::kTimedOut, "", ReasonCode::kTimedOut},  {EventType::kEvict, "", ReasonCode::kEvicted},
      {EventType::kWarning, "", ReasonCode::kBindFailed}, {EventType::kNote, "", ReasonCode::kNoRoom}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const EventRecord& event = *page.events[i];
    EXPECT_EQ(event.sequence, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(event.type, expected[i].type);
    EXPECT_EQ(event.node, expected[i].node);
    EXPECT_EQ(event.reason.code, expected[i].code);
    EXPECT_EQ(event.pod.uid, "u") << i;
    EXPECT_GE(event.unix_ms, before);
  }
  EXPECT_EQ(page.events[3]->reason.text, "why");
  EventLog last(nullptr);
  last.Carry(Notes(1));
  EXPECT_EQ(last.After(0).events.size(), 1U);
}

TEST(EventLog, Page_BeginsAfterNumber) {
  EventLog log(nullptr);
  EXPECT_TRUE(log.After(0).events.empty());
  EXPECT_EQ(log.After(5).missed, 0);
  log.Carry(Notes(3));
  EXPECT_EQ(log.After(-7).events.size(), 3U);
  EXPECT_EQ(log.After(-7).missed, 0);
  EXPECT_EQ(log.After(2).events.size(), 1U);
  EXPECT_EQ(log.After(2).events[0]->sequence, 3);
  EXPECT_TRUE(log.After(3).events.empty());
  EXPECT_TRUE(log.After(99).events.empty());
  EXPECT_EQ(log.After(99).missed, 0);
  const EventLog::Page page = log.After(1, 1);
  ASSERT_EQ(page.events.size(), 1U) << "as many as requested";
  EXPECT_EQ(page.events.back()->sequence, 2);
  EXPECT_EQ(page.last, 3);
  EXPECT_EQ(log.After(2, 2).events.size(), 1U);
}

TEST(EventLog, LogFull_OldestAreRemovedAndCounted) {
  EventLog log(nullptr);
  log.Carry(Notes(static_cast<int>(EventLog::kCapacity)));
  EXPECT_EQ(log.After(0).events.size(), EventLog::kCapacity);
  EXPECT_EQ(log.After(0).missed, 0);
  log.Carry(Notes(2));
  EXPECT_EQ(log.After(0).events.size(), EventLog::kCapacity);
  EXPECT_EQ(log.After(0).missed, 2);
  EXPECT_EQ(log.After(1).missed, 1);
  EXPECT_EQ(log.After(1).events.front()->sequence, 3);
  EXPECT_EQ(log.After(2).missed, 0);
  EXPECT_EQ(log.After(3).events.size(), EventLog::kCapacity - 1);
}

TEST(EventLog, Listener_IsCalledForEachBatch) {
  EventLog log(nullptr);
  int heard = 0;
  log.SetListener([&] { ++heard; });
  log.Carry(Notes(2));
  log.Carry(Notes(1));
  EXPECT_EQ(heard, 2);
  log.SetListener(nullptr);
  log.Carry(Notes(1));
  EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace muster
