// Whose bearer token is it? Asks the API server (authentication.k8s.io/v1 TokenReview; SPEC S-6).
#ifndef MUSTER_K8S_EXTENDER_APISERVER_TOKEN_REVIEW_H_
#define MUSTER_K8S_EXTENDER_APISERVER_TOKEN_REVIEW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "k8s-extender/apiserver/client.h"

namespace muster {

struct TokenOwner {
  std::string user;
  std::vector<std::string> groups;
};

// Blocks for at most 5 s. Unauthenticated: it is nobody's. Unavailable: the API server did not say; PermissionDenied:
// it does not let us ask (deploy/rbac.yaml).
[[nodiscard]] absl::StatusOr<TokenOwner> ReviewToken(KubeClient* client, const std::string& token);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_TOKEN_REVIEW_H_
