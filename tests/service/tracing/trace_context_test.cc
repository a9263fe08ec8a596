// Parsing and propagation of W3C Trace Context (SPEC S-4).
#include "support/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace muster {
namespace {

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

// https://www.w3.org/TR/trace-context/#traceparent-header
TEST(Traceparent, Header_IsParsedOrIgnored) {
  const SpanRef caller = ParseTraceparent(kParent);
  EXPECT_EQ(TraceHex(caller.trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(SpanHex(caller.span), "b7ad6b7169203331");
  EXPECT_FALSE(ParseTraceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later").none());
  const std::string good = kParent;
  const std::vector<std::string> wrong = {std::string(),
                                          good.substr(1),
                                          good + "-x",
                                          good.substr(0, 54),
                                          "ff" + good.substr(2),
                                          "0X" + good.substr(2),
                                          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                          "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
                                          "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
  for (const std::string& bad : wrong) {
    EXPECT_TRUE(ParseTraceparent(bad).none()) << bad;
  }
  EXPECT_TRUE(caller.sampled);
  EXPECT_FALSE(ParseTraceparent(good.substr(0, 53) + "00").sampled);
}

TEST(Traceparent, ScopedCaller_AppliesToItsThreadAndScope) {
  EXPECT_TRUE(CurrentCaller().none());
  {
    const ScopedCaller outer(ParseTraceparent(kParent));
    EXPECT_FALSE(CurrentCaller().none());
    {
      const ScopedCaller inner{SpanRef()};
      EXPECT_TRUE(CurrentCaller().none());
    }
    EXPECT_FALSE(CurrentCaller().none());
    std::thread([] { EXPECT_TRUE(CurrentCaller().none()); }).join();
  }
  EXPECT_TRUE(CurrentCaller().none());
}

}  // namespace
}  // namespace muster
