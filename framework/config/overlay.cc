#include "framework/config/overlay.h"

#include <optional>
#include <utility>

#include "framework/config/parse.h"

namespace dtrain::config {
namespace {

constexpr int64_t kAfterTheConfig = int64_t{1} << 59;  // and before the --set arguments

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

}  // namespace dtrain::config
