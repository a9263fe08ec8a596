// The admission webhook (SPEC K-8; admission.k8s.io/v1). When pods of gangs are created, it adds our gate and our
// scheduler's name, and refuses declarations that can never be valid.
#ifndef MUSTER_K8S_EXTENDER_WEBHOOK_ADMISSION_H_
#define MUSTER_K8S_EXTENDER_WEBHOOK_ADMISSION_H_

#include <semaphore>
#include <string>
#include <vector>

#include "k8s-extender/webhook/extender.h"

namespace muster {

struct AdmissionOptions {
  std::vector<std::string> scheduler_names;  // served by Muster; pods with none, or the default, get the first
  std::vector<std::string> owner_kinds;      // kinds of owners that declare gangs (D-7)
  std::vector<std::string> exempt_namespaces = {"kube-system"};
  bool label_gangs = false;  // pods get label muster.dev/gang-name, for disruption budgets
};

// Thread-safe. Must outlive the servers it is registered with.
class Admission {
 public:
  Admission(AdmissionOptions options, DecisionObserver observer);

  // POST /admit.
  void Register(httplib::Server* server);
  // AdmissionReview in, AdmissionReview out. Sets `*http_status`; 400: the body is not an AdmissionReview.
  [[nodiscard]] std::string Review(const std::string& body, int* http_status) const;

 private:
  const AdmissionOptions options_;
  const DecisionObserver observer_;
  mutable std::counting_semaphore<> reviews_;  // limits the documents in memory
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_WEBHOOK_ADMISSION_H_
