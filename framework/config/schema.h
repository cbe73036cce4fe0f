// Holds the declared sections and keys of a document, in the order of declaration, with the values in force.  It
// implements reader.h; the dump (dump.cc) and the search for unknown keys walk it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "framework/config/reader.h"
#include "framework/config/tree.h"

namespace dtrain::config {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                           std::vector<double>, std::vector<std::string>>;

struct Limit {
  enum Kind { kMin, kMax, kAbove, kBelow } kind;
  double bound;
  bool Allows(double value) const;
  std::string Text() const;  // ">= 0"
};

// Limits are the values that a key may have.
struct Limits {
  std::vector<Limit> bounds;
  std::vector<std::string> names;  // any, when empty
  struct OtherKey {
    std::string key;
    std::vector<std::string> names;
  };
  std::vector<OtherKey> others;  // keys for which the user may have meant a refused name
  std::string Text() const;      // ">= 0 and < 1", "one of cpu, cuda"
};

struct SectionNode;

struct Declaration {
  std::string path;  // "solver.momentum"
  Value default_value;
  Value value;
  Limits limits;
  bool required = false;
  bool may_be_auto = false;    // an integer: the word auto means 0
  bool may_be_number = false;  // a string or a list of them: an unquoted number is its text
  // The given value is wrong, or a required one missing: the default is in force.
  bool replaced = false;
  // `replaced`, or a reader reported an error of the value.
  bool has_error = false;
  bool missing = false;  // required but absent; reported with the unknown keys
  std::string help;
  const SectionNode* section = nullptr;  // the section of this key
  const Tree* given = nullptr;           // the given value; nullptr if absent

  // Returns the given value if it is right, else reports errors and returns the default.
  const Value& Evaluate(Diagnostics& diagnostics);
};

struct SectionNode {
  using SectionList = std::vector<std::shared_ptr<SectionNode>>;
  struct Item {
    std::string key;
    std::variant<std::shared_ptr<Declaration>, std::shared_ptr<SectionNode>, SectionList> what;
  };

  Diagnostics* diagnostics = nullptr;
  std::string path;  // "solver.schedule"; "" at the top
  std::string help;
  Place place;                          // of the mapping, or of the nearest enclosing one
  const Tree* tree = nullptr;           // the mapping; nullptr when absent
  const SectionNode* around = nullptr;  // the enclosing section
  std::string own_key;                  // its key in `around`
  bool is_item = false;                 // an item of a list
  bool refused = false;                 // the document has something else in its place
  bool has_error = false;           // a reader reported an error of it, or of several of its keys
  bool may_lack_keys = false;       // missing required keys are not reported
  std::unique_ptr<Tree> shorthand;  // owns `tree` if it was made from a scalar
  std::function<std::string(const std::string&)> explain;  // Reader::ExplainUnknown
  std::vector<Item> items;

  const Tree::Entry* Find(const std::string& key) const;
  Item* FindItem(const std::string& key);
  Place PlaceOf(const std::string& key) const;  // of the key, else of the mapping
  std::string PathOf(const std::string& key) const;
  std::string Title() const;  // "solver 'sgd'", "solver.schedule"; "" at the top

  void Declare(std::shared_ptr<Declaration> declaration, const std::string& key);
  std::shared_ptr<SectionNode> Child(const std::string& key);
  const SectionList& Children(const std::string& key);
  void AddError(const std::string& key, const std::string& message, const std::string& hint,
                const std::vector<KeyRef>& by);
  void AddErrorOnce(const std::string& subject, const std::string& key, size_t index,
                    const std::string& message, const std::string& hint);
  bool Sound() const;  // Reader::sound
  // True if the value in force of a declared key, given or not, is what the user meant: neither refused nor possibly
  // misspelt.
  bool IsAsMeant(const std::string& key) const;
  // Reports unknown keys and missing required ones, in this section and all below: a misspelt required key is reported
  // once.
  void NoteUnknownKeys() const;

 private:
  Declaration* FindKey(const std::string& key) const;
  bool KeysAreUnclear() const;
  std::vector<const Declaration*> Missing() const;
  std::vector<std::string> Allowed() const;
  std::vector<const Tree::Entry*> Unknown() const;
  std::string KeyMeantBy(const Tree::Entry& unknown) const;
  bool IsMisspelt(const std::string& key) const;
  void NoteUnknown(const Tree::Entry& entry, std::vector<const Declaration*>& missing) const;
  std::string HintFor(const std::string& key, const std::vector<std::string>& allowed) const;
  std::shared_ptr<SectionNode> MakeChild(const std::string& child_path,
                                         const std::string& child_key, const Tree* node) const;
};

// Returns every declared key in block style, one line per key; parsing it gives the same values (numbers round-trip).
// The key with the path `without` is left out.
std::string DumpYaml(const SectionNode& root, const std::string& without = "");
std::string DumpJson(const SectionNode& root);  // the same, indented

// Returns the rows of the help table.
struct KeyHelp;  // reader.h
std::vector<KeyHelp> DumpKeys(const SectionNode& root);

}  // namespace dtrain::config
