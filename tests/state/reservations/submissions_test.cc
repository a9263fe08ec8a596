// SPEC S-1: the table of submissions, open and finished.
#include "state/reservations/submissions.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class SubmissionsTest : public RoomsTest {
 protected:
  SubmissionsTest() : gang_(PutGang("g", 1)) { Touched(gang_); }
  void Finish(SubmissionReply::State state) {
    SubmissionReply reply;
    reply.state = state;
    submissions_.Finish(gang_, reply);
  }
  const Gang& gang_;
};

TEST_F(SubmissionsTest, Submission_IsOpenUntilFinished) {
  EXPECT_EQ(submissions_.Of(gang_), nullptr);
  EXPECT_EQ(submissions_.Find("s"), nullptr);
  EXPECT_FALSE(submissions_.Expired(gang_, kNever));
  submissions_.Open(gang_, "s", 5'000, 77);
  EXPECT_TRUE(gang_.submitted);
  EXPECT_EQ(submissions_.size(), 1U);
  EXPECT_EQ(submissions_.Find("s"), &gang_);
  EXPECT_EQ(submissions_.Find("t"), nullptr);
  EXPECT_EQ(submissions_.Of(gang_)->id, "s");
  EXPECT_EQ(submissions_.Of(gang_)->ttl_ms, 5'000);
  EXPECT_EQ(submissions_.Of(gang_)->fingerprint, 77U);
  EXPECT_EQ(submissions_.FindFinished("s"), nullptr);
  Finish(SubmissionReply::State::kAbandoned);
  EXPECT_FALSE(gang_.submitted);
  EXPECT_TRUE(Touched(gang_));
  EXPECT_EQ(submissions_.size(), 0U);
  EXPECT_EQ(submissions_.Of(gang_), nullptr);
  EXPECT_EQ(submissions_.Find("s"), nullptr);
  const SubmissionReply* ended = submissions_.FindFinished("s");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->state, SubmissionReply::State::kAbandoned);
  EXPECT_EQ(ended->fingerprint, 77U);
  EXPECT_EQ(ended->gang, "d/g");
}

TEST_F(SubmissionsTest, OnQueried_RestartsExpiry) {
  submissions_.OnPlanWithdrawn(gang_);  // no effect: the gang was not submitted
  EXPECT_TRUE(DrainDirty(&gang_deadlines_).empty());
  submissions_.Open(gang_, "s", 5'000, 0);
  EXPECT_FALSE(submissions_.Expired(gang_, kNever - 1)) << "not before its time began";
  submissions_.OnQueried(gang_, /*planned=*/false, kT0);
  EXPECT_EQ(DrainDirty(&gang_deadlines_), std::vector<int32_t>{gang_.id});
  EXPECT_FALSE(submissions_.Expired(gang_, kT0 + 4'999));
  EXPECT_TRUE(submissions_.Expired(gang_, kT0 + 5'000));
  EXPECT_FALSE(submissions_.Of(gang_)->confirmed);
  submissions_.MarkConfirmed(gang_);
  EXPECT_TRUE(submissions_.Of(gang_)->confirmed);
  submissions_.OnPlanWithdrawn(gang_);
  EXPECT_FALSE(submissions_.Of(gang_)->confirmed) << "the plan that was confirmed is another or gone";
  EXPECT_EQ(submissions_.Of(gang_)->expires_ms, kT0 + 5'000);
}

TEST_F(SubmissionsTest, OnPlanned_RenewsExpiryOncePerQuery) {
  submissions_.Open(gang_, "s", 5'000, 0);
  submissions_.OnQueried(gang_, /*planned=*/false, kT0);
  submissions_.OnPlanned(gang_, kT0 + 100);
  EXPECT_EQ(submissions_.Of(gang_)->expires_ms, kT0 + 5'100);
  submissions_.OnPlanWithdrawn(gang_);
  submissions_.OnPlanned(gang_, kT0 + 200);
  EXPECT_EQ(submissions_.Of(gang_)->expires_ms, kT0 + 5'100) << "no call since then";
  submissions_.OnQueried(gang_, /*planned=*/true, kT0 + 300);
  EXPECT_EQ(submissions_.Of(gang_)->expires_ms, kT0 + 5'100) << "asking does not keep a plan";
  submissions_.OnPlanned(gang_, kT0 + 400);
  EXPECT_EQ(submissions_.Of(gang_)->expires_ms, kT0 + 5'400);
}

TEST_F(SubmissionsTest, FinishedSubmissions_PastBound_OldestIsRemoved) {
  for (int i = 0; i < 4'096; ++i) {
    submissions_.Open(gang_, absl::StrCat("s", i), 1, 0);
    Finish(SubmissionReply::State::kExpired);
  }
  EXPECT_NE(submissions_.FindFinished("s0"), nullptr);
  submissions_.Open(gang_, "one-more", 1, 0);
  Finish(SubmissionReply::State::kExpired);
  EXPECT_EQ(submissions_.FindFinished("s0"), nullptr);
  EXPECT_NE(submissions_.FindFinished("s1"), nullptr);
  EXPECT_NE(submissions_.FindFinished("one-more"), nullptr);
  submissions_.Open(gang_, "s0", 1, 0);
  Finish(SubmissionReply::State::kAbandoned);
  ASSERT_NE(submissions_.FindFinished("s0"), nullptr) << "forgotten, its id is new";
  EXPECT_EQ(submissions_.FindFinished("s0")->state, SubmissionReply::State::kAbandoned);
  EXPECT_EQ(submissions_.finished().size(), 4'096U);
  EXPECT_EQ(submissions_.finished().back(), "s0");
}

// A reply can list thousands of places.
TEST_F(SubmissionsTest, FinishedSubmissions_AreBoundedInBytes) {
  const auto finish = [&](const std::string& id, size_t bytes) {
    submissions_.Open(gang_, id, 1, 0);
    SubmissionReply reply;
    reply.state = SubmissionReply::State::kConfirmed;
    const std::string third(bytes / 3 / 1'000, 'x');
    for (int i = 0; i < 1'000; ++i) reply.places.push_back({third, third, third});
    submissions_.Finish(gang_, std::move(reply));
  };
  constexpr size_t kMiB = size_t{1} << 20;
  for (int i = 0; i < 12; ++i) finish(absl::StrCat("s", i), kMiB);
  EXPECT_NE(submissions_.FindFinished("s0"), nullptr);
  for (int i = 12; i < 20; ++i) finish(absl::StrCat("s", i), kMiB);
  EXPECT_EQ(submissions_.FindFinished("s0"), nullptr);
  EXPECT_NE(submissions_.FindFinished("s19"), nullptr);
  EXPECT_GE(submissions_.finished().size(), 12U);
  EXPECT_LE(submissions_.finished().size(), 16U);
  finish("huge", 40 * kMiB);
  ASSERT_NE(submissions_.FindFinished("huge"), nullptr) << "the newest always remains";
  EXPECT_EQ(submissions_.FindFinished("huge")->places.size(), 1'000U);
  EXPECT_EQ(submissions_.finished().size(), 1U);
  finish("small", 1);
  EXPECT_EQ(submissions_.FindFinished("huge"), nullptr);
  for (int i = 0; i < 10; ++i) finish(absl::StrCat("t", i), kMiB);
  EXPECT_EQ(submissions_.finished().size(), 11U) << "what was forgotten does not count";
}

TEST(SubmissionState, ToString_EachState_ReturnsItsName) {
  int state = 0;
  for (const char* name : {"Waiting", "Planned", "Confirmed", "Abandoned", "Expired"})
    EXPECT_EQ(ToString(static_cast<SubmissionReply::State>(state++)), name);
}

}  // namespace
}  // namespace muster
