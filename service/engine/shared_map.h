// An ordered map of immutable values; copies share their common parts. It is a B-tree in which an edit copies the path
// to its change ("persistent" in the sense of Driscoll, Sarnak, Sleator and Tarjan, 1989).
//
// Copying the map costs one reference count. A change costs the logarithm of the size; changes of one edit share the
// copied nodes. A map is a value: many threads may read it, as long as no thread assigns to the same object.
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

// `KeyOf()(value)` is the key of a value. It never changes.
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
  // The first value with a key greater than `key`; nullptr: none.
  [[nodiscard]] Entry After(absl::string_view key) const {
    const Node* node = root_.get();
    const Node* next = nullptr;  // the subtree after the path
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
  // Visits every value in order of keys.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (root_ != nullptr) Walk(*root_, visit);
  }

 private:
  static constexpr size_t kFan = 32;

  // A leaf has the values. An inner node has its children and, for each child, a value whose key is at most the child's
  // keys. That value itself may have been removed since.
  struct Node {
    uint64_t edit = 0;  // the edit that made the node and may change it
    std::vector<Entry> entries;
    std::vector<std::shared_ptr<Node>> children;

    [[nodiscard]] size_t LowerBound(absl::string_view key) const {
      const auto at = std::lower_bound(entries.begin(), entries.end(), key,
                                       [](const Entry& entry, absl::string_view k) { return Key(*entry) < k; });
      return static_cast<size_t>(at - entries.begin());
    }
    // The child that has `key`, if any has. Keys below all others belong to the first child.
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

// Collects changes to a map. The original map does not change.
template <typename Value, typename KeyOf>
class SharedMap<Value, KeyOf>::Editor {
 public:
  explicit Editor(SharedMap from) : map_(std::move(from)), edit_(NextEdit()) {}

  // Adds a value or replaces the value with the same key. Returns the replaced value; nullptr: none.
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
  // Removes the value and returns it; nullptr: it was absent.
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
  // REQUIRES: called once, at the end.
  [[nodiscard]] SharedMap Done() { return std::move(map_); }

 private:
  static uint64_t NextEdit() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
  // Returns the node as a copy that belongs to this edit; no other map sees it.
  Node* Own(std::shared_ptr<Node>* node) {
    if ((*node)->edit != edit_) {
      *node = std::make_shared<Node>(**node);
      (*node)->edit = edit_;
    }
    return node->get();
  }
  // Returns the new right half of a node that was full. The previous value of the key goes to `old`.
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
      // The separator is never above the child's keys, and is replaced as early as possible.
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
    // Keys often arrive in ascending order; then the left node stays nearly full.
    const auto half = static_cast<std::ptrdiff_t>(kFan * 3 / 4);  // short cut
    right->entries.assign(node->entries.begin() + half, node->entries.end());
    node->entries.resize(static_cast<size_t>(half));
    if (!node->children.empty()) {
      right->children.assign(node->children.begin() + half, node->children.end());
      node->children.resize(static_cast<size_t>(half));
    }
    return right;
  }
  // Returns false if the node is empty now.
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
