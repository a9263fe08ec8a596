#include "k8s-extender/apiserver/token_review.h"

#include "absl/strings/str_cat.h"
#include "support/json.h"

namespace muster {

absl::StatusOr<TokenOwner> ReviewToken(KubeClient* client, const std::string& token) {
  const Json question = {
      {"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token}}}};
  // A token can be any bytes that a client sent.
  const std::string body = question.dump(-1, ' ', false, Json::error_handler_t::replace);
  const absl::StatusOr<KubeResponse> response =
      client->Send(KubeMethod::kPost, "/apis/authentication.k8s.io/v1/tokenreviews", body, absl::Seconds(5));
  if (!response.ok())
    return absl::UnavailableError(absl::StrCat("the token could not be reviewed: ", response.status().message()));
  if (response->status == 403) {
    return absl::PermissionDeniedError(
        "musterd may not create tokenreviews: see the ClusterRole in deploy/muster.yaml");
  }
  if (response->status != 200 && response->status != 201) {
    return absl::UnavailableError(absl::StrCat("the token could not be reviewed: ", StatusMessage(*response)));
  }
  const absl::StatusOr<Json> review = ParseJson(response->body, "TokenReview");
  if (!review.ok()) return absl::UnavailableError("the token's review cannot be read");
  const Json& status = Child(*review, "status");
  if (!BoolOrFalse(status, "authenticated"))
    return absl::UnauthenticatedError("the bearer token is not known to Kubernetes");
  const Json& user = Child(status, "user");
  TokenOwner owner;
  owner.user = StringOrEmpty(user, "username");
  if (const Json& groups = Child(user, "groups"); groups.is_array()) {
    for (const Json& group : groups) {
      if (const auto* name = group.get_ptr<const std::string*>(); name != nullptr) owner.groups.push_back(*name);
    }
  }
  return owner;
}

}  // namespace muster
