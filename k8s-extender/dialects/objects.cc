// Converts v1.Pod and v1.Node into the core's descriptions.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/pod_affinity.h"
#include "state/base/quantity.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr char kSidecar[] = "Always";  // restartPolicy of an init container that runs beside the containers

// How to convert an amount.
enum class Reading {
  kAsked,    // a request: rounded up; above kMaxAmount it is a problem
  kOffered,  // a capacity: rounded down, at most kMaxAmount
  kTaken,    // usage of a pod with a node: rounded up, at most kMaxAmount
};

absl::StatusOr<int64_t> ParseAmount(const std::string& name, const Json& value, absl::string_view path,
                                    Reading reading) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(path, ".", name, ": ", why));
  };
  std::string text;
  if (const auto* string = value.get_ptr<const std::string*>(); string != nullptr) {
    text = *string;
  } else if (value.is_number()) {
    text = value.dump();
  } else {
    return wrong(absl::StrCat("is a ", TypeName(value), "; expected a quantity"));
  }
  const QuantityUnit unit = name == "cpu" ? QuantityUnit::kMilli : QuantityUnit::kWhole;
  const absl::StatusOr<int64_t> amount =
      reading == Reading::kAsked
          ? ParseQuantity(text, unit)
          : ParseQuantityCapped(text, unit, reading == Reading::kOffered ? Rounding::kDown : Rounding::kUp);
  if (!amount.ok()) return wrong(amount.status().message());
  if (reading != Reading::kAsked) return std::min(*amount, kMaxAmount);
  if (*amount > kMaxAmount) return wrong(absl::StrCat(text, " is more than Muster can count (2^53)"));
  return *amount;
}

absl::StatusOr<ResourceList> ParseAmounts(const Json& map, absl::string_view path, Reading reading) {
  ResourceList out;
  if (map.is_null()) return out;
  if (!map.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a ", TypeName(map), "; expected a map of quantities"));
  for (const auto& [name, value] : map.items()) {
    const absl::StatusOr<int64_t> amount = ParseAmount(name, value, path, reading);
    if (!amount.ok()) return amount.status();
    out[name] = *amount;
  }
  return out;
}

void TakeLarger(const ResourceList& from, ResourceList* to) {
  for (const auto& [name, amount] : from) {
    int64_t& largest = (*to)[name];
    largest = std::max(largest, amount);
  }
}

// KEP-1287: the node has not accepted the new requests and will not.
bool ResizeInfeasible(const Json& status) {
  if (StringOrEmpty(status, "resize") == "Infeasible") return true;
  const Json& conditions = Child(status, "conditions");
  return conditions.is_array() && std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
           return StringOrEmpty(condition, "type") == "PodResizePending" &&
                  StringOrEmpty(condition, "reason") == "Infeasible";
         });
}

// Computes the requests of a pod.
class RequestReader {
 public:
  // `status`: null for a pod without a node.
  RequestReader(const Json& spec, const Json& status, Reading reading)
      : spec_(spec), status_(status), reading_(reading), infeasible_(ResizeInfeasible(status)) {}

  absl::StatusOr<ResourceList> Read() {
    ResourceList sum;
    for (const Json& container : fields_.MapsAt(spec_, "containers", "spec")) {
      const std::string name = StringOrEmpty(container, "name");
      const std::string path = absl::StrCat("container ", name);
      ResourceList requests = RequestsOf(fields_.MapAt(container, "resources", path), path);
      Add(OnNode("containerStatuses", name, path, std::move(requests)), path, &sum);
    }
    TakeLarger(ReadInitContainers(&sum), &sum);
    const ResourceList of_pod = RequestsOf(fields_.MapAt(spec_, "resources", "spec"), "spec.resources");
    for (const auto& [name, amount] : of_pod) sum[name] = amount;
    Add(AmountsAt(spec_, "overhead", "spec"), "spec.overhead", &sum);
    if (!fields_.problem().empty()) return absl::InvalidArgumentError(fields_.problem());
    return sum;
  }

 private:
  // The largest init step. Sidecars run beside the containers and are also added to `sum`.
  ResourceList ReadInitContainers(ResourceList* sum) {
    ResourceList sidecars;
    ResourceList largest;
    for (const Json& container : fields_.MapsAt(spec_, "initContainers", "spec")) {
      const std::string name = StringOrEmpty(container, "name");
      const std::string path = absl::StrCat("init container ", name);
      ResourceList requests = RequestsOf(fields_.MapAt(container, "resources", path), path);
      const bool sidecar = fields_.TextAt(container, "restartPolicy", path) == kSidecar;
      if (sidecar) requests = OnNode("initContainerStatuses", name, path, std::move(requests));
      ResourceList step = sidecars;
      Add(requests, path, &step);
      if (sidecar) {
        Add(requests, path, sum);
        sidecars = step;
      }
      TakeLarger(step, &largest);
    }
    return largest;
  }

  // The requests; the limit where a resource has no request (as the API server defaults it).
  ResourceList RequestsOf(const Json& resources, const std::string& path) {
    ResourceList out = AmountsAt(resources, "requests", path);
    const std::string of_limits = path + ".limits";
    for (const auto& [name, value] : fields_.MapAt(resources, "limits", path).items()) {
      if (Child(resources, "requests").contains(name)) continue;
      const absl::StatusOr<int64_t> amount = ParseAmount(name, value, of_limits, reading_);
      if (amount.ok()) {
        out[name] = *amount;
      } else {
        fields_.AddProblem(amount.status().message());
      }
    }
    return out;
  }

  ResourceList AmountsAt(const Json& holder, const char* key, const std::string& path) {
    const Json& map = Child(holder, key);
    if (map.is_null()) return {};
    absl::StatusOr<ResourceList> amounts = ParseAmounts(map, absl::StrCat(path, ".", key), reading_);
    if (amounts.ok()) return *std::move(amounts);
    fields_.AddProblem(amounts.status().message());
    return {};
  }

  // KEP-1287, as kube-scheduler counts: the larger of the container's request and what its node reserves for it during
  // a resize. If the resize is infeasible, only the latter.
  ResourceList OnNode(const char* statuses, const std::string& name, const std::string& path, ResourceList requested) {
    const Json& list = Child(status_, statuses);
    if (!list.is_array()) return requested;
    ResourceList allocated;
    for (const Json& each : list) {
      if (StringOrEmpty(each, "name") != name) continue;
      TakeLarger(AmountsAt(Child(each, "resources"), "requests", path), &allocated);
      TakeLarger(AmountsAt(each, "allocatedResources", path), &allocated);
    }
    if (!infeasible_) {
      TakeLarger(allocated, &requested);
      return requested;
    }
    for (const auto& [resource, amount] : allocated) requested[resource] = amount;
    return requested;
  }

  void Add(const ResourceList& from, absl::string_view what, ResourceList* to) {
    for (const auto& [name, amount] : from) {
      int64_t& sum = (*to)[name];
      sum += amount;  // neither exceeds kMaxAmount
      if (sum > kMaxAmount && reading_ == Reading::kAsked) {
        fields_.AddProblem(absl::StrCat(what, ": the sum of requests for ", name, " is too large"));
      }
      sum = std::min(sum, kMaxAmount);
    }
  }

  const Json& spec_;
  const Json& status_;
  const Reading reading_;
  const bool infeasible_;
  Fields fields_;
};

void ParseAffinity(const Json& spec, Fields* fields, PodDescription* out) {
  constexpr absl::string_view kPath = "spec.affinity.nodeAffinity";
  const Json& of_nodes = fields->MapAt(fields->MapAt(spec, "affinity", "spec"), "nodeAffinity", "spec.affinity");
  const Json& required = fields->MapAt(of_nodes, "requiredDuringSchedulingIgnoredDuringExecution", kPath);
  if (!required.is_object()) return;
  out->shape.Mutable().has_affinity = true;
  for (const Json& term : fields->MapsAt(required, "nodeSelectorTerms", kPath)) {
    out->shape.Mutable().affinity.push_back(ParseNodeTerm(term, kPath, fields));
  }
}

void ParseTolerations(const Json& spec, Fields* fields, PodDescription* out) {
  constexpr absl::string_view kPath = "spec.tolerations";
  for (const Json& entry : fields->MapsAt(spec, "tolerations", "spec")) {
    Toleration toleration;
    toleration.key = fields->TextAt(entry, "key", kPath);
    toleration.exists = fields->TextAt(entry, "operator", kPath) == "Exists";
    toleration.value = fields->TextAt(entry, "value", kPath);
    const std::string effect = fields->TextAt(entry, "effect", kPath);
    toleration.effect = ParseTaintEffect(effect);
    if (!effect.empty() && !toleration.effect.has_value()) {
      fields->AddProblem(absl::StrCat(kPath, ".effect: ", Quoted(effect),
                                      "; expected NoSchedule, PreferNoSchedule, NoExecute, or none for all of them"));
    }
    out->shape.Mutable().tolerations.push_back(std::move(toleration));
  }
}

// `list` is "containers" or "initContainers"; of the latter only sidecars.
void ParseHostPorts(const Json& spec, const char* list, Fields* fields, PodDescription* out) {
  const std::string path = absl::StrCat("spec.", list);
  const std::string of_port = path + ".ports";
  const bool all = absl::string_view(list) == "containers";
  for (const Json& container : fields->MapsAt(spec, list, "spec")) {
    if (!all && StringOrEmpty(container, "restartPolicy") != kSidecar) continue;
    for (const Json& entry : fields->MapsAt(container, "ports", path)) {
      const int64_t number = fields->NumberAt(entry, "hostPort", of_port).value_or(0);
      if (number < 0 || number > 65535) {
        fields->AddProblem(absl::StrCat(of_port, ".hostPort: ", number, "; expected a port from 1 to 65535"));
      }
      if (number <= 0 || number > 65535) continue;
      HostPort port;
      port.port = static_cast<int32_t>(number);
      const std::string protocol = fields->TextAt(entry, "protocol", of_port);
      port.protocol = protocol == "UDP" ? Protocol::kUdp : protocol == "SCTP" ? Protocol::kSctp : Protocol::kTcp;
      port.ip = fields->TextAt(entry, "hostIP", of_port);
      if (port.ip.empty()) port.ip = "0.0.0.0";
      out->shape.Mutable().host_ports.push_back(std::move(port));
    }
  }
}

// Reads the pod's placement constraints and preferences.
void ParseTemplate(const Json& spec, const Labels& labels, Fields* fields, PodDescription* out) {
  out->shape.Mutable().node_selector = fields->LabelsAt(spec, "nodeSelector", "spec");
  ParseAffinity(spec, fields, out);
  out->shape.Mutable().pod_affinity = ParsePodAffinity(spec, out->name_space, labels, fields);
  out->shape.Mutable().preferences = ParsePreferences(spec, out->name_space, labels);
  ParseTolerations(spec, fields, out);
  ParseHostPorts(spec, "containers", fields, out);
  ParseHostPorts(spec, "initContainers", fields, out);
}

void ParseRequests(const Json& pod, PodDescription* out) {
  const bool on_node = !out->node_name.empty();
  absl::StatusOr<ResourceList> requests = on_node ? RequestsOnNode(pod) : EffectiveRequests(Child(pod, "spec"));
  if (!requests.ok()) {
    out->invalid = std::string(requests.status().message());
    return;
  }
  // The opt-in markers are not resources of a node. A pod with only one of them would bypass the barrier.
  const bool decides = requests->erase(keys::kOptInDecide) > 0;
  const bool binds = requests->erase(keys::kOptInBind) > 0;
  out->shape.Mutable().requests = *std::move(requests);
  if (decides != binds && !on_node) {
    out->invalid =
        absl::StrCat("resources: asks for ", decides ? keys::kOptInDecide : keys::kOptInBind, " and not for ",
                     decides ? keys::kOptInBind : keys::kOptInDecide, "; expected both or neither");
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
    // Another reason is a gate, or an attempt that failed, as when the extender does not answer in time
    // (SchedulerError): kube-scheduler repeats it by itself.
    if (StringOrEmpty(condition, "reason") != "Unschedulable") continue;
    out->unschedulable = StringOrEmpty(condition, "message");
    if (out->unschedulable.empty()) out->unschedulable = "no reason given";
  }
}

// A DaemonSet's pod, or the mirror of a static pod.
bool IsBoundToNode(const Json& metadata, const Labels& annotations) {
  if (annotations.find("kubernetes.io/config.mirror") != annotations.end()) return true;
  const Json& owners = Child(metadata, "ownerReferences");
  return owners.is_array() && std::any_of(owners.begin(), owners.end(), [](const Json& owner) {
           return StringOrEmpty(owner, "kind") == "DaemonSet" && BoolOrFalse(owner, "controller");
         });
}

}  // namespace

absl::StatusOr<ResourceList> ParseResourceMap(const Json& map, absl::string_view path) {
  return ParseAmounts(map, path, Reading::kAsked);
}

absl::StatusOr<ResourceList> EffectiveRequests(const Json& spec) {
  return RequestReader(spec, Json(), Reading::kAsked).Read();
}

absl::StatusOr<ResourceList> RequestsOnNode(const Json& pod) {
  return RequestReader(Child(pod, "spec"), Child(pod, "status"), Reading::kTaken).Read();
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
  Fields fields;
  const Labels annotations = fields.LabelsAt(metadata, "annotations", "Pod.metadata");
  const Labels labels = fields.LabelsAt(metadata, "labels", "Pod.metadata");
  out.labels = PackLabels(labels);
  const auto mark = annotations.find(keys::kKoordTimeout);
  out.timed_out_mark = mark != annotations.end() && mark->second == "true";
  if (const auto called = annotations.find(keys::kActivated); called != annotations.end())
    out.activation_mark = called->second;
  out.permanent = IsBoundToNode(metadata, annotations);

  const Json& spec = fields.MapAt(pod, "spec", "Pod");
  const Json& group = fields.MapAt(spec, "schedulingGroup", "spec");
  out.gang = ParseMembership(annotations, labels, fields.TextAt(group, "podGroupName", "spec.schedulingGroup"));
  const int64_t priority = fields.NumberAt(spec, "priority", "spec").value_or(0);
  out.priority = static_cast<int32_t>(std::clamp<int64_t>(priority, INT32_MIN, INT32_MAX));
  out.scheduler_name = fields.TextAt(spec, "schedulerName", "spec");
  if (out.scheduler_name.empty()) out.scheduler_name = "default-scheduler";
  out.node_name = fields.TextAt(spec, "nodeName", "spec");
  for (const Json& gate : fields.MapsAt(spec, "schedulingGates", "spec")) {
    (fields.TextAt(gate, "name", "spec.schedulingGates") == keys::kGate ? out.our_gate : out.other_gates) = true;
  }
  ParseTemplate(spec, labels, &fields, &out);
  ParseRequests(pod, &out);
  // Once a pod has a node, unreadable constraints do not prevent its charge.
  if (out.invalid.empty() && out.node_name.empty()) out.invalid = fields.problem();
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
  Fields fields;
  out.labels = fields.LabelsAt(metadata, "labels", "Node.metadata");
  const Json& spec = fields.MapAt(node, "spec", "Node");
  out.unschedulable = fields.FlagAt(spec, "unschedulable", "Node.spec");
  for (const Json& entry : fields.MapsAt(spec, "taints", "Node.spec")) {
    constexpr absl::string_view kPath = "Node.spec.taints";
    const std::string key = fields.TextAt(entry, "key", kPath);
    const std::string value = fields.TextAt(entry, "value", kPath);
    const std::optional<TaintEffect> effect = ParseTaintEffect(fields.TextAt(entry, "effect", kPath));
    if (effect.has_value()) out.taints.push_back({key, value, *effect});
  }
  const Json& status = fields.MapAt(node, "status", "Node");
  if (!fields.problem().empty()) return absl::InvalidArgumentError(fields.problem());
  absl::StatusOr<ResourceList> allocatable =
      ParseAmounts(Child(status, "allocatable"), "Node.status.allocatable", Reading::kOffered);
  if (!allocatable.ok()) return allocatable.status();
  out.allocatable = *std::move(allocatable);
  return out;
}

}  // namespace muster
