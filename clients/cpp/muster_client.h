// The C++ client of muster.v1: a thin, blocking face over the generated stubs. Sees the public contract only.
#ifndef MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
#define MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/muster/v1/muster.pb.h"

namespace muster {

// Thread-safe. Every call has a deadline of 10 s; the status carries the server's code and message.
class MusterClient {
 public:
  // `server` as "host:port".
  explicit MusterClient(const std::string& server);
  ~MusterClient();

  // NotFound when there is no such gang.
  [[nodiscard]] absl::StatusOr<v1::Gang> GetGang(const std::string& name_space, const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ListGangsResponse> ListGangs(const std::string& name_space);
  [[nodiscard]] absl::StatusOr<v1::ExplainGangResponse> ExplainGang(const std::string& name_space,
                                                                    const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ListNodesResponse> ListNodes();
  // Calls `event` for each change until it returns false or the stream ends (no deadline).
  [[nodiscard]] absl::Status WatchGangs(const std::string& name_space,
                                        const std::function<bool(const v1::GangEvent&)>& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
