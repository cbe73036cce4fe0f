#include "framework/config/tree.h"

#include <algorithm>
#include <set>

#include "framework/core/text.h"

namespace dtrain::config {
namespace {

// Removes a list item's number and name from a message: "layers[25] 'bn1' must be ..." becomes "layers[] must be ...",
// so that errors in a block that is used several times are equal.
std::string WithoutItem(std::string text) {
  const size_t open = text.find('[');
  if (open == std::string::npos) return text;
  size_t end = text.find_first_not_of("0123456789", open + 1);
  if (end == open + 1 || end == std::string::npos || text[end] != ']') return text;
  if (text.compare(end + 1, 2, " '") == 0) end = text.find('\'', end + 3);
  return end == std::string::npos ? text : text.erase(open + 1, end - open);
}

// Shortens "allowed: ..." if an earlier error has printed the same list.
std::string OnceAllowed(std::string text, std::set<std::string>& reported) {
  const size_t at = text.find("allowed: ");
  const size_t hint = text.rfind('\n', at);
  if (at == std::string::npos || hint == std::string::npos) return text;
  if (reported.insert(text.substr(at)).second) return text;
  const size_t end = text.find_last_not_of(' ', at - 1);
  if (end != hint) return text.substr(0, end + 1);
  return text.substr(0, at) + "allowed: the same as above";
}

void AddValues(const Tree& tree, const std::string& path, std::vector<PathValue>& values) {
  const auto is_scalar = [](const Tree& item) { return item.kind == Tree::Kind::kScalar; };
  if (is_scalar(tree)) values.push_back({path, tree.text, tree.quoted});
  if (tree.kind == Tree::Kind::kNull) values.push_back({path, ""});
  for (const Tree::Entry& entry : tree.entries) {
    AddValues(entry.value, path.empty() ? entry.key : path + "." + entry.key, values);
  }
  if (tree.kind != Tree::Kind::kList) return;
  if (std::ranges::all_of(tree.items, is_scalar)) {
    std::vector<std::string> items;
    for (const Tree& item : tree.items) items.push_back(item.text);
    values.push_back({path, "[" + Join(items) + "]"});
    return;
  }
  for (size_t i = 0; i < tree.items.size(); ++i) {
    AddValues(tree.items[i], path + "[" + std::to_string(i) + "]", values);
  }
}

}  // namespace

const Tree::Entry* Tree::Find(const std::string& key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Tree::Entry* Tree::Find(const std::string& key) {
  return const_cast<Entry*>(static_cast<const Tree*>(this)->Find(key));
}

void Diagnostics::Note(const Place& place, const std::string& message, const std::string& hint,
                       const std::function<bool()>& stands) {
  if (silent_) return;
  Entry error{place.order, place.text + ": " + message, hint, stands, "", {}};
  const std::string text = WithoutItem(error.Text());
  for (Entry& known : entries_) {
    if (known.order != place.order || WithoutItem(known.Text()) != text) continue;
    if (!known.stands) return;
    known.stands = stands ? [a = known.stands, b = stands] { return a() || b(); } : stands;
    return;
  }
  entries_.push_back(std::move(error));
}

void Diagnostics::NoteOnce(const std::string& subject, const Place& place,
                           const std::string& message, const std::string& hint) {
  if (silent_) return;
  for (Entry& known : entries_) {
    if (known.subject != subject) continue;
    const auto is_there = [&](const Place& other) { return other.order == place.order; };
    if (known.order == place.order || std::ranges::any_of(known.elsewhere, is_there)) return;
    return known.elsewhere.push_back(place);
  }
  entries_.push_back({place.order, place.text + ": " + message, hint, {}, subject, {}});
}

bool Diagnostics::Noted(const Place& place) const {
  return std::ranges::any_of(entries_,
                             [&](const Entry& known) { return known.order == place.order; });
}

std::string Diagnostics::Entry::Text() const {
  std::string text = message;
  std::vector<std::string> lines;
  for (const Place& place : elsewhere) {
    const std::string line = place.line > 0 ? "line " + std::to_string(place.line) : place.text;
    if (lines.empty() || lines.back() != line) lines.push_back(line);
  }
  if (!lines.empty()) text += " (and " + Join(lines) + ")";
  return hint.empty() ? text : text + "\n    " + hint;
}

std::vector<std::string> Diagnostics::Lines() const {
  std::vector<Entry> sorted;
  for (const Entry& error : entries_) {
    if (!error.stands || error.stands()) sorted.push_back(error);
  }
  // A refused config is never accepted: report all errors if none of them stands.
  if (sorted.empty()) sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry& a, const Entry& b) { return a.order < b.order; });
  std::vector<std::string> lines;
  std::set<std::string> reported;
  for (const Entry& error : sorted) lines.push_back(OnceAllowed(error.Text(), reported));
  return lines;
}

std::string Diagnostics::Report() const {
  constexpr size_t kMostReported = 30;
  std::string report;
  const std::vector<std::string> lines = Lines();
  for (size_t i = 0; i < std::min(lines.size(), kMostReported); ++i) report += lines[i] + "\n";
  if (lines.size() > kMostReported) {
    report += "... and " + std::to_string(lines.size() - kMostReported) + " more\n";
  }
  return report + Counted(std::ssize(lines), "error") + "; nothing was started";
}

std::vector<PathValue> ValuesByPath(const Tree& tree) {
  std::vector<PathValue> values;
  AddValues(tree, "", values);
  return values;
}

}  // namespace dtrain::config
