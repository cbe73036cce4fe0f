#include "framework/config/tree.h"

namespace dtrain::config {

const Tree::Entry* Tree::Find(const std::string& key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Tree::Entry* Tree::Find(const std::string& key) {
  return const_cast<Entry*>(static_cast<const Tree*>(this)->Find(key));
}

}  // namespace dtrain::config
