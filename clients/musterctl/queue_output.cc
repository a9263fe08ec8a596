// Output of queues in musterctl.
#include <iostream>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/musterctl/output.h"

namespace muster {
namespace {

using Amounts = google::protobuf::Map<std::string, std::string>;

std::string In(const Amounts& amounts, const std::string& resource, const char* otherwise) {
  const auto found = amounts.find(resource);
  return found == amounts.end() ? otherwise : found->second;
}

std::set<std::string> ResourcesOf(const v1::Queue& queue) {
  std::set<std::string> names;
  for (const Amounts* amounts :
       {&queue.quota(), &queue.limit(), &queue.fair_share(), &queue.used(), &queue.waiting()}) {
    for (const auto& [resource, amount] : *amounts) names.insert(resource);
  }
  // Each pod counts as one, which is no information unless a rule limits the number of pods.
  if (!queue.fair_share().contains("pods")) names.erase("pods");
  return names;
}

// Resource, quota, limit, share, used, waiting; "-" where a resource has no value.
std::vector<std::string> Figures(const v1::Queue& queue, const std::string& resource) {
  return {resource,
          In(queue.quota(), resource, "-"),
          In(queue.limit(), resource, "-"),
          In(queue.fair_share(), resource, "-"),
          In(queue.used(), resource, "0"),
          In(queue.waiting(), resource, "0")};
}

// Children below their parents, in the order of the answer.
void AddRows(const v1::ListQueuesResponse& list, const std::string& parent, size_t depth, Rows* rows) {
  for (const v1::Queue& queue : list.queues()) {
    if (queue.parent() != parent) continue;
    std::vector<std::string> head = {std::string(2 * depth, ' ') + queue.name(), absl::StrCat(queue.running_gangs()),
                                     absl::StrCat(queue.waiting_gangs())};
    for (const std::string& resource : ResourcesOf(queue)) {
      for (std::string& cell : Figures(queue, resource)) head.push_back(std::move(cell));
      rows->push_back(std::move(head));
      head = {"", "", ""};
    }
    if (head.front() != "") rows->push_back(std::move(head));
    AddRows(list, queue.name(), depth + 1, rows);
  }
}

// "labels team=vision, !guest", in the notation of kubectl.
std::string SelectorText(const v1::NamespaceSelector& selector) {
  if (selector.requirements().empty()) return "every namespace";
  std::vector<std::string> texts;
  for (const v1::SelectorRequirement& each : selector.requirements()) {
    const std::string values = absl::StrJoin(each.values(), ", ");
    switch (each.operator_()) {
      case v1::SelectorRequirement::OPERATOR_EXISTS:
        texts.push_back(each.key());
        break;
      case v1::SelectorRequirement::OPERATOR_DOES_NOT_EXIST:
        texts.push_back("!" + each.key());
        break;
      case v1::SelectorRequirement::OPERATOR_NOT_IN:
        texts.push_back(absl::StrCat(each.key(), " notin (", values, ")"));
        break;
      default:
        texts.push_back(absl::StrCat(each.key(), " in (", values, ")"));
    }
  }
  return absl::StrCat("namespaces with labels ", absl::StrJoin(texts, ", "));
}

// The queue's own access list.
std::string AccessText(const v1::Queue& queue) {
  std::vector<std::string> parts;
  if (!queue.namespaces().empty()) parts.push_back("namespaces " + absl::StrJoin(queue.namespaces(), ", "));
  if (queue.has_namespace_selector()) parts.push_back(SelectorText(queue.namespace_selector()));
  if (!queue.identities().empty()) parts.push_back("callers " + absl::StrJoin(queue.identities(), ", "));
  if (!parts.empty()) return absl::StrJoin(parts, "; ");
  return queue.parent().empty() ? "-" : "the list of a queue above it";
}

Rows Heading() {
  return {{"NAME", "RUNNING", "WAITING", "RESOURCE", "QUOTA", "LIMIT", "FAIR SHARE", "USED", "ASKED FOR"}};
}

}  // namespace

void PrintQueues(const v1::ListQueuesResponse& list) {
  if (list.queues().empty()) {
    std::cout
        << "no queues are declared (docs/reference/queues.md: in musterd's configuration, over gRPC, or as objects)\n";
    return;
  }
  Rows rows = Heading();
  AddRows(list, "", 0, &rows);
  PrintTable(rows);
}

void PrintQueue(const v1::Queue& queue) {
  v1::ListQueuesResponse one;
  *one.add_queues() = queue;
  Rows rows = Heading();
  AddRows(one, queue.parent(), 0, &rows);
  PrintTable(rows);
}

void DescribeQueue(const v1::Queue& queue) {
  std::vector<std::string> weights;
  for (const auto& [resource, weight] : queue.over_quota_weight()) {
    weights.push_back(absl::StrCat(resource, ": ", weight));
  }
  PrintTable({
      {"Queue:", queue.name()},
      {"Below:", queue.parent().empty() ? "-" : queue.parent()},
      {"Gangs:",
       absl::StrCat(queue.running_gangs(), " running",
                    queue.max_applications() > 0 ? absl::StrCat(" of at most ", queue.max_applications()) : "", ", ",
                    queue.waiting_gangs(), " waiting", queue.leaf() ? "" : ", in the queues below it")},
      {"Access:", AccessText(queue)},
      {"Rules:", absl::StrCat("priority ", queue.priority(), ", ", PolicyText(queue.sort()), ", over-quota weight ",
                              weights.empty() ? "1" : absl::StrJoin(weights, ", "))},
  });
  Rows rows = {{"RESOURCE", "QUOTA", "LIMIT", "FAIR SHARE", "USED", "ASKED FOR"}};
  for (const std::string& resource : ResourcesOf(queue)) rows.push_back(Figures(queue, resource));
  std::cout << "\n";
  PrintTable(rows);
}

void PrintGangsOf(const v1::Queue& queue, const v1::ListGangsResponse& all) {
  v1::ListGangsResponse in_queue;
  for (const v1::Gang& gang : all.gangs()) {
    if (gang.rules().queue() == queue.name()) *in_queue.add_gangs() = gang;
  }
  std::cout << "\n";
  PrintGangs(in_queue);
}

}  // namespace muster
