// Changes a document's Tree by a file that is merged into it and by --set arguments.
#include <algorithm>
#include <optional>
#include <utility>

#include "framework/config/tree.h"

namespace dtrain::config {
namespace {

constexpr int64_t kAfterTheConfig = int64_t{1} << 59;  // before the --set arguments
constexpr int64_t kAfterEveryFile = int64_t{1} << 60;

void Lay(Tree over, Tree& base) {
  if (over.kind != Tree::Kind::kMap || base.kind != Tree::Kind::kMap) {
    base = std::move(over);
    return;
  }
  for (Tree::Entry& entry : over.entries) {
    Tree::Entry* own = base.Find(entry.key);
    if (own == nullptr) {
      base.entries.push_back(std::move(entry));
      continue;
    }
    own->place = entry.place;
    Lay(std::move(entry.value), own->value);
  }
}

struct Override {
  std::vector<std::string> keys;  // "solver", "lr"
  Tree value;

  bool NamesSection() const { return keys.size() > 1 && keys.back() == "name"; }
  // The order of application: sections before their keys; X.name concerns X itself.
  size_t depth() const { return keys.size() - (NamesSection() ? 1 : 0); }
};

std::vector<std::string> SplitKeys(const std::string& path) {
  std::vector<std::string> keys(1);
  for (const char c : path) {
    if (c == '.') {
      keys.emplace_back();
    } else {
      keys.back() += c;
    }
  }
  return keys;
}

Tree QuotedString(const std::string& text, const Place& place) {
  Tree tree;
  tree.kind = Tree::Kind::kScalar;
  tree.text = text;
  tree.place = place;
  tree.quoted = true;
  return tree;
}

// True for a value that a shell's user need not quote for YAML, too: none, and a separator of CSV files.
bool IsPlainText(const std::string& value) { return value.empty() || value == "," || value == "|"; }

std::optional<Override> ParseOverride(const std::string& argument, const Place& place,
                                      Diagnostics& diagnostics) {
  const size_t equals = argument.find('=');
  Override parsed;
  parsed.keys = SplitKeys(argument.substr(0, equals));
  const bool hole = std::any_of(parsed.keys.begin(), parsed.keys.end(),
                                [](const std::string& key) { return key.empty(); });
  if (equals == std::string::npos || hole) {
    diagnostics.Note(place, "expected key=value or section.key=value");
    return std::nullopt;
  }
  const std::string text = argument.substr(equals + 1);
  if (IsPlainText(text)) {
    parsed.value = QuotedString(text, place);
    return parsed;
  }
  std::optional<Tree> value = ParseYaml(
      text, [&](int, int) { return place; }, diagnostics);
  if (!value) return std::nullopt;
  parsed.value = *std::move(value);
  return parsed;
}

// Returns `node` as a mapping, converting a scalar or null; nullptr for a list.
Tree* AsMapping(Tree& node, const Place& place) {
  if (node.kind == Tree::Kind::kScalar) node = NamedSection(node);
  if (node.kind == Tree::Kind::kNull) {
    node.kind = Tree::Kind::kMap;
    node.place = place;
  }
  return node.kind == Tree::Kind::kMap ? &node : nullptr;
}

Tree& ChildOf(Tree& mapping, const std::string& key, const Place& place) {
  Tree::Entry* entry = mapping.Find(key);
  if (entry == nullptr) entry = &mapping.entries.emplace_back(Tree::Entry{key, place, Tree{}});
  return entry->value;
}

void Apply(const Override& change, Tree& root, Diagnostics& diagnostics) {
  const Place& place = change.value.place;
  Tree* mapping = AsMapping(root, place);
  for (size_t i = 0; mapping != nullptr && i + 1 < change.keys.size(); ++i) {
    mapping = AsMapping(ChildOf(*mapping, change.keys[i], place), place);
    if (mapping == nullptr) {
      diagnostics.Note(place, "'" + change.keys[i] + "' is a list, so it has no keys to set",
                       "set the whole list: " + change.keys[i] + "=[...]");
    }
  }
  if (mapping == nullptr) return;
  if (change.NamesSection()) {
    mapping->entries.clear();
    mapping->place = place;
  }
  ChildOf(*mapping, change.keys.back(), place) = change.value;
  mapping->Find(change.keys.back())->place = place;
}

}  // namespace

void LayOver(const std::string& text, const std::string& file_name, const std::string& section,
             Tree& root, Diagnostics& diagnostics) {
  const PlaceOf places = PlacesIn(file_name);
  const auto behind = [&](int line, int column) {
    Place place = places(line, column);
    place.order += kAfterTheConfig;
    return place;
  };
  std::optional<Tree> over = ParseYaml(text, behind, diagnostics);
  if (!over) return;
  const std::string hint = "such a file has the section '" + section + "' and nothing else";
  if (over->Find(section) == nullptr) {
    diagnostics.Note(behind(1, 1), "there is no section '" + section + "'", hint);
  }
  for (const Tree::Entry& entry : over->entries) {
    if (entry.key != section)
      diagnostics.Note(entry.place, "'" + entry.key + "' does not belong here", hint);
  }
  if (over->kind != Tree::Kind::kMap) return;
  if (root.kind == Tree::Kind::kNull) root.kind = Tree::Kind::kMap;
  if (root.kind == Tree::Kind::kMap) Lay(*std::move(over), root);
}

void ApplyOverrides(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& options, Tree& root,
                    Diagnostics& diagnostics) {
  std::vector<Override> changes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto option = options.find(arguments[i]);
    const Place place{option == options.end() ? "--set " + arguments[i] : option->second, 0,
                      kAfterEveryFile + static_cast<int64_t>(i)};
    auto change = ParseOverride(arguments[i], place, diagnostics);
    if (change) changes.push_back(*std::move(change));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Override& a, const Override& b) { return a.depth() < b.depth(); });
  for (const Override& change : changes) Apply(change, root, diagnostics);
}

Tree NamedSection(const Tree& node) {
  if (node.kind != Tree::Kind::kScalar) return node;
  Tree section;
  section.kind = Tree::Kind::kMap;
  section.place = node.place;
  section.entries.push_back({"name", node.place, node});
  return section;
}

}  // namespace dtrain::config
