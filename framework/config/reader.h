// Reader: one declaration per key gives parsing, default, range, help and the effective dump.
//
//   struct SgdConfig { double momentum; bool nesterov; };
//   c.momentum = r.Number("momentum", 0.9).Min(0).Below(1).Help("velocity kept from step to step");
//   c.nesterov = r.Bool("nesterov", false).Help("look ahead along the velocity");
//
// A Reader reads one mapping of the document (or none, if the section is absent or only the declarations are wanted).
// Reading an absent key returns its default.  A wrong type or range is never thrown: it is added to the document's
// diagnostics and the default is returned, so that one run finds all errors.  After everything is read,
// Document::Finish() reports unknown keys and throws ConfigError with every error, each with file:line:column, the
// nearest right key and the allowed ones.  Sections and keys appear in the effective dump in the order they were
// declared.
//
// This header does not include yaml-cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::config {

class Diagnostics;   // all errors of a document (tree.h)
struct Declaration;  // one declared key (schema.h)
struct SectionNode;  // one declared mapping (schema.h)
struct Tree;         // the parsed text (tree.h)

// Declares a key; converts to its value.  T: bool, int64_t, double, std::string, or std::vector of the last three.
template <class T>
class Field {
 public:
  Field& Min(double bound);                      // value >= bound (each element of a list)
  Field& Max(double bound);                      // value <= bound
  Field& Above(double bound);                    // value > bound
  Field& Below(double bound);                    // value < bound
  Field& OneOf(std::vector<std::string> names);  // strings: one of these
  // Strings: the error about one of these names, which belong to another key, says so.
  Field& NotOf(const std::string& key, std::vector<std::string> names);
  Field& Auto();        // integers: the word auto means 0
  Field& NumbersToo();  // strings and lists of them: an unquoted number is its text
  Field& Help(const std::string& text);
  Field& Required();  // absence is an error

  operator T();  // checks the value, adds errors to the diagnostics, returns the value in force

 private:
  friend class Reader;
  Field(std::shared_ptr<Declaration> declaration, Diagnostics& diagnostics)
      : declaration_(std::move(declaration)), diagnostics_(diagnostics) {}
  std::shared_ptr<Declaration> declaration_;
  Diagnostics& diagnostics_;
};

// Names a key that a message is about: of the reader's own section, or with its section (Reader::At).
struct KeyRef {
  std::shared_ptr<SectionNode> section;  // none: the reader's own
  std::string key;                       // "": the whole section
  KeyRef(const char* own_key) : key(own_key) {}
  KeyRef(std::string own_key) : key(std::move(own_key)) {}
  KeyRef(std::shared_ptr<SectionNode> of, std::string its_key)
      : section(std::move(of)), key(std::move(its_key)) {}
};

// Reads one mapping of a Document, and is valid as long as that.
class Reader {
 public:
  Field<int64_t> Int(const std::string& key, int64_t default_value);
  Field<double> Number(const std::string& key, double default_value);
  Field<bool> Bool(const std::string& key, bool default_value);
  Field<std::string> String(const std::string& key, const std::string& default_value);
  // Declare lists; a single integer or string is read as a list of one.
  Field<std::vector<int64_t>> Ints(const std::string& key, std::vector<int64_t> default_value);
  Field<std::vector<double>> Numbers(const std::string& key, std::vector<double> default_value);
  Field<std::vector<std::string>> Strings(const std::string& key,
                                          std::vector<std::string> default_value);

  // Returns a nested mapping; an absent one is like an empty one.  A scalar X in its place means {name: X}.
  Reader Section(const std::string& key, const std::string& help = "");

  // Returns the items of a nested list of mappings.
  std::vector<Reader> List(const std::string& key, const std::string& help = "");

  // Lets `explain` return the hint of the error about an unknown key of this section: "only ps_ssp has it".  If it
  // returns "", the hint names the allowed keys.
  void ExplainUnknown(std::function<std::string(const std::string& key)> explain);

  bool Has(const std::string& key) const;                // present in the document
  std::string Where(const std::string& key = "") const;  // "file:line:column" of key or mapping
  std::string Line(const std::string& key) const;  // short: "line 3", "--set batch=4", "by default"
  std::string path() const;                        // "solver.schedule"; "" at the top

  // True if the section has no errors: neither it nor any section below it was refused or has a wrong value or an
  // unknown key.  Call it after all its keys were read.  Checks that involve several sections skip those that are not
  // sound, whose values are not the user's.
  bool sound() const;

  // Reports an error that the fields' rules cannot express, placed at `key` (at the mapping if `key` is "").  `by` must
  // list every other key that the message depends on, given or not.  The error is suppressed if the value in force of
  // `key` or of a key in `by` is not the user's, because the given value was refused or an unknown key may be a
  // misspelling of it, so that no error is reported that only follows from another.
  void AddError(const std::string& key, const std::string& message, const std::string& hint = "",
                const std::vector<KeyRef>& by = {});
  KeyRef At(const std::string& key = "") const { return {section_, key}; }

  // Reports an error of item `index` of the list `key`.  Errors with the same `subject` at several places are reported
  // once, with all their lines.
  void AddErrorOnce(const std::string& subject, const std::string& key, size_t index,
                    const std::string& message, const std::string& hint);

 private:
  friend class Document;
  explicit Reader(std::shared_ptr<SectionNode> section) : section_(std::move(section)) {}
  template <class T>
  Field<T> Declare(const std::string& key, T default_value);
  std::shared_ptr<SectionNode> section_;
};

// Returns `text` as one YAML string, quoted if necessary, for overrides built from a path or the like.
std::string QuoteYaml(const std::string& text);

// Holds one row of the help table.
struct KeyHelp {
  std::string path;  // "solver.momentum"
  std::string type;  // "number"
  std::string default_value;
  std::string range;  // ">= 0, < 1"
  std::string help;
};

// Maps overrides that are no --set to the options that they came from: {"cluster.workers=2", "--workers 2"}.
using Options = std::map<std::string, std::string>;

// Names a file that holds one section and nothing else.
struct Overlay {
  std::string file;  // "": none
  std::string section;
};

// Returns the text of a config or model file (ReadText in core/file.h); throws ConfigError if it cannot be read.
std::string ReadConfigText(const std::string& file);

class Document {
 public:
  // Parses `file` and applies `overrides` ("k.ey=value", the --set arguments) to it.  An override X.name=... replaces
  // section X (all its other keys from the file are dropped) before the other overrides of X apply, whatever their
  // order.  YAML syntax errors, repeated keys and malformed overrides are reported by Finish; an unreadable file throws
  // ConfigError.  The keys of `overlay` replace those of `file` before the overrides do.  Messages name an override
  // that is in `options` by its option.
  static Document FromFile(const std::string& file, const std::vector<std::string>& overrides = {},
                           const Overlay& overlay = {}, const Options& options = {});
  static Document FromText(const std::string& text, const std::string& file_name,
                           const std::vector<std::string>& overrides = {},
                           const Overlay& overlay = {}, const Options& options = {});
  // Returns a document without text: every key has its default.  For help tables.
  static Document Empty();

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  // Lets `rewrite` change the tree (expand the blocks of a model) and report errors, before any Reader is made.
  // `rewrite` is not called for a document that is no mapping.
  void Rewrite(const std::function<void(Tree& root, Diagnostics& diagnostics)>& rewrite);

  Reader root();
  const std::string& file_name() const;  // as given; "" for Empty

  // Reports unknown keys of every mapping that was read (unless the mapping's `name` or `type`, which decides the
  // allowed keys, is itself wrong), then throws ConfigError with all errors if there are any (sorted by position, with
  // their number and "nothing was started").
  void Finish();
  // Returns the errors so far, without those of unknown keys.
  std::vector<std::string> errors() const;

  // Returns every declared key with the value in force, except the one with the path `without`.
  std::string EffectiveYaml(const std::string& without = "") const;
  std::string EffectiveJson() const;
  std::vector<KeyHelp> Keys() const;  // every declared key

 private:
  struct Impl;
  explicit Document(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain::config
