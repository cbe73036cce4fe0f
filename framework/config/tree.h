// What a YAML text says, before anything is known of its meaning: scalars, lists and mappings, each
// with the place it was written at.  Own types instead of YAML::Node, which forgets repeated keys
// and the places of keys.
//
// A text becomes a Tree (parse.cc), which files of one section and --set arguments change
// (override.cc) before anybody reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::config {

// A position in a file, or an argument of the command line.
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
  bool flawed = false;         // kMap: something in it was reported and is not here
  std::string argument;        // of a block, by which the value came here: messages name it
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

// All mistakes of a document, collected while it is read and told together: each once, and none that
// follows from another one.
//
//   run.yaml:14:3: unknown key 'stalness' in strategy 'ps_ssp'
//       did you mean 'staleness'?  allowed: name, servers, staleness
//   run.yaml:15:9: seed must be an integer, found 'one'
//   2 errors; nothing was started
class Diagnostics {
 public:
  // The same mistake at the same place counts once (a key may be read twice).  Where `stands` is
  // given it is asked when mistakes are told: the message judges values that may not be as meant.
  void Note(const Place& place, const std::string& message, const std::string& hint = "",
            const std::function<bool()>& stands = {});

  // The same mistake at several places, as of a name that nothing is called: told at the first one,
  // with the lines of the others.  `subject` says which mistakes are the same.
  void NoteOnce(const std::string& subject, const Place& place, const std::string& message,
                const std::string& hint);

  bool Noted(const Place& place) const;  // something, there

  // Ignores every later Note: what follows from a syntax error is not worth reading.
  void Silence() { silent_ = true; }

  bool empty() const { return Lines().empty(); }
  std::vector<std::string> Lines() const;  // by place; each with its hint on a second line
  std::string Report() const;              // the first 30 of Lines, and their number

 private:
  struct Mistake {
    int64_t order;
    std::string message;  // with its place
    std::string hint;
    std::function<bool()> stands;  // none: it does
    std::string subject;           // of NoteOnce
    std::vector<Place> elsewhere;  // where it is as well

    std::string Text() const;
  };
  std::vector<Mistake> mistakes_;
  bool silent_ = false;
};

// Turns a position of the parser (both from 1) into a Place.
using PlaceOf = std::function<Place(int line, int column)>;

// The places of a file: "name:line:column".
PlaceOf PlacesIn(const std::string& file_name);

// YAML text -> Tree; nullopt when it is not YAML at all (noted).  Refused with a message: repeated
// and non-scalar keys, merge keys (<<), anchors, aliases, tags, bytes that are no UTF-8, and a second document;
// more than 10,000 keys in a section, and more than 64 sections in each other, also end the reading.
std::optional<Tree> ParseYaml(const std::string& text, const PlaceOf& place_of,
                              Diagnostics& diagnostics);

// Lays `text`, which is the file `file_name` and may hold nothing but `section`, over `root`:
// mappings key by key, everything else as a whole.  Mistakes of the file are noted.  For --cluster
// NAME.
void LayOver(const std::string& text, const std::string& file_name, const std::string& section,
             Tree& root, Diagnostics& diagnostics);

// Overrides keys of `root` by the `arguments` of --set k.ey=value.  Values are YAML ("0.1",
// "[1, 2]", "{name: sgd}"); nothing after the '=' is the empty string.  Sections that are missing
// are made; a scalar X where a section is needed becomes {name: X}.  X.name=... first empties
// section X, and comes before every other X.* whatever their order; of two equal keys the later one
// counts.  One that is in `options` was given as what is there.
void ApplyOverrides(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& options, Tree& root,
                    Diagnostics& diagnostics);

// Every value beneath `tree` by its path: "solver.schedule.name", "layers[2].type".  A list of scalars is one value,
// "[1, 2]".
struct PathValue {
  std::string path;
  std::string text;
  bool quoted = false;  // as Tree::quoted
};
std::vector<PathValue> ValuesByPath(const Tree& tree);

// {name: X} for the scalar X; any other node as it is.
Tree NamedSection(const Tree& node);

}  // namespace dtrain::config
