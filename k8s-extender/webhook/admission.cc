#include "k8s-extender/webhook/admission.h"

#include <httplib.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/owners.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {
namespace {

constexpr char kReview[] = "application/json; charset=utf-8";
constexpr char kDefaultScheduler[] = "default-scheduler";
constexpr int kUnprocessable = 422;
// Every client of the network may send reviews. A document is a tree of values, some thirty times as large as its text.
constexpr size_t kMaxValues = 50'000;
constexpr int kConcurrentReviews = 4;

class Turn {
 public:
  explicit Turn(std::counting_semaphore<>* turns) : turns_(turns) { turns_->acquire(); }
  ~Turn() { turns_->release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::counting_semaphore<>* const turns_;
};

// The decision about a pod.
struct Verdict {
  std::string denied;  // the reason; empty: admitted
  Json patch = Json::array();
  std::vector<std::string> warnings;
};

// A pod that is being created has no UID yet, and perhaps no name.
Json Named(Json pod, const std::string& name_space) {
  Json& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  metadata["uid"] = "created";
  if (StringOrEmpty(metadata, "name").empty()) metadata["name"] = StringOrEmpty(metadata, "generateName") + "x";
  if (StringOrEmpty(metadata, "namespace").empty()) metadata["namespace"] = name_space;
  return pod;
}

void AddLabel(const Json& metadata, const std::string& value, Json* patch) {
  const Json& labels = Child(metadata, "labels");
  if (!labels.is_object()) {
    patch->push_back({{"op", "add"}, {"path", "/metadata/labels"}, {"value", {{keys::kGangLabel, value}}}});
  } else if (StringOrEmpty(labels, keys::kGangLabel) != value) {
    const std::string path = absl::StrCat("/metadata/labels/", absl::StrReplaceAll(keys::kGangLabel, {{"/", "~1"}}));
    patch->push_back({{"op", "add"}, {"path", path}, {"value", value}});
  }
}

Verdict Judge(const Json& object, const std::string& name_space, const AdmissionOptions& options) {
  Verdict verdict;
  const Json named = Named(object, name_space);
  absl::StatusOr<PodDescription> pod = ParsePod(named);
  if (!pod.ok()) return verdict;  // the API server reports the problem itself
  GroupByOwner(named, options.owner_kinds, &*pod);
  verdict.warnings = pod->gang.ignored;
  if (!pod->gang.in_gang() || pod->permanent || !pod->node_name.empty()) return verdict;
  const bool is_default = pod->scheduler_name == kDefaultScheduler;
  const bool is_served = absl::c_linear_search(options.scheduler_names, pod->scheduler_name);
  if (!is_served && !is_default) return verdict;  // of another scheduler
  const GangDeclaration& declaration = pod->gang.declaration;
  const std::initializer_list<const std::string*> problems = {&pod->gang.problem.text, &declaration.unreadable_minimum,
                                                              &pod->invalid};
  for (const std::string* problem : problems) {
    if (!problem->empty() && verdict.denied.empty()) verdict.denied = *problem;
  }
  if (!verdict.denied.empty()) return verdict;
  verdict.warnings.insert(verdict.warnings.end(), declaration.warnings.begin(), declaration.warnings.end());
  if (!is_served) {
    verdict.patch.push_back(
        {{"op", "add"}, {"path", "/spec/schedulerName"}, {"value", options.scheduler_names.front()}});
  }
  if (options.label_gangs) AddLabel(Child(object, "metadata"), GangLabel(pod->gang.name), &verdict.patch);
  if (pod->our_gate || declaration.min_member == 0) return verdict;
  const Json gate = {{"name", keys::kGate}};
  if (Child(Child(object, "spec"), "schedulingGates").is_array()) {
    verdict.patch.push_back({{"op", "add"}, {"path", "/spec/schedulingGates/-"}, {"value", gate}});
  } else {
    verdict.patch.push_back({{"op", "add"}, {"path", "/spec/schedulingGates"}, {"value", Json::array({gate})}});
  }
  return verdict;
}

}  // namespace

Admission::Admission(AdmissionOptions options, DecisionObserver observer)
    : options_(std::move(options)), observer_(std::move(observer)), reviews_(kConcurrentReviews) {}

void Admission::Register(httplib::Server* server) {
  server->Post("/admit", [this](const httplib::Request& request, httplib::Response& response) {
    int status = 200;
    response.body = Review(request.body, &status);
    response.status = status;
    response.set_header("Content-Type", kReview);
  });
}

std::string Admission::Review(const std::string& body, int* http_status) const {
  const absl::Time start = SteadyNow();
  const Turn turn(&reviews_);
  const absl::StatusOr<Json> review = ParseJson(body, "AdmissionReview", kMaxValues);
  const Json& request = review.ok() ? Child(*review, "request") : Child(Json::object(), "request");
  const std::string uid = request.is_object() ? StringOrEmpty(request, "uid") : "";
  if (uid.empty()) {
    *http_status = 400;
    observer_("admit", "bad-request", SteadyNow() - start);
    return Dump({{"error", review.ok() ? "request.uid: is missing; expected an AdmissionReview of admission.k8s.io/v1"
                                       : std::string(review.status().message())}});
  }
  Json response = {{"uid", uid}, {"allowed", true}};
  const std::string name_space = StringOrEmpty(request, "namespace");
  const bool concerns = StringOrEmpty(Child(request, "kind"), "kind") == "Pod" &&
                        StringOrEmpty(request, "operation") == "CREATE" &&
                        !absl::c_linear_search(options_.exempt_namespaces, name_space);
  const char* outcome = "passed";
  if (const Json& object = Child(request, "object"); concerns && object.is_object()) {
    const Verdict verdict = Judge(object, name_space, options_);
    if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
    if (!verdict.denied.empty()) {
      outcome = "denied";
      response["allowed"] = false;
      response["status"] = {
          {"code", kUnprocessable}, {"reason", "Invalid"}, {"message", absl::StrCat("muster: ", verdict.denied)}};
    } else if (!verdict.patch.empty()) {
      outcome = "patched";
      response["patchType"] = "JSONPatch";
      response["patch"] = absl::Base64Escape(Dump(verdict.patch));
    }
  }
  observer_("admit", outcome, SteadyNow() - start);
  return Json({{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster
