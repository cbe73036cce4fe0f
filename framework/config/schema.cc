#include "framework/config/schema.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/config/convert.h"
#include "framework/config/other_tools.h"
#include "framework/config/tree.h"
#include "framework/core/check.h"
#include "framework/core/text.h"

namespace dtrain::config {
namespace {

std::string LastPart(const std::string& path) { return path.substr(path.rfind('.') + 1); }

bool IsNull(const Tree* tree) { return tree == nullptr || tree->kind == Tree::Kind::kNull; }

}  // namespace

bool Limit::Allows(double value) const {
  switch (kind) {
    case kMin:
      return value >= bound;
    case kMax:
      return value <= bound;
    case kAbove:
      return value > bound;
    case kBelow:
      return value < bound;
  }
  return false;
}

std::string Limit::Text() const {
  static constexpr const char* kSigns[] = {">=", "<=", ">", "<"};
  return fmt::format("{} {}", kSigns[kind], bound);
}

std::string Limits::Text() const {
  if (!names.empty()) return "one of " + Join(names);
  std::vector<std::string> parts;
  for (const Limit& bound : bounds) parts.push_back(bound.Text());
  return Join(parts, " and ");
}

const Value& Declaration::Evaluate(Diagnostics& diagnostics) {
  value = default_value;
  if (given == nullptr) {
    mistaken = missing = required && !section->may_lack_keys;
    if (required) diagnostics.NotedAlready();  // or there is no section
    return value;
  }
  if (may_be_auto && given->kind == Tree::Kind::kScalar && given->text == "auto") {
    value = int64_t{0};
    return value;
  }
  std::optional<Value> read = Convert(*given, default_value, path, diagnostics);
  mistaken = !read || !CheckLimits(*read, *given, limits, path, diagnostics);
  if (!mistaken) value = *std::move(read);
  return value;
}

const Tree::Entry* SectionNode::Find(const std::string& key) const {
  return tree == nullptr ? nullptr : tree->Find(key);
}

SectionNode::Item* SectionNode::FindItem(const std::string& key) {
  for (Item& item : items) {
    if (item.key == key) return &item;
  }
  return nullptr;
}

Place SectionNode::PlaceOf(const std::string& key) const {
  const Tree::Entry* entry = Find(key);
  return entry == nullptr ? place : entry->place;
}

std::string SectionNode::PathOf(const std::string& key) const {
  return path.empty() ? key : path + "." + key;
}

Declaration* SectionNode::FindKey(const std::string& key) const {
  for (const Item& item : items) {
    const auto* found = std::get_if<std::shared_ptr<Declaration>>(&item.what);
    if (item.key == key && found != nullptr) return found->get();
  }
  return nullptr;
}

std::string SectionNode::Title() const {
  const Declaration* key = FindKey("name");
  const auto* name = key == nullptr ? nullptr : std::get_if<std::string>(&key->value);
  if (path.empty() || name == nullptr || name->empty()) return path;
  return LastPart(path) + " '" + *name + "'";
}

void SectionNode::Mistake(const std::string& key, const std::string& message,
                          const std::string& hint) {
  diagnostics->Note(PlaceOf(key), message, hint);
  if (Declaration* known = FindKey(key)) known->mistaken = true;
}

// `name` and `type` decide which other keys a section has.
bool SectionNode::KeysAreUnclear() const {
  for (const char* key : {"name", "type"}) {
    const Declaration* known = FindKey(key);
    if (known != nullptr && known->mistaken) return true;
  }
  return false;
}

// A key that is read twice keeps its place in the order and the newer declaration.
void SectionNode::Declare(std::shared_ptr<Declaration> declaration, const std::string& key) {
  const Tree::Entry* entry = Find(key);
  declaration->path = PathOf(key);
  declaration->section = this;
  declaration->given = entry == nullptr ? nullptr : &entry->value;
  if (Item* known = FindItem(key)) {
    known->what = std::move(declaration);
  } else {
    items.push_back({key, std::move(declaration)});
  }
}

std::shared_ptr<SectionNode> SectionNode::MakeChild(const std::string& child_path,
                                                    const Tree* node) const {
  auto child = std::make_shared<SectionNode>();
  child->diagnostics = diagnostics;
  child->path = child_path;
  child->place = node == nullptr ? place : node->place;
  child->may_lack_keys = may_lack_keys;
  if (IsNull(node)) return child;
  if (node->kind == Tree::Kind::kMap) {
    child->tree = node;
  } else if (node->kind == Tree::Kind::kScalar) {
    child->shorthand = std::make_unique<Tree>(NamedSection(*node));
    child->tree = child->shorthand.get();
  } else {
    if (node->kind == Tree::Kind::kList) {
      diagnostics->Note(node->place, child_path + " must be a section of keys, found a list");
    }
    child->may_lack_keys = true;
  }
  return child;
}

std::shared_ptr<SectionNode> SectionNode::Child(const std::string& key) {
  if (Item* known = FindItem(key)) {
    auto* section = std::get_if<std::shared_ptr<SectionNode>>(&known->what);
    DT_CHECK(section != nullptr) << PathOf(key) << " is read as a section and as something else";
    return *section;
  }
  const Tree::Entry* entry = Find(key);
  auto child = MakeChild(PathOf(key), entry == nullptr ? nullptr : &entry->value);
  items.push_back({key, child});
  return child;
}

const SectionNode::SectionList& SectionNode::Children(const std::string& key) {
  if (Item* known = FindItem(key)) {
    auto* list = std::get_if<SectionList>(&known->what);
    DT_CHECK(list != nullptr) << PathOf(key) << " is read as a list and as something else";
    return *list;
  }
  SectionList children;
  const Tree::Entry* entry = Find(key);
  if (entry != nullptr && entry->value.kind == Tree::Kind::kList) {
    for (const Tree& item : entry->value.items) {
      children.push_back(MakeChild(fmt::format("{}[{}]", PathOf(key), children.size()), &item));
    }
  } else if (entry != nullptr && entry->value.kind != Tree::Kind::kNull) {
    diagnostics->Note(entry->value.place, PathOf(key) + " must be a list of sections");
  }
  return std::get<SectionList>(items.emplace_back(Item{key, std::move(children)}).what);
}

std::vector<const Declaration*> SectionNode::Missing() const {
  std::vector<const Declaration*> missing;
  for (const Item& item : items) {
    const auto* key = std::get_if<std::shared_ptr<Declaration>>(&item.what);
    if (key != nullptr && (*key)->missing) missing.push_back(key->get());
  }
  return missing;
}

// Goes by the names of other tools, too, and finds a key that belongs a section deeper.
std::string SectionNode::HintFor(const std::string& key,
                                 const std::vector<std::string>& allowed) const {
  std::string meant = KeyOfOtherTools(key, allowed);
  for (const Item& item : items) {
    const auto* child = std::get_if<std::shared_ptr<SectionNode>>(&item.what);
    if (!meant.empty() || child == nullptr) continue;
    std::vector<std::string> deeper;
    for (const Item& below : (*child)->items) deeper.push_back(below.key);
    const bool same = std::find(deeper.begin(), deeper.end(), key) != deeper.end();
    const std::string found = same && key != "name" ? key : KeyOfOtherTools(key, deeper);
    if (!found.empty()) meant = (*child)->PathOf(found);
  }
  if (meant.empty()) return SuggestName(key, allowed);
  return "did you mean '" + meant + "'?  allowed: " + Join(allowed);
}

// Whether the section `key` is not there and an unknown key is most like it: what it lacks is no
// mistake beside that one.
bool SectionNode::IsMisspelt(const std::string& key,
                             const std::vector<std::string>& allowed) const {
  if (tree == nullptr || Find(key) != nullptr) return false;
  return std::ranges::any_of(tree->entries, [&](const Tree::Entry& entry) {
    if (std::ranges::find(allowed, entry.key) != allowed.end()) return false;
    const std::string other = KeyOfOtherTools(entry.key, allowed);
    return (other.empty() ? NearestName(entry.key, allowed) : other) == key;
  });
}

void SectionNode::NoteUnknownKeys() const {
  std::vector<std::string> allowed;
  for (const Item& item : items) allowed.push_back(item.key);
  for (const Item& item : items) {
    if (const auto* child = std::get_if<std::shared_ptr<SectionNode>>(&item.what)) {
      if (!IsMisspelt(item.key, allowed)) (*child)->NoteUnknownKeys();
    } else if (const auto* list = std::get_if<SectionList>(&item.what)) {
      for (const auto& element : *list) element->NoteUnknownKeys();
    }
  }
  std::sort(allowed.begin(), allowed.end());
  std::vector<const Declaration*> missing = Missing();
  const bool unclear = KeysAreUnclear();
  const std::string where = Title().empty() ? "" : " in " + Title();
  for (size_t i = 0; tree != nullptr && i < tree->entries.size(); ++i) {
    const Tree::Entry& entry = tree->entries[i];
    if (std::binary_search(allowed.begin(), allowed.end(), entry.key)) continue;
    const auto meant = std::find_if(missing.begin(), missing.end(), [&](const Declaration* key) {
      const std::vector<std::string> name = {LastPart(key->path)};
      return !NearestName(entry.key, name).empty() || !KeyOfOtherTools(entry.key, name).empty();
    });
    if (meant != missing.end()) {
      diagnostics->Note(entry.place, "unknown key '" + entry.key + "'" + where,
                        "did you mean '" + LastPart((*meant)->path) + "'?");
      missing.erase(meant);
    } else if (!unclear) {
      diagnostics->Note(entry.place, "unknown key '" + entry.key + "'" + where,
                        HintFor(entry.key, allowed));
    }
  }
  for (const Declaration* key : missing) {
    diagnostics->Note(place, "the key " + key->path + " is missing", key->help);
  }
}

}  // namespace dtrain::config
