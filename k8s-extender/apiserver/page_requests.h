// Requests the pages of one list at the API server, one after the other (SPEC K-10, S-6).
//
// A page larger than 32 MiB is requested again with half the limit, down to one object. The limit grows again while the
// pages are small. Continue tokens are valid with any limit.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_PAGE_REQUESTS_H_
#define MUSTER_K8S_EXTENDER_APISERVER_PAGE_REQUESTS_H_

#include <future>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "k8s-extender/apiserver/client.h"
#include "k8s-extender/apiserver/page_budget.h"

namespace muster {

class PageRequests {
 public:
  struct Page {
    PageBudget::Share share;  // of the client's budget, until the page is read
    KubeResponse response;    // of any HTTP status
    int limit = 0;            // the number of objects that was asked for
  };

  // `path`: of the objects, for example "/api/v1/pods".
  PageRequests(std::string path, KubeClient* client) : path_(std::move(path)), client_(client) {}

  // Requests the page at a continue token, on a thread of its own. Empty `token`: the first page. ResourceExhausted: a
  // single object is too large. REQUIRES: the result is awaited before the next request and before the end of this.
  [[nodiscard]] std::future<absl::StatusOr<Page>> Request(const std::string& token);

 private:
  [[nodiscard]] absl::StatusOr<Page> Receive(const std::string& token);

  static constexpr int kMaxLimit = 500;
  const std::string path_;
  KubeClient* const client_;
  int limit_ = kMaxLimit;         // of the next request
  int logged_limit_ = kMaxLimit;  // the smallest one that the log names
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_PAGE_REQUESTS_H_
