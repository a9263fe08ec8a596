// An ordered map of immutable values whose copies share what they have in common: a B-tree of which an edit copies the
// path to what it changes ("persistent" in the sense of Driscoll, Sarnak, Sleator and Tarjan, 1989).
//
// Copying the map costs one reference count; an edit costs the logarithm of its size for each change, once for what
// changes together. A map is a value: safe to read from many threads, as long as nobody assigns to the very object.
#ifndef MUSTER_SERVICE_ENGINE_SHARED_MAP_H_
#define MUSTER_SERVICE_ENGINE_SHARED_MAP_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// `KeyOf()(value)` is the key of a value, which never changes.
template <typename Value, typename KeyOf>
class SharedMap {
 public:
  using Entry = std::shared_ptr<const Value>;
  class Editor;

  [[nodiscard]] size_t size() const { return size_; }

  // nullptr: absent.
  [[nodiscard]] Entry Find(absl::string_view key) const {
    const Node* node = root_.get();
    while (node != nullptr && !node->children.empty()) node = node->children[node->Child(key)].get();
    if (node == nullptr) return nullptr;
    const size_t at = node->LowerBound(key);
    return at < node->entries.size() && KeyAt(*node, at) == key ? node->entries[at] : nullptr;
  }
  // The first whose key is greater than `key`; nullptr: there is none.
  [[nodiscard]] Entry After(absl::string_view key) const {
    const Node* node = root_.get();
    const Node* next = nullptr;  // the subtree behind the path
    while (node != nullptr && !node->children.empty()) {
      const size_t child = node->Child(key);
      if (child + 1 < node->children.size()) next = node->children[child + 1].get();
      node = node->children[child].get();
    }
    if (node == nullptr) return nullptr;
    size_t at = node->LowerBound(key);
    if (at < node->entries.size() && KeyAt(*node, at) == key) ++at;
    if (at < node->entries.size()) return node->entries[at];
    while (next != nullptr && !next->children.empty()) next = next->children.front().get();
    return next == nullptr ? nullptr : next->entries.front();
  }
  // Every value in order of keys.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (root_ != nullptr) Walk(*root_, visit);
  }

 private:
  static constexpr size_t kFan = 32;

  // A leaf has the values; another node has its children and, beside each, a value whose key none of the child's is
  // below (itself perhaps removed since).
  struct Node {
    uint64_t edit = 0;  // which edit made it, and may change it
    std::vector<Entry> entries;
    std::vector<std::shared_ptr<Node>> children;

    [[nodiscard]] size_t LowerBound(absl::string_view key) const {
      const auto at = std::lower_bound(entries.begin(), entries.end(), key,
                                       [](const Entry& entry, absl::string_view k) { return Key(*entry) < k; });
      return static_cast<size_t>(at - entries.begin());
    }
    // The child that has `key`, if any has; keys below all belong into the first.
    [[nodiscard]] size_t Child(absl::string_view key) const {
      const size_t at = LowerBound(key);
      if (at < entries.size() && Key(*entries[at]) == key) return at;
      return at == 0 ? 0 : at - 1;
    }
  };

  static absl::string_view Key(const Value& value) { return KeyOf()(value); }
  static absl::string_view KeyAt(const Node& node, size_t at) { return Key(*node.entries[at]); }
  template <typename Visit>
  static void Walk(const Node& node, Visit& visit) {
    if (node.children.empty()) {
      for (const Entry& entry : node.entries) visit(entry);
    }
    for (const auto& child : node.children) Walk(*child, visit);
  }

  std::shared_ptr<Node> root_;
  size_t size_ = 0;
};

// Changes to a map, gathered: what it was made from stays as it was.
template <typename Value, typename KeyOf>
class SharedMap<Value, KeyOf>::Editor {
 public:
  explicit Editor(SharedMap from) : map_(std::move(from)), edit_(NextEdit()) {}

  // Adds, or takes the place of the value with the same key, which it returns; nullptr: there was none.
  Entry Set(Entry value) {
    if (map_.root_ == nullptr) map_.root_ = std::make_shared<Node>();
    Entry old;
    std::shared_ptr<Node> right = Insert(&map_.root_, std::move(value), &old);
    if (right == nullptr) return old;
    auto root = std::make_shared<Node>();
    root->edit = edit_;
    root->entries = {map_.root_->entries.front(), right->entries.front()};
    root->children = {std::move(map_.root_), std::move(right)};
    map_.root_ = std::move(root);
    return old;
  }
  // Returns what was there; nullptr, and nothing happens: there was none.
  Entry Remove(absl::string_view key) {
    Entry old = map_.Find(key);
    if (old == nullptr) return old;
    --map_.size_;
    if (!Erase(&map_.root_, key)) {
      map_.root_ = nullptr;
      return old;
    }
    while (map_.root_->children.size() == 1) map_.root_ = std::shared_ptr<Node>(map_.root_->children.front());
    return old;
  }
  // Once, at the end.
  [[nodiscard]] SharedMap Done() { return std::move(map_); }

 private:
  static uint64_t NextEdit() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
  // The node as one of this edit's own: nobody else sees it.
  Node* Own(std::shared_ptr<Node>* node) {
    if ((*node)->edit != edit_) {
      *node = std::make_shared<Node>(**node);
      (*node)->edit = edit_;
    }
    return node->get();
  }
  // Returns the new right half of a node that was full. What had the key before goes to `old`.
  std::shared_ptr<Node> Insert(std::shared_ptr<Node>* at, Entry value, Entry* old) {
    Node* node = Own(at);
    const absl::string_view key = Key(*value);
    if (node->children.empty()) {
      const size_t index = node->LowerBound(key);
      if (index < node->entries.size() && KeyAt(*node, index) == key) {
        *old = std::exchange(node->entries[index], std::move(value));
        return nullptr;
      }
      node->entries.insert(node->entries.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
      ++map_.size_;
    } else {
      const size_t child = node->Child(key);
      // What stands beside the child is never above its keys, and not kept longer than needed.
      if (key <= KeyAt(*node, child)) node->entries[child] = value;
      std::shared_ptr<Node> right = Insert(&node->children[child], std::move(value), old);
      if (right != nullptr) {
        const auto behind = static_cast<std::ptrdiff_t>(child + 1);
        node->entries.insert(node->entries.begin() + behind, right->entries.front());
        node->children.insert(node->children.begin() + behind, std::move(right));
      }
    }
    return node->entries.size() > kFan ? SplitOff(node) : nullptr;
  }
  std::shared_ptr<Node> SplitOff(Node* node) {
    auto right = std::make_shared<Node>();
    right->edit = edit_;
    // Names often come in order: what stays is nearly full then.
    const auto half = static_cast<std::ptrdiff_t>(kFan * 3 / 4);
    right->entries.assign(node->entries.begin() + half, node->entries.end());
    node->entries.resize(static_cast<size_t>(half));
    if (!node->children.empty()) {
      right->children.assign(node->children.begin() + half, node->children.end());
      node->children.resize(static_cast<size_t>(half));
    }
    return right;
  }
  // False: nothing is left of it.
  bool Erase(std::shared_ptr<Node>* at, absl::string_view key) {
    Node* node = Own(at);
    if (node->children.empty()) {
      node->entries.erase(node->entries.begin() + static_cast<std::ptrdiff_t>(node->LowerBound(key)));
    } else {
      const size_t child = node->Child(key);
      if (!Erase(&node->children[child], key)) {
        node->entries.erase(node->entries.begin() + static_cast<std::ptrdiff_t>(child));
        node->children.erase(node->children.begin() + static_cast<std::ptrdiff_t>(child));
      }
    }
    return !node->entries.empty();
  }

  SharedMap map_;
  const uint64_t edit_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_SHARED_MAP_H_
