// Makes a Tree from yaml-cpp's events: its Node silently keeps the first of two equal keys.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "framework/config/tree.h"
#include "framework/core/utf8.h"

namespace dtrain::config {
namespace {

constexpr int64_t kColumnsPerLine = 1 << 20;

// Limits far above any hand-written config; larger texts could take minutes, or overflow the stack.
constexpr size_t kMaxNesting = 64;
constexpr size_t kMaxKeys = 10'000;  // of one mapping

// Thrown to stop parsing at a limit.
struct TooMuch {
  Place place;
  std::string what;
};

// Builds the tree of one document.  Open lists and mappings are on a stack; a finished node is added to the enclosing
// one.  In a mapping, the first of two nodes is the key.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const PlaceOf& place_of, Diagnostics& diagnostics)
      : place_of_(place_of), diagnostics_(diagnostics) {}

  Tree TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish(Start(Tree::Kind::kNull, mark, "", anchor));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Tree alias = Start(Tree::Kind::kRefused, mark, "", YAML::NullAnchor);
    diagnostics_.Note(alias.place, "anchors and aliases are not read", "write the value out");
    Finish(std::move(alias));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Tree scalar = Start(Tree::Kind::kScalar, mark, tag, anchor);
    scalar.text = value;
    if (FindInvalidUtf8(value) || value.find('\0') != std::string::npos) {
      diagnostics_.Note(scalar.place,
                        "this is no text in UTF-8: it has an invalid byte or a zero byte",
                        "save the file in UTF-8");
      scalar.kind = Tree::Kind::kRefused;
    }
    scalar.quoted = tag == "!";  // yaml-cpp's mark of a quoted scalar
    Finish(std::move(scalar));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(Start(Tree::Kind::kList, mark, tag, anchor));
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(Start(Tree::Kind::kMap, mark, tag, anchor));
  }

  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Open {
    Tree tree;
    std::optional<Tree> key;  // a mapping's key, until its value follows
  };

  Tree Start(Tree::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    Tree tree;
    tree.kind = kind;
    tree.place = place_of_(mark.line + 1, mark.column + 1);
    if (anchor != YAML::NullAnchor) {
      diagnostics_.Note(tree.place, "anchors and aliases are not read", "write the value out");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      diagnostics_.Note(tree.place, "the tag " + tag + " is not read", "leave it out");
    }
    return tree;
  }

  void Begin(Tree tree) {
    if (open_.size() == kMaxNesting) {
      throw TooMuch{tree.place, fmt::format("lists and sections are nested more than {} deep here",
                                            kMaxNesting)};
    }
    open_.push_back({std::move(tree), std::nullopt});
  }

  void Close() {
    Tree tree = std::move(open_.back().tree);
    open_.pop_back();
    Finish(std::move(tree));
  }

  void Finish(Tree tree) {
    if (open_.empty()) {
      root_ = std::move(tree);
      return;
    }
    Open& around = open_.back();
    if (around.tree.kind == Tree::Kind::kList) {
      around.tree.items.push_back(std::move(tree));
    } else if (!around.key) {
      around.key = std::move(tree);
    } else {
      AddEntry(around.tree, *around.key, std::move(tree));
      around.key.reset();
    }
  }

  void AddEntry(Tree& map, const Tree& key, Tree value) {
    // The parser reports the next line.
    if (value.kind == Tree::Kind::kNull) value.place = key.place;
    const size_t before = map.entries.size();
    AddChecked(map, key, std::move(value));
    map.flawed |= map.entries.size() == before;
  }

  // Adds an entry or reports why it cannot.
  void AddChecked(Tree& map, const Tree& key, Tree value) {
    if (key.kind == Tree::Kind::kRefused) return;
    if (key.kind != Tree::Kind::kScalar) {
      diagnostics_.Note(key.place, "a key must be a word");
    } else if (key.text == "<<" && !key.quoted) {
      diagnostics_.Note(key.place, "merge keys (<<) are not part of YAML 1.2",
                        "write the keys out");
    } else if (const Tree::Entry* first = map.Find(key.text)) {
      diagnostics_.Note(key.place, fmt::format("repeated key '{}'", key.text),
                        "first given at " + first->place.text);
    } else if (map.entries.size() == kMaxKeys) {
      throw TooMuch{key.place, fmt::format("there are more than {} keys", kMaxKeys)};
    } else {
      map.entries.push_back({key.text, key.place, std::move(value)});
    }
  }

  const PlaceOf& place_of_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  Tree root_;
};

void RefuseSecondDocument(YAML::Parser& parser, const PlaceOf& place_of, Diagnostics& diagnostics) {
  Diagnostics unheard;
  TreeBuilder second(place_of, unheard);
  if (!parser.HandleNextDocument(second)) return;
  diagnostics.Note(second.TakeRoot().place, "a second YAML document begins here",
                   "one file holds one document: remove the line '---' before it");
}

// Returns the numbers, from 1, of the lines whose indentation has a tab.  Before a comment it may have one.
std::vector<int> TabbedLines(const std::string& text) {
  std::vector<int> lines;
  std::istringstream in(text);
  int number = 1;
  for (std::string line; std::getline(in, line); ++number) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string::npos && line[begin] == '#') continue;
    const std::string indentation = line.substr(0, begin);
    if (indentation.find('\t') != std::string::npos) lines.push_back(number);
  }
  return lines;
}

// Reports a syntax error.  YAML allows no tab in an indentation; the parser says so in some places only.
void NoteSyntaxError(const YAML::Exception& error, const std::string& text, const PlaceOf& place_of,
                     Diagnostics& diagnostics) {
  const int line = error.mark.line + 1;
  // Within brackets tabs are allowed: "end of map flow not found" has another cause.
  const bool in_brackets = error.msg.find("flow") != std::string::npos;
  const std::vector<int> tabbed = in_brackets ? std::vector<int>() : TabbedLines(text);
  const bool at_a_tab = std::ranges::find(tabbed, line) != tabbed.end();
  // The mark of "end of map not found" is where the map begins or the text ends.
  const bool somewhere = !tabbed.empty() && error.msg.find("not found") != std::string::npos;
  if (at_a_tab || somewhere) {
    diagnostics.Note(place_of(at_a_tab ? line : tabbed.front(), 1),
                     "not valid YAML: this line is indented with a tab", "indent it with spaces");
  } else {
    diagnostics.Note(place_of(line, error.mark.column + 1), "not valid YAML: " + error.msg);
  }
}

}  // namespace

PlaceOf PlacesIn(const std::string& file_name) {
  return [file_name](int line, int column) {
    return Place{fmt::format("{}:{}:{}", file_name, line, column), line,
                 line * kColumnsPerLine + column};
  };
}

std::optional<Tree> ParseYaml(const std::string& text, const PlaceOf& place_of,
                              Diagnostics& diagnostics) {
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    TreeBuilder builder(place_of, diagnostics);
    Tree root;
    root.place = place_of(1, 1);
    if (parser.HandleNextDocument(builder)) root = builder.TakeRoot();
    RefuseSecondDocument(parser, place_of, diagnostics);
    return root;
  } catch (const TooMuch& much) {
    diagnostics.Note(much.place, much.what);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    NoteSyntaxError(error, text, place_of, diagnostics);
    return std::nullopt;
  }
}

}  // namespace dtrain::config
