// muster_model: which gangs may use a queue (SPEC Q-12).
#include "state/model/queue_access.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/model/queue.h"

namespace muster {
namespace {

using enum SelectorOperator;

const NamespaceLabels& Known() {
  static const NamespaceLabels kKnown = {{"a", {{"team", "vision"}}}, {"b", {{"team", "audio"}, {"guest", "yes"}}}};
  return kKnown;
}

NamespaceSelector Labelled(std::vector<SelectorRequirement> requirements) { return {std::move(requirements)}; }

TEST(AccessTest, Policies_AreNamed) {
  for (const AccessPolicy policy : {AccessPolicy::kOpen, AccessPolicy::kListed}) {
    EXPECT_EQ(ParseAccessPolicy(ToString(policy)), policy);
  }
  EXPECT_EQ(ToString(AccessPolicy::kListed), "listed");
  EXPECT_EQ(ParseAccessPolicy("closed"), std::nullopt);
}

// The namespace counts for a gang without an authenticated caller, the identity for one with such a caller.
TEST(AccessTest, Serves_WhatAnyListNames) {
  const NamespaceSelector vision = Labelled({{"team", kIn, {"vision", "text"}}, {"guest", kDoesNotExist, {}}});
  struct Case {
    AccessList list;
    const char* by_namespace;  // the namespaces of a, b and x that it serves
    const char* by_caller;     // the callers of "token:s" and "cert:r" that it serves
  };
  const std::vector<Case> cases = {
      {{{"b", "a"}, {}, {}}, "ab", ""},
      {{{"*"}, {}, {}}, "abx", "sr"},
      {{{"x", "*"}, {}, {}}, "abx", "sr"},
      {{{}, vision, {}}, "a", ""},
      {{{}, Labelled({{"team", kNotIn, {"vision"}}}), {}}, "b", ""},
      {{{}, Labelled({{"guest", kExists, {}}}), {}}, "b", ""},
      {{{}, Labelled({}), {}}, "abx", ""},
      {{{"x"}, vision, {}}, "ax", ""},
      {{{}, {}, {"token:s"}}, "", "s"},
      {{{}, {}, {"token:t", "cert:r", "token:s"}}, "", "sr"},
      {{{}, {}, {"*"}}, "", "sr"},
      {{{"a"}, {}, {"cert:r"}}, "a", "r"},
  };
  for (const Case& each : cases) {
    AccessList list = each.list;
    SortNames(&list);
    SCOPED_TRACE(Describe(list));
    std::string by_namespace;
    std::string by_caller;
    for (const char* name_space : {"a", "b", "x"}) {
      if (Serves(list, {name_space, "", &Known()})) by_namespace += name_space;
      for (const char* caller : {"token:s", "cert:r"}) {
        const char mark = absl::string_view(caller).back();
        if (!Serves(list, {name_space, caller, &Known()})) continue;
        if (by_caller.find(mark) == std::string::npos) by_caller += mark;
      }
    }
    EXPECT_EQ(by_namespace, each.by_namespace);
    EXPECT_EQ(by_caller, each.by_caller);
  }
}

TEST(AccessTest, Description_NamesFirstEntries) {
  const auto describe = [](AccessList list) {
    SortNames(&list);
    return Describe(list);
  };
  EXPECT_EQ(describe({{"a"}, {}, {}}), "namespace a");
  EXPECT_EQ(describe({{"d", "c", "b", "a", "e"}, {}, {"cert:r"}}), "namespaces a, b, c and 2 more and caller cert:r");
  EXPECT_EQ(describe({{"a", "*"}, {}, {"cert:r"}}), "every gang");
  EXPECT_EQ(describe({{}, Labelled({}), {"*"}}), "every namespace and every authenticated caller");
  EXPECT_EQ(describe({{},
                      Labelled({{"team", kIn, {"v"}}, {"tier", kNotIn, {"x", "y"}}, {"guest", kDoesNotExist, {}}}),
                      {"token:a", "token:b"}}),
            "namespaces with labels team=v, tier notin (x, y), !guest and callers token:a, token:b");
}

TEST(AccessTest, Problems_NameFieldValueAndExpectation) {
  EXPECT_TRUE(ValidateAccess({{"a", "*", "a.b"}, Labelled({{"x/y", kIn, {""}}}), {"user:system:x", "*"}}).empty());
  const AccessList wrong = {
      {"A", ""},
      Labelled({{"", kExists, {}}, {"k", kIn, {}}, {"k", kDoesNotExist, {"v"}}, {"k", kGt, {"1"}}}),
      {"spark", "token:"}};
  EXPECT_EQ(absl::StrJoin(ValidateAccess(wrong), "\n"),
            "namespaces: \"A\"; expected the name of a namespace, or * for all\n"
            "namespaces: \"\"; expected the name of a namespace, or * for all\n"
            "identities: \"spark\"; expected token:NAME, user:NAME or cert:NAME, or * for all\n"
            "identities: \"token:\"; expected token:NAME, user:NAME or cert:NAME, or * for all\n"
            "namespaceSelector: \"\"; expected the key of a label\n"
            "namespaceSelector: \"k\" has no values; with In and NotIn, expected at least one\n"
            "namespaceSelector: \"k\" has values; with Exists and DoesNotExist, expected none\n"
            "namespaceSelector: \"k\" is compared as a number; expected operator In, NotIn, Exists or DoesNotExist");
  // S-6: sizes are bounded, and a list that is too long is one problem.
  const std::vector<std::string> many(1'001, "A");
  EXPECT_EQ(absl::StrJoin(ValidateAccess({many, Labelled(std::vector<SelectorRequirement>(1'001)), many}), "\n"),
            "namespaces: 1001 entries; expected at most 1000\n"
            "identities: 1001 entries; expected at most 1000\n"
            "namespaceSelector: 1001 requirements; expected at most 1000");
  EXPECT_EQ(ValidateAccess({{}, Labelled({{"k", kIn, std::vector<std::string>(1'001)}}), {}}).size(), 1U);
}

QueueSpec Queue(const std::string& name, const std::string& parent, AccessList access = {}) {
  QueueSpec queue;
  queue.name = name;
  queue.parent = parent;
  queue.access = std::move(access);
  return queue;
}

// Children inherit the list of the nearest queue above with one; queue default serves every gang unless it is listed.
TEST(AccessTest, Tree_InheritsNearestList) {
  QueueTree tree;
  QueueRules rules;
  rules.access = AccessPolicy::kListed;
  rules.queues = {Queue("org", "", {{"b", "a"}, {}, {}}), Queue("team", "org"), Queue("deep", "team"),
                  Queue("own", "org", {{}, Labelled({{"guest", kExists, {}}}), {}}), Queue("idle", "")};
  ASSERT_TRUE(ValidateQueues(rules).empty());
  tree.Set(rules);
  const auto served = [&](const char* queue) {
    std::string out;
    for (const char* name_space : {"a", "b", "x"}) {
      if (tree.Serves(tree.Find(queue), {name_space, "", &Known()})) out += name_space;
      const Reason refusal = tree.AccessRefusal(tree.Find(queue), {name_space, "", &Known()});
      EXPECT_EQ(refusal.none(), tree.Serves(tree.Find(queue), {name_space, "", &Known()}));
      EXPECT_TRUE(refusal.none() || refusal.code == ReasonCode::kQueueRejected);
    }
    return out;
  };
  for (const char* queue : {"org", "team", "deep"}) EXPECT_EQ(served(queue), "ab") << queue;
  EXPECT_EQ(served("own"), "b") << "its own list replaces that of its parent";
  EXPECT_EQ(served("idle"), "");
  EXPECT_EQ(served("default"), "abx");
  EXPECT_EQ(tree.DescribeAccess(tree.Find("deep")), "queue deep serves what queue org lists, namespaces a, b");
  EXPECT_EQ(tree.DescribeAccess(tree.Find("default")), "queue default serves every gang");
  EXPECT_EQ(tree.AccessRefusal(tree.Find("own"), {"a", "token:s", &Known()}).text,
            "queue own serves namespaces with labels guest; this gang is of caller token:s: name a queue that serves "
            "it, or ask the owner of the queue to list it");
  EXPECT_EQ(tree.rules(), rules) << "the rules stay as declared";
  rules.queues.push_back(Queue("default", "", {{"a"}, {}, {}}));
  tree.Set(rules);
  EXPECT_EQ(served("default"), "a");
  rules.access = AccessPolicy::kOpen;
  tree.Set(rules);
  for (const char* queue : {"org", "idle", "default"}) EXPECT_EQ(served(queue), "abx") << queue;
  EXPECT_EQ(tree.DescribeAccess(tree.Find("idle")), "");
  EXPECT_FALSE(tree.ServesNone(tree.Find("idle")));
}

TEST(AccessTest, Tree_DistinguishesLabelsThatItSelects) {
  QueueTree tree;
  const Labels vision = {{"team", "vision"}, {"other", "1"}};
  const Labels more = {{"team", "vision"}, {"other", "2"}};
  const Labels audio = {{"team", "audio"}};
  QueueRules rules;
  rules.queues = {Queue("q", "", {{}, Labelled({{"team", kIn, {"vision"}}}), {}}), Queue("r", "", {{"x"}, {}, {}})};
  for (const AccessPolicy policy : {AccessPolicy::kOpen, AccessPolicy::kListed}) {
    const bool listed = policy == AccessPolicy::kListed;
    rules.access = policy;
    tree.Set(rules);
    EXPECT_EQ(tree.Distinguishes(&vision, &audio), listed);
    EXPECT_EQ(tree.Distinguishes(nullptr, &vision), listed);
    EXPECT_FALSE(tree.Distinguishes(&vision, &more));
    EXPECT_FALSE(tree.Distinguishes(nullptr, &audio));
  }
}

}  // namespace
}  // namespace muster
