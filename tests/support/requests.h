// Builders of the requests that tests send over gRPC. The UID of a pod is its name.
#ifndef MUSTER_TESTS_SUPPORT_REQUESTS_H_
#define MUSTER_TESTS_SUPPORT_REQUESTS_H_

#include <cstdint>
#include <string>

#include "muster/v1/decision.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/placement.pb.h"

namespace muster {

inline v1::NodeFacts NodeOf(const std::string& name, const std::string& cpu) {
  v1::NodeFacts node;
  node.set_name(name);
  (*node.mutable_allocatable())["cpu"] = cpu;
  (*node.mutable_allocatable())["pods"] = "10000";
  return node;
}

inline v1::PodFacts PodOf(const std::string& name, const std::string& cpu) {
  v1::PodFacts pod;
  pod.set_uid(name);
  pod.set_name(name);
  (*pod.mutable_shape()->mutable_requests())["cpu"] = cpu;
  return pod;
}

// A pod that declares its gang, which needs `min` members.
inline v1::PodFacts MemberOf(const std::string& gang, int32_t min, const std::string& name,
                             const std::string& cpu = "0") {
  v1::PodFacts pod = PodOf(name, cpu);
  pod.set_gang(gang);
  pod.mutable_declaration()->set_min_member(min);
  return pod;
}

// Without a request id the client generates one.
inline v1::CreateGangRequest CreateOf(const std::string& name, int32_t min, const std::string& request_id = "") {
  v1::CreateGangRequest request;
  request.set_request_id(request_id);
  request.mutable_gang()->set_name(name);
  request.mutable_gang()->set_min_member(min);
  return request;
}

// A submission with the name of its gang as its id, for a minute. Each of its members, all needed, requests `cpu`.
inline v1::SubmitGangRequest SubmitOf(const std::string& name, int32_t members, const std::string& cpu) {
  v1::SubmitGangRequest request;
  request.set_request_id(name);
  request.mutable_ttl()->set_seconds(60);
  request.mutable_gang()->set_name(name);
  request.mutable_gang()->set_min_member(members);
  request.add_members()->set_count(members);
  (*request.mutable_members(0)->mutable_shape()->mutable_requests())["cpu"] = cpu;
  return request;
}

inline v1::PermitRequest PermitOf(const std::string& pod_uid, const std::string& node) {
  v1::PermitRequest request;
  request.set_pod_uid(pod_uid);
  request.set_node(node);
  return request;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_REQUESTS_H_
