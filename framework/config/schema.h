// What has been declared of a document so far: sections and keys in the order of their declaration,
// with the values in force.  Behind reader.h; the dump (dump.cc) and the search for unknown keys
// walk it.
#pragma once

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

// The values a key may have.
struct Limits {
  std::vector<Limit> bounds;
  std::vector<std::string> names;  // any, when empty
  std::string Text() const;        // ">= 0 and < 1", "one of cpu, cuda"
};

struct SectionNode;

struct Declaration {
  std::string path;  // "solver.momentum"
  Value default_value;
  Value value;
  Limits limits;
  bool required = false;
  bool may_be_auto = false;    // an integer: the word auto stands for 0
  bool may_be_number = false;  // a string: a plain number is its text
  bool replaced = false;       // what the document says is wrong, or missing: the default counts
  bool mistaken = false;       // that, or a reader does not take the value
  bool missing = false;        // required and not there; told with the unknown keys
  std::string help;
  const SectionNode* section = nullptr;  // the one it is a key of
  const Tree* given = nullptr;           // what the document says; nullptr when absent

  // The given value where it is right, else the default (mistakes are noted).
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
  Place place;                          // of the mapping, or of the nearest one around it
  const Tree* tree = nullptr;           // the mapping; nullptr when absent
  const SectionNode* around = nullptr;  // the section whose key, or item of a list, it is
  std::string own_key;                  // that key
  bool is_item = false;                 // of a list
  bool refused = false;                 // what stands there is no section
  bool mistaken = false;                // a reader does not take it, or some of its keys together
  bool may_lack_keys = false;  // no document, or already reported: required keys are not missed
  std::unique_ptr<Tree> shorthand;  // owns `tree` when it was made from a scalar
  std::vector<Item> items;

  const Tree::Entry* Find(const std::string& key) const;
  Item* FindItem(const std::string& key);
  Place PlaceOf(const std::string& key) const;  // of the key, else of the mapping
  std::string PathOf(const std::string& key) const;
  std::string Title() const;  // "solver 'sgd'", "solver.schedule"; "" at the top

  void Declare(std::shared_ptr<Declaration> declaration, const std::string& key);
  std::shared_ptr<SectionNode> Child(const std::string& key);
  const SectionList& Children(const std::string& key);
  void Mistake(const std::string& key, const std::string& message, const std::string& hint,
               const std::vector<KeyRef>& by);
  void MistakeOnce(const std::string& subject, const std::string& key, size_t index,
                   const std::string& message, const std::string& hint);
  bool Sound() const;  // Reader::sound
  // Whether the value in force of a key that is known here, given or not, is what was meant.
  bool IsAsMeant(const std::string& key) const;
  // Here and in all sections below, with the required keys that are missing: one that is misspelt
  // is one mistake, not two.
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

// Every declared key, in block style with one line a key; read again it gives the same values
// (numbers are printed so that they round-trip).  The key with the path `without` is left out.
std::string DumpYaml(const SectionNode& root, const std::string& without = "");
std::string DumpJson(const SectionNode& root);  // the same, indented

// The help table.
struct KeyHelp;  // reader.h
std::vector<KeyHelp> DumpKeys(const SectionNode& root);

}  // namespace dtrain::config
