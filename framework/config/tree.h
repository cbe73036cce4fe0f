// The content of a YAML text, without its meaning: scalars, lists and mappings, each with its position in the text.
// YAML::Node would not do: it loses repeated keys and the positions of keys.
//
// parse.cc makes the Tree of a text; override.cc then applies files of one section and --set arguments to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::config {

// Describes a position in a file, or an argument of the command line.
struct Place {
  std::string text;   // "run.yaml:3:8" or "--set solver.lr=1"
  int line = 0;       // 0: not in a file
  int64_t order = 0;  // places sort by this: the file by line and column, then the overrides
};

struct Tree {
  enum class Kind { kNull, kScalar, kList, kMap, kRefused };  // kRefused: an error was reported
  struct Entry;

  Kind kind = Kind::kNull;
  Place place;
  std::string text;         // kScalar
  bool quoted = false;      // kScalar: in quotes, so always a string
  bool flawed = false;      // kMap: an entry with an error was left out
  std::string argument;     // the argument of a model's block that gave the value; messages name it
  std::vector<Tree> items;  // kList
  std::vector<Entry> entries;  // kMap, in the text's order; no key twice

  const Entry* Find(const std::string& key) const;  // nullptr when absent or not a mapping
  Entry* Find(const std::string& key);
};

struct Tree::Entry {
  std::string key;
  Place place;  // of the key
  Tree value;
};

// Collects all errors of a document while it is read, and reports them together: each once, and none that only follows
// from another.
//
//   run.yaml:14:3: unknown key 'stalness' in strategy 'ps_ssp'
//       did you mean 'staleness'?  allowed: name, servers, staleness
//   run.yaml:15:9: seed must be an integer, found 'one'
//   2 errors; nothing was started
class Diagnostics {
 public:
  // Adds an error; the same error at the same place counts once (a key may be read twice).  If `stands` is given, the
  // error is reported only if stands() is true at the time of the report: an error about values that are not the user's
  // is dropped.
  void Note(const Place& place, const std::string& message, const std::string& hint = "",
            const std::function<bool()>& stands = {});

  // Adds an error that may occur at several places, such as a name that does not exist: it is reported at the first
  // one, with the lines of the others.  Errors with equal `subject` are the same.
  void NoteOnce(const std::string& subject, const Place& place, const std::string& message,
                const std::string& hint);

  bool Noted(const Place& place) const;  // true if an error was added for this place

  // Ignores all later errors: those that follow a syntax error would be useless.
  void Silence() { silent_ = true; }

  bool empty() const { return Lines().empty(); }
  std::vector<std::string> Lines() const;  // sorted by place; the hint follows on a second line
  std::string Report() const;              // the first 30 of Lines, and the count

 private:
  struct Entry {
    int64_t order;
    std::string message;  // starts with its place
    std::string hint;
    std::function<bool()> stands;  // empty: always true
    std::string subject;           // of NoteOnce
    std::vector<Place> elsewhere;  // further places of the same error

    std::string Text() const;
  };
  std::vector<Entry> entries_;
  bool silent_ = false;
};

// Converts a position of the parser (line and column counted from 1) to a Place.
using PlaceOf = std::function<Place(int line, int column)>;

// Returns the function for a file: "name:line:column".
PlaceOf PlacesIn(const std::string& file_name);

// Parses YAML; returns nullopt, after reporting an error, if the text is no YAML.  Reports errors for repeated and
// non-scalar keys, merge keys (<<), anchors, aliases, tags, bytes that are no UTF-8, and a second document.  Stops
// reading at more than 10,000 keys in a section or 64 nested sections.
std::optional<Tree> ParseYaml(const std::string& text, const PlaceOf& place_of,
                              Diagnostics& diagnostics);

// Merges `text`, the content of the file `file_name`, into `root`: mappings key by key, everything else as a whole.
// The file may hold `section` and nothing else.  Reports its errors.  For --cluster NAME.
void LayOver(const std::string& text, const std::string& file_name, const std::string& section,
             Tree& root, Diagnostics& diagnostics);

// Overrides keys of `root` by the `arguments` of --set k.ey=value.  Values are YAML ("0.1",
// "[1, 2]", "{name: sgd}"); nothing after the '=' is the empty string.  Missing sections are created; a scalar X in the
// place of a section becomes {name: X}. X.name=... first empties section X, and is applied before every other X.*
// whatever their order; of two equal keys the later one wins.  `options` maps overrides to the options that they came
// from, for messages.
void ApplyOverrides(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& options, Tree& root,
                    Diagnostics& diagnostics);

// A value below `tree` with its path: "solver.schedule.name", "layers[2].type".  A list of scalars is one value, "[1,
// 2]".
struct PathValue {
  std::string path;
  std::string text;
  bool quoted = false;  // as Tree::quoted
};
std::vector<PathValue> ValuesByPath(const Tree& tree);

// Returns {name: X} for the scalar X; any other node unchanged.
Tree NamedSection(const Tree& node);

}  // namespace dtrain::config
