#include "framework/config/tree.h"

#include <algorithm>

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

void Diagnostics::Note(const Place& place, const std::string& message, const std::string& hint) {
  ++count_;
  if (silent_) return;
  std::string text = place.text + ": " + message;
  if (!hint.empty()) text += "\n    " + hint;
  for (const Mistake& known : mistakes_) {
    if (known.text == text) return;
  }
  mistakes_.push_back({place.order, std::move(text)});
}

std::vector<std::string> Diagnostics::Lines() const {
  std::vector<Mistake> sorted = mistakes_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Mistake& a, const Mistake& b) { return a.order < b.order; });
  std::vector<std::string> lines;
  for (Mistake& mistake : sorted) lines.push_back(std::move(mistake.text));
  return lines;
}

std::string Diagnostics::Report() const {
  constexpr size_t kMostTold = 30;
  std::string report;
  const std::vector<std::string> lines = Lines();
  for (size_t i = 0; i < std::min(lines.size(), kMostTold); ++i) report += lines[i] + "\n";
  if (lines.size() > kMostTold) {
    report += "... and " + std::to_string(lines.size() - kMostTold) + " more\n";
  }
  report += std::to_string(mistakes_.size()) + (mistakes_.size() == 1 ? " error" : " errors");
  return report + "; nothing was started";
}

}  // namespace dtrain::config
