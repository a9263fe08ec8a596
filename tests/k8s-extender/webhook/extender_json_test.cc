#include "k8s-extender/webhook/extender_json.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "k8s-extender/apiserver/kube_config.h"
#include "service/config/config.h"
#include "tests/support/expect_ok.h"

namespace muster {
namespace {

// SPEC K-1: keys as Go writes them, read case-insensitively, nulls accepted, both nodeCacheCapable forms.
TEST(ExtenderArgs, BothForms_AreParsed) {
  const ExtenderArgs names = ExpectOk(ParseExtenderArgs(
      R"({"Pod":{"metadata":{"name":"p","namespace":"ns","uid":"u","managedFields":[{"x":{"uid":"no"}}]}},"Nodes":null,"NodeNames":["a","\u0062"],"New":[1,{"y":2}]})"));
  EXPECT_EQ(names.pod_uid, "u");
  EXPECT_EQ(names.offer->names(), (std::vector<absl::string_view>{"a", "b"}));
  EXPECT_FALSE(names.whole_nodes);
  const ExtenderArgs nodes = ExpectOk(ParseExtenderArgs(
      R"({"pod":{"metadata":{"uid":"u"}},"nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]},"nodenames":null})"));
  EXPECT_TRUE(nodes.whole_nodes);
  EXPECT_EQ(nodes.offer->names(), (std::vector<absl::string_view>{"a", "b"}));
}

TEST(ExtenderArgs, BadInput_IsRefused) {
  for (const char* body :
       {"", "[]", "5", "null", "{", "{}", R"({"Pod":null})", R"({"Pod":{"metadata":{"uid":""}}})", "\xff\xfe",
        R"({"Pod":{"metadata":{"uid":5}}})", R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames":["a",5]})",
        R"({"Pod":{"metadata":{"uid":"u"}}} {})", R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames":["a","b]})",
        "{\"Pod\":{\"metadata\":{\"uid\":\"u\"}},\"NodeNames\":[\"\xff\"]}"}) {
    EXPECT_FALSE(ParseExtenderArgs(body).ok()) << body;
  }
  EXPECT_FALSE(ParseExtenderArgs("{\"a\":" + std::string(100'000, '[')).ok()) << "depth is bounded";
}

TEST(BindingArgs, Fields_AreParsedAndRequired) {
  EXPECT_EQ(ExpectOk(ParseBindingArgs(R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"})")).node, "n");
  EXPECT_EQ(ParseBindingArgs(R"({"PodUID":"u"})").status().message(),
            "ExtenderBindingArgs.Node: is missing; expected a node's name");
  EXPECT_FALSE(ParseBindingArgs(R"({"PodUID":5,"Node":"n"})").ok());
}

TEST(Preemption, Candidates_ParsedAndAnswered) {
  const PreemptionArgs args = ExpectOk(ParsePreemptionArgs(
      R"({"Pod":{"metadata":{"uid":"u"}},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"n-0":{"Pods":[{"UID":"v"}],"NumPDBViolations":3},"n-1":{"Pods":null}}})"));
  ASSERT_EQ(args.candidates.size(), 2u);
  EXPECT_EQ(args.candidates[0].victim_uids, std::vector<std::string>{"v"});
  EXPECT_FALSE(args.names_gang);
  const char* keys[] = {R"("annotations":{"gang.scheduling.koordinator.sh/name":"g"})",
                        R"("labels":{"pod-group.scheduling.sigs.k8s.io/name":"g"})",
                        R"("labels":{"scheduling.x-k8s.io/pod-group":"g"})"};
  for (const char* key : keys) {
    EXPECT_TRUE(ParsePreemptionArgs(absl::StrCat(R"({"pod":{"metadata":{"uid":"u",)", key, "}}}"))->names_gang) << key;
  }
  EXPECT_TRUE(ParsePreemptionArgs(R"({"Pod":{"metadata":{"uid":"u"},"spec":{"schedulingGroup":{"podGroupName":"g"}}}})")
                  ->names_gang);
  EXPECT_EQ(PreemptionResultJson(PreemptReply{}, args), R"({"NodeNameToMetaVictims":{}})");
  EXPECT_EQ(PreemptionResultJson(PreemptReply{{"n-0"}}, args),
            R"({"NodeNameToMetaVictims":{"n-0":{"NumPDBViolations":3,"Pods":[{"UID":"v"}]}}})")
      << "whom a PodDisruptionBudget would keep is kube-scheduler's to weigh";
  const char* of_job =
      R"({"Pod":{"metadata":{"uid":"u","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","controller":true}]}}})";
  EXPECT_FALSE(ParsePreemptionArgs(of_job)->names_gang);
  EXPECT_TRUE(ParsePreemptionArgs(of_job, {"Job"})->names_gang);
}

TEST(FilterResult, EachReplyKind_HasItsJson) {
  const ExtenderArgs args = ExpectOk(ParseExtenderArgs(R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames":["a","b"]})"));
  const FilterReply one{FilterReply::Kind::kSingleNode, "b", {}, {}};
  EXPECT_EQ(FilterResultJson(one, args, ""),
            R"({"Nodes":null,"NodeNames":["b"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
  const FilterReply none{FilterReply::Kind::kRefuse, "", {}, {ReasonCode::kNoRoom, "say \"no\"\n"}};
  EXPECT_EQ(
      FilterResultJson(none, args, ""),
      R"({"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":{"a":"muster: say \"no\"\u000a"},"Error":""})")
      << "K-3: one entry for all nodes";
  const FilterReply guarded{FilterReply::Kind::kPass, "", {"a"}, {ReasonCode::kGuarded, "promised"}};
  EXPECT_EQ(
      FilterResultJson(guarded, args, ""),
      R"({"Nodes":null,"NodeNames":["b"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"a":"muster: promised"},"Error":""})");
  const FilterReply all{FilterReply::Kind::kPass, "", {}, {}};
  EXPECT_EQ(FilterResultJson(all, args, ""),
            R"({"Nodes":null,"NodeNames":["a","b"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
  // The caller's own bytes.
  const std::string spaced = R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames": [ "a" , "\u0062" ],"x": 1})";
  EXPECT_EQ(
      FilterResultJson(all, ExpectOk(ParseExtenderArgs(spaced)), spaced),
      R"({"Nodes":null,"NodeNames":[ "a" , "\u0062" ],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
  const std::string no_nodes = R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames":null})";
  for (const FilterReply& reply : {all, none}) {
    EXPECT_EQ(FilterResultJson(reply, ExpectOk(ParseExtenderArgs(no_nodes)), no_nodes),
              R"({"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
  }
}

TEST(FilterResult, WholeNodes_AreReturned) {
  const std::string body =
      R"({"Pod":{"metadata":{"uid":"u"}},"Nodes":{"items":[{"metadata":{"name":"a"},"x":1},{"metadata":{"name":"b"},"x":2}]}})";
  const ExtenderArgs args = ExpectOk(ParseExtenderArgs(body));
  const auto selected = [&](const FilterReply& reply) {
    return ExpectOk(ParseJson(FilterResultJson(reply, args, body), "answer"))["Nodes"]["items"];
  };
  const Json items = ExpectOk(ParseJson(body, "request"))["Nodes"]["items"];
  EXPECT_EQ(selected({FilterReply::Kind::kSingleNode, "b", {}, {}}), Json::array({items[1]}));
  EXPECT_EQ(selected({FilterReply::Kind::kPass, "", {}, {}}), items);
  EXPECT_EQ(selected({FilterReply::Kind::kRefuse, "", {}, {ReasonCode::kNoRoom, "no"}}), Json::array());
}

// SPEC S-7: a configuration is validated as a whole, every problem is named.
TEST(Config, SeveralProblems_AllNamed) {
  const absl::StatusOr<Config> config = ParseConfig(
      "listen: {grpc: 0.0.0.0:1, extender: nowhere}\nholds: {max: -1}\ngangs: {waitTimeout: soon}\nnonsense: 1\n");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"listen.grpc", "listen.extender: \"nowhere\"", "holds.max: \"-1\" is not a whole number",
                           "gangs.waitTimeout: \"soon\"", "nonsense: there is no such setting"}) {
    EXPECT_NE(config.status().message().find(part), absl::string_view::npos) << part << " in\n"
                                                                             << config.status().message();
  }
}

// SPEC S-6: a caller that reaches the gRPC listener over a network has a certificate, or the risk is accepted in words.
TEST(Config, ListenersBeyondLoopback_NeedCredentials) {
  constexpr char kTls[] = "tls: {certFile: a, keyFile: b";
  const auto problems = [&](const std::string& yaml) { return std::string(ParseConfig(yaml).status().message()); };
  for (const char* host :
       {"0.0.0.0", "10.0.0.1", "127.0.0.1.evil.example", "localhost.example", "[::]", "127.1.evil"}) {
    for (const char* listener : {"grpc", "extender", "bind"}) {
      const std::string text = problems(absl::StrCat("listen: {", listener, ": '", host, ":1'}\n"));
      EXPECT_NE(text.find(absl::StrCat("listen.", listener, ": \"", host, "\" is not a loopback address")),
                std::string::npos)
          << text;
    }
  }
  for (const char* host : {"127.0.0.1", "127.8.8.8", "[::1]", "localhost"}) {
    EXPECT_EQ(problems(absl::StrCat("listen: {grpc: '", host, ":1', extender: '", host, ":2'}\n")), "") << host;
  }
  const std::string anywhere = "listen: {grpc: '0.0.0.0:1'}\n";
  EXPECT_NE(problems(absl::StrCat(anywhere, kTls, "}\nauth: {tokensFile: t}\n")).find("tls.withoutClientCertificate"),
            std::string::npos)
      << "tokens alone";
  EXPECT_NE(problems(absl::StrCat(anywhere, kTls, ", withoutClientCertificate: 'yes'}\nauth: {tokensFile: t}\n"))
                .find("is not empty or \"strangers may use up memory\""),
            std::string::npos)
      << "a risk that is not accepted in words";
  const auto needs = [&](const std::string& yaml) { return NeedsClientCertificate(ExpectOk(ParseConfig(yaml))); };
  const std::string accepted = ", withoutClientCertificate: strangers may use up memory";
  EXPECT_FALSE(needs(absl::StrCat(anywhere, kTls, accepted, "}\nauth: {tokensFile: t}\n")));
  EXPECT_FALSE(needs(absl::StrCat(anywhere, kTls, accepted, ", clientCaFile: c}\nauth: {tokensFile: t}\n")));
  EXPECT_TRUE(needs(absl::StrCat(anywhere, kTls, ", clientCaFile: c}\nauth: {tokensFile: t}\n")));
  EXPECT_TRUE(needs(absl::StrCat(anywhere, kTls, ", clientCaFile: c}\n")));
  EXPECT_FALSE(needs(absl::StrCat(kTls, ", clientCaFile: c}\nauth: {tokensFile: t}\n"))) << "on loopback";
}

// The YAML parser uses one of two equal keys and drops the other silently.
TEST(Config, DuplicateKey_IsNamed) {
  const absl::StatusOr<Config> config = ParseConfig(
      "gangs: {waitTimeout: 1s, waitTimeout: 2s}\nqueues:\n  tree:\n  - {name: a}\n"
      "  - {name: b, limit: {nvidia.com/gpu: 8, cpu: 1, nvidia.com/gpu: 80}}\n  - {name: c, name: d, limt: {}}\n");
  ASSERT_FALSE(config.ok());
  for (const char* part :
       {"gangs.waitTimeout: is given twice", "queues.tree[1].limit.nvidia.com/gpu: is given twice",
        "queues.tree[2].name: is given twice", "queues.tree[2].limt: there is no such field of a queue"}) {
    EXPECT_NE(config.status().message().find(part), absl::string_view::npos) << part << " in\n"
                                                                             << config.status().message();
  }
}

// SPEC Q-12: the gangs that a queue serves, in Kubernetes' notation; queues serve only these unless access is open.
TEST(Config, AccessOfQueues_IsRead) {
  EXPECT_EQ(Config().machine.queues.access, AccessPolicy::kListed);
  const Config config = ExpectOk(ParseConfig(
      "queues:\n  access: open\n  tree:\n"
      "  - {name: a, namespaces: [ml, \"*\"], identities: [\"token:spark\"]}\n"
      "  - name: b\n    namespaceSelector:\n      matchLabels: {team: vision}\n"
      "      matchExpressions: [{key: tier, operator: NotIn, values: [dev, test]}, {key: x, operator: Exists}]\n"
      "  - {name: c, namespaceSelector: {}}\n  - {name: d}\n"));
  const QueueRules& rules = config.machine.queues;
  EXPECT_EQ(rules.access, AccessPolicy::kOpen);
  EXPECT_EQ(rules.queues.at(0).access, (AccessList{{"ml", "*"}, {}, {"token:spark"}}));
  const NamespaceSelector selector = {{{"team", SelectorOperator::kIn, {"vision"}},
                                       {"tier", SelectorOperator::kNotIn, {"dev", "test"}},
                                       {"x", SelectorOperator::kExists, {}}}};
  EXPECT_EQ(rules.queues.at(1).access, (AccessList{{}, selector, {}}));
  EXPECT_EQ(rules.queues.at(2).access, (AccessList{{}, NamespaceSelector(), {}}));
  EXPECT_TRUE(rules.queues.at(3).access.empty());
}

TEST(Config, WrongAccessOfQueues_IsNamed) {
  const auto message = [](const std::string& yaml) { return std::string(ParseConfig(yaml).status().message()); };
  const std::string wrong = message(
      "queues:\n  access: closed\n  tree:\n  - {name: a, namespaces: [], identities: all}\n"
      "  - {name: b, namespaces: [[x]], namespaceSelector: team}\n"
      "  - {name: c, namespaceSelector: {matchLabels: [x], matchExpression: {}}}\n"
      "  - {name: d, namespaceSelector: {matchLabels: {k: {}}, matchExpressions: [x, {key: k, operator: Above, x: "
      "1}]}}\n");
  for (const char* part :
       {"queues.access: \"closed\" is not listed or open", "queues.tree[0].namespaces: \"\"; expected a list",
        "queues.tree[0].identities: \"all\"; expected a list",
        "queues.tree[1].namespaces: \"\"; expected a list of names",
        "queues.tree[1].namespaceSelector: \"team\"; expected a map",
        "queues.tree[2].namespaceSelector.matchLabels: \"\"; expected matchLabels, a map",
        "queues.tree[2].namespaceSelector.matchExpression: \"\"; expected matchLabels, a map",
        "queues.tree[3].namespaceSelector.matchLabels.k: \"\"; expected the label's value",
        "queues.tree[3].namespaceSelector.matchExpressions[0]: \"x\"; expected a map",
        "queues.tree[3].namespaceSelector.matchExpressions[1].x: \"1\"; expected key, operator",
        "queues.tree[3].namespaceSelector.matchExpressions[1].operator: \"Above\"; expected In, NotIn"}) {
    EXPECT_NE(wrong.find(part), std::string::npos) << part << " in\n" << wrong;
  }
  EXPECT_NE(message("queues: {tree: [{name: a, namespaces: [A B], identities: [spark]}]}\n")
                .find("queues.tree: queue a: namespaces: \"A B\"; expected the name of a namespace, or * for all"),
            std::string::npos);
  // Queues that no gang can use are reported; that is no error.
  const auto warnings = [](const std::string& yaml) { return FindWarnings(ExpectOk(ParseConfig(yaml))); };
  const std::string tree = "tree: [{name: a}, {name: b, parent: a}, {name: c}, {name: d, namespaces: [x]}]";
  EXPECT_EQ(warnings(absl::StrCat("queues: {", tree, "}\n")),
            std::vector<std::string>{"queues.tree: no gang can use b, c: neither the queue nor one above it lists "
                                     "namespaces or identities; list them, or set queues.access: open"});
  EXPECT_TRUE(warnings(absl::StrCat("queues: {access: open, ", tree, "}\n")).empty());
  EXPECT_TRUE(warnings("{}\n").empty());
}

// Aliases can contain themselves or expand without limit.
TEST(Config, AliasExpansion_IsBounded) {
  const auto message = [](const std::string& yaml) { return std::string(ParseConfig(yaml).status().message()); };
  EXPECT_NE(message("a: &a [*a]\n").find("an alias contains itself"), std::string::npos);
  EXPECT_NE(message("gangs: &a {planTries: *a}\n").find("an alias contains itself"), std::string::npos);
  std::string yaml = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 25; ++i) {
    yaml += absl::StrCat("a", i, ": &a", i, " {x: *a", i - 1, ", y: *a", i - 1, "}\n");
  }
  EXPECT_NE(message(yaml).find("has more than 100000 values"), std::string::npos);
  EXPECT_NE(message("gangs: {planTries: 1}\n---\ngangs: {planTries: -2}\n").find("has 2 documents; expected one"),
            std::string::npos);
  EXPECT_NE(message("store.path: /a\nstore: {path: /b}\n").find("\"store.path\": there is no such setting"),
            std::string::npos);
  EXPECT_NE(message("store: {path: \"/x\\0.db\"}\n").find("store.path: has a zero byte"), std::string::npos);
}

TEST(Config, DocumentedDefaults_MatchDefaults) {
  const Config config = ExpectOk(ParseConfig(DocumentedDefaults()));
  const Config defaults;
  EXPECT_EQ(config.machine.hold_limit_ms, defaults.machine.hold_limit_ms);
  EXPECT_EQ(config.machine.answer_limit_ms, defaults.machine.answer_limit_ms);
  EXPECT_EQ(config.machine.max_holds, defaults.machine.max_holds);
  EXPECT_EQ(config.machine.plan_idle_ms, defaults.machine.plan_idle_ms);
  EXPECT_EQ(config.machine.gang.wait_time_ms, defaults.machine.gang.wait_time_ms);
  EXPECT_EQ(config.admin.port, defaults.admin.port);
  EXPECT_EQ(config.mailbox_capacity, defaults.mailbox_capacity);
  EXPECT_EQ(config.calls_per_second, defaults.calls_per_second);
}

TEST(KubeConfig, ServerUrl_HostAndPortOnly) {
  KubeConfig config;
  ASSERT_TRUE(ParseServerUrl("https://[::1]:6443", &config).ok());
  EXPECT_EQ(config.host, "::1");
  EXPECT_EQ(config.port, 6443);
  EXPECT_FALSE(ParseServerUrl("tcp://x", &config).ok());
  EXPECT_FALSE(ParseServerUrl("https://x:99999", &config).ok());
  EXPECT_FALSE(ParseServerUrl("https://x/path", &config).ok());
}

}  // namespace
}  // namespace muster
