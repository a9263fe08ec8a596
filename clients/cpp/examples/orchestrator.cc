// A complete orchestrator: announces its nodes, submits three gangs, and starts what Muster placed.
#include <cstdlib>
#include <iostream>
#include <map>

#include "clients/cpp/muster_client.h"

namespace v1 = muster::v1;

template <typename Value>
Value Check(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::exit(1);
}

int main(int argc, char** argv) {
  muster::ClientOptions options;
  if (argc > 1) options.server = argv[1];
  const auto client = Check(muster::MusterClient::Connect(options));
  v1::SendSnapshotRequest snapshot;
  snapshot.set_source("cpp-example");
  snapshot.set_version(1);
  for (const char* name : {"gpu-a", "gpu-b", "gpu-c"}) {
    v1::NodeFacts* node = snapshot.add_nodes();
    node->set_name(name);
    (*node->mutable_allocatable())["nvidia.com/gpu"] = "8";
  }
  Check(client->SendSnapshot({snapshot}));
  for (const auto& [name, members] : std::map<std::string, int>{{"train", 8}, {"serve", 4}, {"sweep", 10}}) {
    v1::SubmitGangRequest request;
    request.mutable_gang()->set_name(name);
    request.mutable_gang()->set_min_member(members);
    request.add_members()->set_count(members);
    (*request.mutable_members(0)->mutable_shape()->mutable_requests())["nvidia.com/gpu"] = "1";
    v1::Submission gang = Check(client->SubmitGang(request));
    client
        ->WatchSubmission(gang.id(),
                          [&](const v1::Submission& now) {
                            gang = now;
                            return now.state() == v1::Submission::STATE_WAITING;
                          })
        .IgnoreError();
    gang = Check(client->ConfirmGang(gang.id(), gang.plan()));
    std::cout << name << " " << v1::Submission::State_Name(gang.state()) << " " << gang.placements_size() << " pods\n";
  }
}
