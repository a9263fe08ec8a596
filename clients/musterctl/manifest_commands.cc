#include "clients/musterctl/manifest_commands.h"

#include <chrono>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/musterctl/manifests.h"

namespace muster {
namespace {

struct Manifest {
  std::string file;
  std::string json;
};

// Reads all objects of the files, with the requested namespace where one was given.
absl::StatusOr<std::vector<Manifest>> ReadAll(const Options& options) {
  std::vector<Manifest> out;
  for (const std::string& file : options.files) {
    absl::StatusOr<std::vector<std::string>> read = ReadManifests(file);
    if (!read.ok()) return read.status();
    for (std::string& manifest : *read) {
      if (options.name_space.empty()) continue;
      // A namespace from a context is a default; one from a flag is mandatory.
      const bool strict = !options.settings.at("namespace").empty();
      const absl::Status set = SetNamespace(options.name_space, strict, &manifest);
      if (!set.ok()) return absl::InvalidArgumentError(absl::StrCat(file, ": ", set.message()));
    }
    for (std::string& manifest : *read) out.push_back({file, std::move(manifest)});
  }
  return out;
}

// Replaces "manifests[1]" in musterd's message by the name of the object and its file.
absl::Status NameManifests(const absl::Status& status, const std::vector<Manifest>& manifests,
                           const std::vector<std::string>& fields = {"removed_manifests", "manifests"}) {
  std::string text(status.message());
  for (size_t i = manifests.size(); i-- > 0;) {  // [11] before [1]
    const std::string what = absl::StrCat(manifests[i].file, ": ", DescribeManifest(manifests[i].json));
    for (const std::string& field : fields) {
      text = absl::StrReplaceAll(text, {{absl::StrCat(field, "[", i, "]"), what}});
    }
  }
  return absl::Status(status.code(), text);
}

// Separates the pods of a job from the Nodes that would be added.
absl::Status ReadPlan(const Options& options, std::vector<Manifest>* job, std::vector<Manifest>* nodes) {
  const absl::StatusOr<std::vector<Manifest>> manifests = ReadAll(options);
  if (!manifests.ok()) return manifests.status();
  for (const Manifest& manifest : *manifests) {
    if (IsNode(manifest.json)) {
      nodes->push_back(manifest);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> pods = PodsOf(manifest.json);
    if (!pods.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(manifest.file, ": ", DescribeManifest(manifest.json), ": ", pods.status().message()));
    }
    for (std::string& pod : *pods) job->push_back({manifest.file, std::move(pod)});
  }
  return absl::OkStatus();
}

// "3=node-1": three more like node-1. "node-1": one.
absl::Status ReadLike(const std::string& text, v1::AddedNodes* out) {
  const size_t equals = text.find('=');
  int32_t count = 1;
  if (equals != std::string::npos && (!absl::SimpleAtoi(text.substr(0, equals), &count) || count < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("--add ", text, ": expected NODE or NUMBER=NODE, as 3=node-1"));
  }
  out->set_count(count);
  out->set_like(equals == std::string::npos ? text : text.substr(equals + 1));
  return absl::OkStatus();
}

// "team:nvidia.com/gpu=8": queue team may use 8 more.
absl::Status ReadMore(const std::string& text, v1::QueueCapacityChange* out) {
  const size_t colon = text.find(':');
  const size_t equals = text.find('=', colon == std::string::npos ? 0 : colon);
  if (colon == std::string::npos || equals == std::string::npos || colon == 0 || equals == colon + 1 ||
      equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--more ", text, ": expected QUEUE:RESOURCE=AMOUNT, as team:nvidia.com/gpu=8"));
  }
  out->set_queue(text.substr(0, colon));
  (*out->mutable_amounts())[text.substr(colon + 1, equals - colon - 1)] = text.substr(equals + 1);
  return absl::OkStatus();
}

// Separates queues from facts, and applies or deletes all queues at once.
absl::Status ApplyQueues(MusterClient* client, const std::vector<Manifest>& manifests, bool remove,
                         std::vector<Manifest>* facts) {
  std::vector<Manifest> queues;
  for (const Manifest& manifest : manifests) (IsQueue(manifest.json) ? queues : *facts).push_back(manifest);
  v1::ApplyQueuesRequest request;
  for (const Manifest& manifest : queues) {
    absl::StatusOr<v1::QueueSpec> queue = QueueOf(manifest.json);
    if (!queue.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(manifest.file, ": ", DescribeManifest(manifest.json), ": ", queue.status().message()));
    }
    *request.add_queues() = *std::move(queue);
  }
  if (queues.empty()) return absl::OkStatus();
  if (!remove) return NameManifests(client->ApplyQueues(request), queues, {"queues"});
  // Children before their parents.
  absl::Status failed;
  for (bool progress = true; progress && request.queues_size() > 0;) {
    progress = false;
    for (int i = request.queues_size() - 1; i >= 0; --i) {
      const absl::Status deleted = client->DeleteQueue(request.queues(i).name());
      if (!deleted.ok()) {
        failed = deleted;
        continue;
      }
      request.mutable_queues()->DeleteSubrange(i, 1);
      progress = true;
    }
  }
  return request.queues_size() == 0 ? absl::OkStatus() : failed;
}

}  // namespace

int Apply(MusterClient* client, const Options& options, bool remove) {
  const absl::StatusOr<std::vector<Manifest>> manifests = ReadAll(options);
  if (!manifests.ok()) return Fail(manifests.status());
  // Queues first: gangs are validated against them.
  std::vector<Manifest> facts;
  if (const absl::Status applied = ApplyQueues(client, *manifests, remove, &facts); !applied.ok()) return Fail(applied);
  absl::StatusOr<v1::FactsStatus> status = v1::FactsStatus();
  if (!facts.empty()) {
    v1::UpdateFactsRequest request;
    for (const Manifest& manifest : facts) {
      *(remove ? request.add_removed_manifests() : request.add_manifests()) = manifest.json;
    }
    status = client->UpdateFacts(std::move(request));
  }
  if (!status.ok()) return Fail(NameManifests(status.status(), facts));
  for (const Manifest& manifest : *manifests) {
    std::cout << DescribeManifest(manifest.json) << (remove ? " deleted\n" : " applied\n");
  }
  for (const std::string& warning : status->warnings()) {
    std::cerr << "Warning: " << Printable(warning) << "\n";
  }
  return 0;
}

namespace {

bool IsOver(const v1::Submission& submission) {
  return submission.state() != v1::Submission::STATE_WAITING && submission.state() != v1::Submission::STATE_PLANNED;
}

// Waits until the submission has a plan other than `taken`, or has ended. A restart of musterd does not end a
// submission.
absl::Status AwaitPlan(MusterClient* client, int64_t taken, v1::Submission* submission) {
  std::string printed;
  bool away = false;
  return client->AwaitSubmission(
      submission->id(),
      [&](const v1::Submission& now) {
        *submission = now;
        away = false;
        if (IsOver(now) || (now.state() == v1::Submission::STATE_PLANNED && now.plan() != taken)) return false;
        if (now.reason().text() != printed) std::cerr << "waits: " << Printable(printed = now.reason().text()) << "\n";
        return true;
      },
      [&](const absl::Status& why) {
        if (!std::exchange(away, true)) std::cerr << "retrying: " << Printable(std::string(why.message())) << "\n";
        return true;
      });
}

// Waits for a plan and, with --confirm, accepts it. In a gang group, an accepted plan stays until those of the other
// gangs are accepted, or is replaced by another one (SPEC D-10).
absl::Status Await(MusterClient* client, const Options& options, v1::Submission* submission) {
  int64_t taken = 0;
  bool named = false;
  while (!IsOver(*submission)) {
    const bool planned = submission->state() == v1::Submission::STATE_PLANNED && submission->plan() != taken;
    if (planned && !options.confirm) return absl::OkStatus();
    if (planned) {
      taken = submission->plan();
      const absl::StatusOr<v1::Submission> confirmed = client->ConfirmGang(submission->id(), taken);
      if (confirmed.ok()) {
        *submission = *confirmed;
        continue;
      }
      // It may have another plan now, or the answer was lost: its state shows which.
      if (!absl::IsUnavailable(confirmed.status()) && !absl::IsFailedPrecondition(confirmed.status())) {
        return confirmed.status();
      }
      if (absl::IsUnavailable(confirmed.status())) {
        taken = 0;
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
    // Print the id, so that a caller that stops waiting can query it.
    if (!std::exchange(named, true)) std::cerr << "submission " << Printable(submission->id()) << "\n";
    if (absl::Status waited = AwaitPlan(client, taken, submission); !waited.ok()) return waited;
  }
  return absl::OkStatus();
}

}  // namespace

int Submit(MusterClient* client, const Options& options) {
  const absl::StatusOr<std::vector<Manifest>> manifests = ReadAll(options);
  if (!manifests.ok()) return Fail(manifests.status());
  v1::SubmitGangRequest request;
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  if (options.ttl_s > 0) {
    const auto ms = static_cast<int64_t>(options.ttl_s * 1000);
    request.mutable_ttl()->set_seconds(ms / 1000);
    request.mutable_ttl()->set_nanos(static_cast<int32_t>(ms % 1000) * 1'000'000);
  }
  for (const Manifest& manifest : *manifests) request.add_manifests(manifest.json);
  absl::StatusOr<v1::Submission> submission = client->SubmitGang(request);
  if (!submission.ok()) return Fail(NameManifests(submission.status(), *manifests));
  if (options.wait || options.confirm) {
    if (const absl::Status waited = Await(client, options, &*submission); !waited.ok()) return Fail(waited);
  }
  const int shown = Show(submission, options, [](const v1::Submission& shown) {
    PrintSubmission(shown);
    if (shown.state() == v1::Submission::STATE_PLANNED) {
      std::cout << "\nConfirm: musterctl confirm " << shown.id() << "     release: musterctl abandon " << shown.id()
                << "\n";
    }
  });
  if (shown != 0) return shown;
  const auto state = submission->state();
  const bool over = state == v1::Submission::STATE_EXPIRED || state == v1::Submission::STATE_ABANDONED;
  return over || (options.confirm && state != v1::Submission::STATE_CONFIRMED) ? 1 : 0;
}

namespace {

// Scripts can distinguish "it would wait" from "no answer".
constexpr int kNoAnswer = 2;

int NoAnswer(const absl::Status& why) {
  static_cast<void>(Fail(why));
  return kNoAnswer;
}

}  // namespace

int Plan(MusterClient* client, const Options& options, const std::string& name_space) {
  std::vector<Manifest> job;
  std::vector<Manifest> nodes;
  if (const absl::Status read = ReadPlan(options, &job, &nodes); !read.ok()) return NoAnswer(read);
  if (job.empty() == options.name.empty()) {
    return NoAnswer(absl::InvalidArgumentError(
        "expected a gang's name, or its manifests with -f (Pods of one gang and its PodGroup, or a Job), not both"));
  }
  v1::PlanGangRequest request;
  for (const Manifest& manifest : job) request.mutable_job()->add_manifests(manifest.json);
  for (const Manifest& manifest : nodes) request.add_added_manifests(manifest.json);
  std::string gang = "The gang";
  if (job.empty()) {
    request.set_namespace_(name_space);
    request.set_name(options.name);
    gang = absl::StrCat(name_space, "/", options.name);
  }
  for (const std::string& node : options.without) request.add_removed_nodes(node);
  for (const std::string& text : options.add) {
    if (const absl::Status read = ReadLike(text, request.add_added_nodes()); !read.ok()) return NoAnswer(read);
  }
  for (const std::string& text : options.more) {
    if (const absl::Status read = ReadMore(text, request.add_queue_capacity_changes()); !read.ok())
      return NoAnswer(read);
  }
  absl::StatusOr<v1::PlanGangResponse> plan = client->PlanGang(request);
  if (absl::IsAlreadyExists(plan.status()) && !job.empty()) {
    return NoAnswer(absl::AlreadyExistsError(
        absl::StrCat(plan.status().message(), "; to plan the existing gang: musterctl plan NAME")));
  }
  if (!plan.ok()) {
    return NoAnswer(NameManifests(NameManifests(plan.status(), nodes, {"added_manifests"}), job, {"job.manifests"}));
  }
  const int shown = Show(plan, options, [&gang](const v1::PlanGangResponse& answer) { PrintPlan(gang, answer); });
  return shown != 0 ? kNoAnswer : plan->starts() ? 0 : 1;
}

int Confirm(MusterClient* client, const Options& options) {
  int64_t plan = options.plan;
  if (plan == 0) {
    const absl::StatusOr<v1::Submission> now = client->GetSubmission(options.name);
    if (!now.ok()) return Fail(now.status());
    plan = now->plan();
  }
  return Show(client->ConfirmGang(options.name, plan), options, &PrintSubmission);
}
}  // namespace muster
