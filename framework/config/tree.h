// What a YAML text says, before anything is known of its meaning: scalars, lists and mappings, each
// with the place it was written at.  Own types instead of YAML::Node, which forgets repeated keys
// and the places of keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::config {

// A position in a file, or a --set argument.
struct Place {
  std::string text;   // "run.yaml:3:8" or "--set solver.lr=1"
  int line = 0;       // 0: not in a file
  int64_t order = 0;  // places sort by this: the file by line and column, then the overrides
};

struct Tree {
  enum class Kind { kNull, kScalar, kList, kMap, kRefused };  // kRefused: reported, read no further
  struct Entry;

  Kind kind = Kind::kNull;
  Place place;
  std::string text;            // kScalar
  bool quoted = false;         // kScalar: written in quotes, so a string whatever it looks like
  std::vector<Tree> items;     // kList
  std::vector<Entry> entries;  // kMap, as written; keys differ

  const Entry* Find(const std::string& key) const;  // nullptr when absent or not a mapping
  Entry* Find(const std::string& key);
};

struct Tree::Entry {
  std::string key;
  Place place;  // of the key
  Tree value;
};

// All mistakes of a document, collected while it is read and told together.
//
//   run.yaml:14:3: unknown key 'stalness' in strategy 'ps_ssp'
//       did you mean 'staleness'?  allowed: name, servers, staleness
//   run.yaml:15:9: seed must be an integer, found 'one'
//   2 errors; nothing was started
class Diagnostics {
 public:
  // The same mistake at the same place counts once (a key may be read twice).
  void Note(const Place& place, const std::string& message, const std::string& hint = "");

  // Ignores every later Note: what follows from a syntax error is not worth reading.
  void Silence() { silent_ = true; }

  bool empty() const { return mistakes_.empty(); }
  std::vector<std::string> Lines() const;  // by place; each with its hint on a second line
  std::string Report() const;              // Lines and their number

 private:
  struct Mistake {
    int64_t order;
    std::string text;
  };
  std::vector<Mistake> mistakes_;
  bool silent_ = false;
};

}  // namespace dtrain::config
