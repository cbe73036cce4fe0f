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

bool IsNumber(const Tree& tree) {
  if (tree.kind != Tree::Kind::kScalar || tree.quoted) return false;
  const ScalarType type = ResolveScalar(tree.text);
  return type == ScalarType::kInt || type == ScalarType::kFloat;
}

// Returns the list, or the only entry of one, with its numbers as texts.
Tree WithTexts(Tree list) {
  if (IsNumber(list)) list.quoted = true;
  for (Tree& item : list.items) item.quoted |= IsNumber(item);
  return list;
}

// Returns the key of a section that an unknown key probably stands for; "" if there is none.
std::string Meant(const std::string& unknown, const std::vector<std::string>& keys) {
  const std::string other = KeyOfOtherTools(unknown, keys);
  return other.empty() ? NearestName(unknown, keys) : other;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

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
    missing = required && !section->may_lack_keys;
    replaced = has_error = required;
    return value;
  }
  const bool list = std::holds_alternative<std::vector<std::string>>(default_value);
  if (may_be_number && !list && IsNumber(*given)) {
    value = given->text;
    return value;
  }
  if (may_be_auto && given->kind == Tree::Kind::kScalar && given->text == "auto") {
    value = int64_t{0};
    return value;
  }
  std::optional<Value> read =
      Convert(may_be_number && list ? WithTexts(*given) : *given, default_value, path, diagnostics);
  replaced = has_error = !read || !CheckLimits(*read, *given, limits, path, diagnostics);
  if (!has_error) value = *std::move(read);
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

void SectionNode::AddError(const std::string& key, const std::string& message,
                           const std::string& hint, const std::vector<KeyRef>& by) {
  const auto stands = [this, key, by] {
    if (!key.empty() && !IsAsMeant(key)) return false;
    return std::ranges::all_of(by, [&](const KeyRef& other) {
      return (other.section ? *other.section : *this).IsAsMeant(other.key);
    });
  };
  diagnostics->Note(PlaceOf(key), message, hint, stands);
  Declaration* const known = FindKey(key);
  // A conflict between keys marks the section, not one of the keys.
  bool& which = known != nullptr && by.empty() ? known->has_error : has_error;
  which = true;
}

void SectionNode::AddErrorOnce(const std::string& subject, const std::string& key, size_t index,
                               const std::string& message, const std::string& hint) {
  const Tree::Entry* const entry = Find(key);
  Place place = PlaceOf(key);
  if (entry != nullptr) place = entry->value.place;
  if (entry != nullptr && index < entry->value.items.size()) {
    place = entry->value.items[index].place;
  }
  diagnostics->NoteOnce(subject, place, message, hint);
  if (Declaration* known = FindKey(key)) known->has_error = true;
}

std::vector<std::string> SectionNode::Allowed() const {
  std::vector<std::string> allowed;
  for (const Item& item : items) allowed.push_back(item.key);
  return allowed;
}

std::vector<const Tree::Entry*> SectionNode::Unknown() const {
  std::vector<const Tree::Entry*> unknown;
  const std::vector<std::string> allowed = Allowed();
  for (size_t i = 0; tree != nullptr && i < tree->entries.size(); ++i) {
    if (!Contains(allowed, tree->entries[i].key)) unknown.push_back(&tree->entries[i]);
  }
  return unknown;
}

// Returns the absent key that the unknown key probably stands for; "" if there is none.
std::string SectionNode::KeyMeantBy(const Tree::Entry& unknown) const {
  std::vector<std::string> absent;
  for (const Item& item : items) {
    if (Find(item.key) == nullptr) absent.push_back(item.key);
  }
  return Meant(unknown.key, absent);
}

bool SectionNode::Sound() const {
  if (refused || has_error || (tree != nullptr && tree->flawed) || !Unknown().empty()) return false;
  return std::ranges::all_of(items, [](const Item& item) {
    if (const auto* key = std::get_if<std::shared_ptr<Declaration>>(&item.what)) {
      return !(*key)->has_error;
    }
    if (const auto* child = std::get_if<std::shared_ptr<SectionNode>>(&item.what)) {
      return (*child)->Sound();
    }
    return std::ranges::all_of(std::get<SectionList>(item.what),
                               [](const auto& element) { return element->Sound(); });
  });
}

bool SectionNode::IsAsMeant(const std::string& key) const {
  if (refused) return false;
  if (tree == nullptr) return around == nullptr || around->IsAsMeant(own_key);
  if (key.empty()) return Sound();
  if (KeysAreUnclear() && key != "name" && key != "type") return false;
  if (const Tree::Entry* const entry = Find(key)) {
    if (const Declaration* known = FindKey(key)) return !known->replaced;
    return std::ranges::none_of(items, [&](const Item& item) {
      if (item.key != key) return false;
      const auto* child = std::get_if<std::shared_ptr<SectionNode>>(&item.what);
      if (child != nullptr) return (*child)->refused;
      return entry->value.kind != Tree::Kind::kList && entry->value.kind != Tree::Kind::kNull;
    });
  }
  return !tree->flawed && std::ranges::none_of(Unknown(), [&](const Tree::Entry* unknown) {
    const std::string meant = KeyMeantBy(*unknown);
    return meant.empty() || meant == key;
  });
}

// True if the key that decides the section's allowed keys is wrong: a layer's `type`, or the `name` of another section.
// The `name` of a whole file or of an item of a list decides nothing.
bool SectionNode::KeysAreUnclear() const {
  const bool typed = FindKey("type") != nullptr;
  const std::string decides = typed ? "type" : "name";
  const Declaration* known = FindKey(decides);
  if (known == nullptr || (!typed && (around == nullptr || is_item))) return false;
  return known->has_error || IsMisspelt(decides);
}

// A key that is declared twice keeps its place in the order and gets the newer declaration.
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
                                                    const std::string& child_key,
                                                    const Tree* node) const {
  auto child = std::make_shared<SectionNode>();
  child->diagnostics = diagnostics;
  child->path = child_path;
  child->around = this;
  child->own_key = child_key;
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
    child->may_lack_keys = child->refused = true;
    // A refused node may still hold entries.
    if (node->kind == Tree::Kind::kRefused) child->tree = node;
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
  auto child = MakeChild(PathOf(key), key, entry == nullptr ? nullptr : &entry->value);
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
      const std::string element = fmt::format("{}[{}]", PathOf(key), children.size());
      children.push_back(MakeChild(element, key, &item));
      children.back()->is_item = true;
    }
  } else if (entry != nullptr && entry->value.kind != Tree::Kind::kNull &&
             entry->value.kind != Tree::Kind::kRefused) {
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

// The hint also considers other tools' names, and keys of the sections one level below.
std::string SectionNode::HintFor(const std::string& key,
                                 const std::vector<std::string>& allowed) const {
  if (const std::string why = explain ? explain(key) : ""; !why.empty()) {
    return why + "; allowed: " + Join(allowed);
  }
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
  return DidYouMean(meant) + "allowed: " + Join(allowed);
}

// True if the section `key` is absent and an unknown key probably stands for it: then its missing keys are not reported
// beside that one.
bool SectionNode::IsMisspelt(const std::string& key) const {
  if (tree == nullptr || Find(key) != nullptr) return false;
  return std::ranges::any_of(
      Unknown(), [&](const Tree::Entry* unknown) { return KeyMeantBy(*unknown) == key; });
}

// Removes the key that was probably meant from `missing`.
void SectionNode::NoteUnknown(const Tree::Entry& entry,
                              std::vector<const Declaration*>& missing) const {
  const std::string where = Title().empty() ? "" : " in " + Title();
  const std::string meant = KeyMeantBy(entry);
  const size_t others =
      std::erase_if(missing, [&](const Declaration* key) { return LastPart(key->path) == meant; });
  const bool unclear = KeysAreUnclear();
  if (others > 0 || (unclear && (meant == "name" || meant == "type"))) {
    diagnostics->Note(entry.place, "unknown key '" + entry.key + "'" + where,
                      "did you mean '" + meant + "'?");
  } else if (!unclear) {
    std::vector<std::string> allowed = Allowed();
    std::ranges::sort(allowed);
    diagnostics->Note(entry.place, "unknown key '" + entry.key + "'" + where,
                      HintFor(entry.key, allowed));
  }
}

void SectionNode::NoteUnknownKeys() const {
  for (const Item& item : items) {
    if (const auto* child = std::get_if<std::shared_ptr<SectionNode>>(&item.what)) {
      if (!IsMisspelt(item.key)) (*child)->NoteUnknownKeys();
    } else if (const auto* list = std::get_if<SectionList>(&item.what)) {
      for (const auto& element : *list) element->NoteUnknownKeys();
    }
  }
  std::vector<const Declaration*> missing = Missing();
  for (const Tree::Entry* unknown : Unknown()) NoteUnknown(*unknown, missing);
  for (const Declaration* key : missing) {
    diagnostics->Note(place, "the key " + key->path + " is missing", key->help);
  }
}

}  // namespace dtrain::config
