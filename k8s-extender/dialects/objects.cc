// v1.Pod and v1.Node -> the core's descriptions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/neighbours.h"
#include "state/base/checked.h"
#include "state/base/quantity.h"
#include "state/base/text.h"

namespace muster {
namespace {

absl::Status AddAll(const ResourceList& from, absl::string_view what, ResourceList* to) {
  for (const auto& [name, amount] : from) {
    int64_t& sum = (*to)[name];
    const std::optional<int64_t> added = CheckedAdd(sum, amount);
    if (!added.has_value() || *added > kMaxAmount) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": the sum of requests for ", name, " is too large"));
    }
    sum = *added;
  }
  return absl::OkStatus();
}

void TakeLarger(const ResourceList& from, ResourceList* to) {
  for (const auto& [name, amount] : from) {
    int64_t& largest = (*to)[name];
    largest = std::max(largest, amount);
  }
}

// requests, and limits for what has no request (as the API server defaults them).
absl::StatusOr<ResourceList> ContainerRequests(const Json& container, absl::string_view path) {
  const Json& resources = Child(container, "resources");
  absl::StatusOr<ResourceList> requests =
      ParseResourceMap(Child(resources, "requests"), absl::StrCat(path, ".requests"));
  if (!requests.ok()) return requests;
  absl::StatusOr<ResourceList> limits = ParseResourceMap(Child(resources, "limits"), absl::StrCat(path, ".limits"));
  if (!limits.ok()) return limits;
  for (const auto& [name, amount] : *limits) requests->try_emplace(name, amount);
  return requests;
}

void ParseAffinity(const Json& spec, PodDescription* out) {
  const Json& required =
      Child(Child(Child(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
  if (!required.is_object()) return;
  out->shape.Own().has_affinity = true;
  const Json& terms = Child(required, "nodeSelectorTerms");
  if (!terms.is_array()) return;
  bool readable = true;
  for (const Json& term : terms) {
    NodeSelectorTerm& read = out->shape.Own().affinity.emplace_back();
    readable = ParseRequirements(Child(term, "matchExpressions"), &read.expressions) && readable;
    readable = ParseRequirements(Child(term, "matchFields"), &read.fields) && readable;
  }
  if (!readable)
    out->invalid = "spec.affinity.nodeAffinity: an operator is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt";
}

void ParseTolerations(const Json& spec, PodDescription* out) {
  const Json& list = Child(spec, "tolerations");
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    Toleration toleration;
    toleration.key = StringOrEmpty(entry, "key");
    toleration.exists = StringOrEmpty(entry, "operator") == "Exists";
    toleration.value = StringOrEmpty(entry, "value");
    toleration.effect = ParseTaintEffect(StringOrEmpty(entry, "effect"));
    out->shape.Own().tolerations.push_back(std::move(toleration));
  }
}

void ParseHostPorts(const Json& containers, PodDescription* out) {
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    const Json& ports = Child(container, "ports");
    if (!ports.is_array()) continue;
    for (const Json& entry : ports) {
      const int64_t number = IntAt(entry, "hostPort").value_or(0);
      if (number <= 0 || number > 65535) continue;
      HostPort port;
      port.port = static_cast<int32_t>(number);
      const std::string protocol = StringOrEmpty(entry, "protocol");
      port.protocol = protocol == "UDP" ? Protocol::kUdp : protocol == "SCTP" ? Protocol::kSctp : Protocol::kTcp;
      port.ip = StringOrEmpty(entry, "hostIP");
      if (port.ip.empty()) port.ip = "0.0.0.0";
      out->shape.Own().host_ports.push_back(std::move(port));
    }
  }
}

void ParseStatus(const Json& status, PodDescription* out) {
  const std::string phase = StringOrEmpty(status, "phase");
  if (phase == "Running") out->phase = PodPhase::kRunning;
  if (phase == "Succeeded") out->phase = PodPhase::kSucceeded;
  if (phase == "Failed") out->phase = PodPhase::kFailed;
  out->nominated_node = StringOrEmpty(status, "nominatedNodeName");
  const Json& conditions = Child(status, "conditions");
  if (!conditions.is_array()) return;
  for (const Json& condition : conditions) {
    if (StringOrEmpty(condition, "type") != "PodScheduled" || StringOrEmpty(condition, "status") != "False") continue;
    if (StringOrEmpty(condition, "reason") == "SchedulingGated") continue;
    out->unschedulable = StringOrEmpty(condition, "message");
    if (out->unschedulable.empty()) out->unschedulable = "no reason given";
  }
}

// A DaemonSet's pod, or a mirror of one that the node runs by itself.
bool StaysWithItsNode(const Json& metadata, const Labels& annotations) {
  if (annotations.find("kubernetes.io/config.mirror") != annotations.end()) return true;
  const Json& owners = Child(metadata, "ownerReferences");
  return owners.is_array() && std::any_of(owners.begin(), owners.end(), [](const Json& owner) {
           return StringOrEmpty(owner, "kind") == "DaemonSet" && BoolOrFalse(owner, "controller");
         });
}

}  // namespace

absl::StatusOr<ResourceList> ParseResourceMap(const Json& map, absl::string_view path) {
  ResourceList out;
  if (map.is_null()) return out;
  if (!map.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a ", TypeName(map), "; expected a map of quantities"));
  for (const auto& [name, value] : map.items()) {
    std::string text;
    if (const auto* string = value.get_ptr<const std::string*>(); string != nullptr) {
      text = *string;
    } else if (value.is_number()) {
      text = value.dump();
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".", name, ": is a ", TypeName(value), "; expected a quantity"));
    }
    const absl::StatusOr<int64_t> amount =
        ParseQuantity(text, name == "cpu" ? QuantityUnit::kMilli : QuantityUnit::kWhole);
    if (!amount.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ".", name, ": ", amount.status().message()));
    if (*amount > kMaxAmount) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".", name, ": ", text, " is more than Muster can count (2^53)"));
    }
    out[name] = *amount;
  }
  return out;
}

absl::StatusOr<ResourceList> EffectiveRequests(const Json& spec) {
  ResourceList sum;
  const Json& containers = Child(spec, "containers");
  if (containers.is_array()) {
    for (const Json& container : containers) {
      const std::string path = absl::StrCat("container ", StringOrEmpty(container, "name"));
      const absl::StatusOr<ResourceList> requests = ContainerRequests(container, path);
      if (!requests.ok()) return requests.status();
      if (absl::Status added = AddAll(*requests, path, &sum); !added.ok()) return added;
    }
  }
  ResourceList sidecars;
  ResourceList largest_init;
  const Json& init_containers = Child(spec, "initContainers");
  if (init_containers.is_array()) {
    for (const Json& container : init_containers) {
      const std::string path = absl::StrCat("init container ", StringOrEmpty(container, "name"));
      const absl::StatusOr<ResourceList> requests = ContainerRequests(container, path);
      if (!requests.ok()) return requests.status();
      ResourceList step = sidecars;
      if (absl::Status added = AddAll(*requests, path, &step); !added.ok()) return added;
      if (StringOrEmpty(container, "restartPolicy") == "Always") {
        if (absl::Status added = AddAll(*requests, path, &sum); !added.ok()) return added;
        sidecars = step;
      }
      TakeLarger(step, &largest_init);
    }
  }
  TakeLarger(largest_init, &sum);
  const absl::StatusOr<ResourceList> of_pod = ContainerRequests(spec, "spec.resources");
  if (!of_pod.ok()) return of_pod.status();
  for (const auto& [name, amount] : *of_pod) sum[name] = amount;
  const absl::StatusOr<ResourceList> overhead = ParseResourceMap(Child(spec, "overhead"), "spec.overhead");
  if (!overhead.ok()) return overhead.status();
  if (absl::Status added = AddAll(*overhead, "spec.overhead", &sum); !added.ok()) return added;
  return sum;
}

GangMembership MembershipOf(const Json& pod) {
  const Json& metadata = Child(pod, "metadata");
  return ParseMembership(StringMapAt(metadata, "annotations"), StringMapAt(metadata, "labels"),
                         StringOrEmpty(Child(Child(pod, "spec"), "schedulingGroup"), "podGroupName"));
}

absl::StatusOr<PodDescription> ParsePod(const Json& pod) {
  if (!pod.is_object()) return absl::InvalidArgumentError("Pod: expected an object");
  PodDescription out;
  const Json& metadata = Child(pod, "metadata");
  for (const auto& [key, field] : {std::pair{"name", &out.name}, {"namespace", &out.name_space}, {"uid", &out.uid}}) {
    absl::StatusOr<std::string> text = StringAt(metadata, key, "Pod.metadata");
    if (!text.ok()) return text.status();
    if (text->size() > 253)
      return absl::InvalidArgumentError(absl::StrCat("Pod.metadata.", key, ": longer than 253 bytes"));
    *field = *std::move(text);
  }
  if (out.uid.empty()) return absl::InvalidArgumentError("Pod.metadata.uid: is missing; expected the pod's UID");
  if (!IsSubdomain(out.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Pod.metadata.name: \"", out.name, "\" is not an RFC 1123 subdomain"));
  }
  if (out.name_space.empty()) out.name_space = "default";
  out.created_ms = TimeAt(metadata, "creationTimestamp");
  out.deleting = !Child(metadata, "deletionTimestamp").is_null();
  const Labels annotations = StringMapAt(metadata, "annotations");
  const Json& spec = Child(pod, "spec");
  out.gang = MembershipOf(pod);
  const auto mark = annotations.find(keys::kKoordTimeout);
  out.timed_out_mark = mark != annotations.end() && mark->second == "true";
  if (const auto called = annotations.find(keys::kCalled); called != annotations.end()) out.called = called->second;
  out.permanent = StaysWithItsNode(metadata, annotations);

  const int64_t priority = IntAt(spec, "priority").value_or(0);
  out.priority = static_cast<int32_t>(std::clamp<int64_t>(priority, INT32_MIN, INT32_MAX));
  out.scheduler_name = StringOrEmpty(spec, "schedulerName");
  if (out.scheduler_name.empty()) out.scheduler_name = "default-scheduler";
  out.node_name = StringOrEmpty(spec, "nodeName");
  if (const Json& gates = Child(spec, "schedulingGates"); gates.is_array()) {
    for (const Json& gate : gates) (StringOrEmpty(gate, "name") == keys::kGate ? out.our_gate : out.other_gates) = true;
  }
  absl::StatusOr<ResourceList> requests = EffectiveRequests(spec);
  if (requests.ok()) {
    out.shape.Own().requests = *std::move(requests);
    // The opt-in markers are nothing a node offers. With only one of them the pod would pass by the barrier.
    const bool decides = out.shape.Own().requests.erase(keys::kOptInDecide) > 0;
    const bool binds = out.shape.Own().requests.erase(keys::kOptInBind) > 0;
    if (decides != binds) {
      out.invalid =
          absl::StrCat("resources: asks for ", decides ? keys::kOptInDecide : keys::kOptInBind, " and not for ",
                       decides ? keys::kOptInBind : keys::kOptInDecide, "; expected both or neither");
    }
  } else {
    out.invalid = std::string(requests.status().message());
  }
  out.shape.Own().node_selector = StringMapAt(spec, "nodeSelector");
  ParseAffinity(spec, &out);
  const Labels labels = StringMapAt(metadata, "labels");
  out.labels = PackLabels(labels);
  out.shape.Own().neighbours = ParseNeighbours(spec, out.name_space, labels, &out.invalid);
  out.shape.Own().preferences = ParsePreferences(spec, out.name_space, labels);
  ParseTolerations(spec, &out);
  ParseHostPorts(Child(spec, "containers"), &out);
  ParseStatus(Child(pod, "status"), &out);
  return out;
}

absl::StatusOr<NodeDescription> ParseNode(const Json& node) {
  if (!node.is_object()) return absl::InvalidArgumentError("Node: expected an object");
  NodeDescription out;
  const Json& metadata = Child(node, "metadata");
  absl::StatusOr<std::string> name = StringAt(metadata, "name", "Node.metadata");
  if (!name.ok()) return name.status();
  if (!IsSubdomain(*name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Node.metadata.name: \"", Beginning(*name, 64), "\" is not an RFC 1123 subdomain"));
  }
  out.name = *std::move(name);
  out.labels = StringMapAt(metadata, "labels");
  const Json& spec = Child(node, "spec");
  out.unschedulable = BoolOrFalse(spec, "unschedulable");
  if (const Json& taints = Child(spec, "taints"); taints.is_array()) {
    for (const Json& entry : taints) {
      const std::optional<TaintEffect> effect = ParseTaintEffect(StringOrEmpty(entry, "effect"));
      if (effect.has_value())
        out.taints.push_back({StringOrEmpty(entry, "key"), StringOrEmpty(entry, "value"), *effect});
    }
  }
  absl::StatusOr<ResourceList> allocatable =
      ParseResourceMap(Child(Child(node, "status"), "allocatable"), "Node.status.allocatable");
  if (!allocatable.ok()) return allocatable.status();
  out.allocatable = *std::move(allocatable);
  return out;
}

}  // namespace muster
