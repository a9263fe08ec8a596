#include "k8s-extender/apiserver/page_requests.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace muster {
namespace {

constexpr size_t kMaxPage = size_t{32} << 20;
// The limit is doubled after a smaller page, so that the next one is most probably not too large.
constexpr size_t kSmallPage = kMaxPage / 4;
// With a limit of one object, for servers that ignore limits and answer with the whole list.
constexpr size_t kMaxLastResort = size_t{256} << 20;
constexpr absl::Duration kTimeout = absl::Seconds(60);

}  // namespace

std::future<absl::StatusOr<PageRequests::Page>> PageRequests::Request(const std::string& token) {
  return std::async(std::launch::async, [this, token] { return Receive(token); });
}

absl::StatusOr<PageRequests::Page> PageRequests::Receive(const std::string& token) {
  for (;;) {
    const size_t max_bytes = limit_ > 1 ? kMaxPage : kMaxLastResort;
    absl::StatusOr<PageBudget::Share> share = client_->pages().Acquire(max_bytes);
    if (!share.ok()) return share.status();
    std::string path = absl::StrCat(path_, "?limit=", limit_);
    if (!token.empty()) absl::StrAppend(&path, "&continue=", EscapeQuery(token));
    absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, path, "", kTimeout, max_bytes);
    if (absl::IsResourceExhausted(response.status()) && limit_ > 1) {
      limit_ /= 2;
      continue;
    }
    if (!response.ok()) return response.status();
    if (limit_ < logged_limit_) {
      spdlog::info("list of {}: its pages are larger than {} MiB; reading {} objects at a time instead of {}", path_,
                   kMaxPage >> 20, limit_, kMaxLimit);
      logged_limit_ = limit_;
    }
    share->ReduceTo(response->body.size());
    const int limit = limit_;
    if (response->body.size() < kSmallPage) limit_ = std::min(2 * limit_, kMaxLimit);
    return Page{*std::move(share), *std::move(response), limit};
  }
}

}  // namespace muster
