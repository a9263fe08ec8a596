// Finds the owner of a bearer token with the API server's TokenReview (authentication.k8s.io/v1; SPEC S-6).
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

// Blocks for at most 5 s. Unauthenticated: the token has no owner. Unavailable: the API server did not answer.
// PermissionDenied: musterd may not create TokenReviews (deploy/muster.yaml).
[[nodiscard]] absl::StatusOr<TokenOwner> ReviewToken(KubeClient* client, const std::string& token);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_TOKEN_REVIEW_H_
