// Pages of lists (AIP-158). A token names the last object of its page, so that a page begins after it, whether it still
// exists or not.
#ifndef MUSTER_SERVICE_RPC_PAGES_H_
#define MUSTER_SERVICE_RPC_PAGES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "service/rpc/errors.h"

namespace muster {

// The number of objects of a page and the object after which it begins.
struct PageStart {
  size_t size = 0;
  std::string after;  // empty: the first page
};

// `request` has page_size and page_token. A negative size, or a token of another list, is a violation.
template <typename Request>
[[nodiscard]] PageStart ReadPage(const Request& request, Violations* violations) {
  constexpr int32_t kDefault = 1'000;
  constexpr int32_t kMost = 10'000;
  PageStart out;
  if (request.page_size() < 0) {
    violations->Add("page_size", absl::StrCat(request.page_size(), "; expected 0 (", kDefault, ") or more"));
  }
  out.size = static_cast<size_t>(std::min(request.page_size() <= 0 ? kDefault : request.page_size(), kMost));
  if (!request.page_token().empty() &&
      (!absl::WebSafeBase64Unescape(request.page_token(), &out.after) || out.after.empty())) {
    violations->Add("page_token", "is no token of a page; expected next_page_token of the page before");
  }
  return out;
}

// The token of the page after the object `last`.
[[nodiscard]] inline std::string PageToken(absl::string_view last) { return absl::WebSafeBase64Escape(last); }

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_PAGES_H_
