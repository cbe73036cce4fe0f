// Reader: one declaration per key gives parsing, default, range, help and the effective dump.
//
//   struct SgdConfig { double momentum; bool nesterov; };
//   c.momentum = r.Number("momentum", 0.9).Min(0).Below(1).Help("velocity kept from step to step");
//   c.nesterov = r.Bool("nesterov", false).Help("look ahead along the velocity");
//
// A Reader stands on one mapping of the document (or on nothing, when the section is absent or when
// only the declarations are wanted).  Reading a key that is absent gives its default; a wrong type
// or range is noted in the document's diagnostics, never thrown, and the default is returned, so
// that all mistakes are found at once.  After everything is read, Document::Finish() reports
// unknown keys and throws ConfigError with every mistake, each with file:line:column, the nearest
// right key and the allowed ones.  Sections and keys appear in the effective dump in the order they
// were declared.
//
// yaml-cpp stays out of this header.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::config {

class Diagnostics;   // all mistakes of a document (tree.h)
struct Declaration;  // what is known of one key (schema.h)
struct SectionNode;  // what is known of one mapping (schema.h)
struct Tree;         // what the text says (tree.h)

// A key being declared; converts to its value.  T: bool, int64_t, double, std::string, or
// std::vector of the last three.
template <class T>
class Field {
 public:
  Field& Min(double bound);                      // value >= bound (each element of a list)
  Field& Max(double bound);                      // value <= bound
  Field& Above(double bound);                    // value > bound
  Field& Below(double bound);                    // value < bound
  Field& OneOf(std::vector<std::string> names);  // strings: one of these
  Field& Auto();                                 // integers: the word auto stands for 0
  Field& NumbersToo();  // strings: a plain number is the text that it was written as
  Field& Help(const std::string& text);
  Field& Required();  // absence is a mistake

  operator T();  // checks, notes mistakes, records, answers

 private:
  friend class Reader;
  Field(std::shared_ptr<Declaration> declaration, Diagnostics& diagnostics)
      : declaration_(std::move(declaration)), diagnostics_(diagnostics) {}
  std::shared_ptr<Declaration> declaration_;
  Diagnostics& diagnostics_;
};

// A key that a message goes by: of the reader's own section, or with its section (Reader::At).
struct KeyRef {
  std::shared_ptr<SectionNode> section;  // none: the reader's own
  std::string key;                       // "": the whole section
  KeyRef(const char* own_key) : key(own_key) {}
  KeyRef(std::string own_key) : key(std::move(own_key)) {}
  KeyRef(std::shared_ptr<SectionNode> of, std::string its_key)
      : section(std::move(of)), key(std::move(its_key)) {}
};

// Valid as long as its Document.
class Reader {
 public:
  Field<int64_t> Int(const std::string& key, int64_t default_value);
  Field<double> Number(const std::string& key, double default_value);
  Field<bool> Bool(const std::string& key, bool default_value);
  Field<std::string> String(const std::string& key, const std::string& default_value);
  // Lists; a single integer or string is read as a list of one.
  Field<std::vector<int64_t>> Ints(const std::string& key, std::vector<int64_t> default_value);
  Field<std::vector<double>> Numbers(const std::string& key, std::vector<double> default_value);
  Field<std::vector<std::string>> Strings(const std::string& key,
                                          std::vector<std::string> default_value);

  // A nested mapping; absent is like empty.  A scalar X where a section is wanted means {name: X}.
  Reader Section(const std::string& key, const std::string& help = "");

  // A nested list of mappings.
  std::vector<Reader> List(const std::string& key, const std::string& help = "");

  bool Has(const std::string& key) const;                // present in the document
  std::string Where(const std::string& key = "") const;  // "file:line:column" of key or mapping
  std::string Line(const std::string& key) const;  // short: "line 3", "--set batch=4", "by default"
  std::string path() const;                        // "solver.schedule"; "" at the top

  // Whether the section says what its reader has got of it: no mistake in it or below, no key that
  // nobody reads.  Asked once all its keys are read.  What is made of a section that is not sound
  // need not be judged: it is not what was meant.
  bool sound() const;

  // A mistake the field rules cannot express, placed at `key` (or at the mapping when key is "").
  // It is not told where the value of `key`, or of a key in `by`, is not the user's: because it was
  // refused, or because a key that nobody knows may be it.  `by` lists every other key that the
  // message goes by, given or not, so that no mistake is told that follows from another one.
  void Mistake(const std::string& key, const std::string& message, const std::string& hint = "",
               const std::vector<KeyRef>& by = {});
  KeyRef At(const std::string& key = "") const { return {section_, key}; }

  // A mistake of item `index` of the list `key`.  Where other places have it, too (the same
  // `subject`), it is told once, with their lines.
  void MistakeOnce(const std::string& subject, const std::string& key, size_t index,
                   const std::string& message, const std::string& hint);

 private:
  friend class Document;
  explicit Reader(std::shared_ptr<SectionNode> section) : section_(std::move(section)) {}
  template <class T>
  Field<T> Declare(const std::string& key, T default_value);
  std::shared_ptr<SectionNode> section_;
};

// `text` as one YAML string, quoted where it must be: for overrides made of a path or the like.
std::string QuoteYaml(const std::string& text);

// One row of the help table.
struct KeyHelp {
  std::string path;  // "solver.momentum"
  std::string type;  // "number"
  std::string default_value;
  std::string range;  // ">= 0, < 1"
  std::string help;
};

// How overrides were given that are no --set: {"cluster.workers=2", "--workers 2"}.
using Options = std::map<std::string, std::string>;

// A file that holds one section and nothing else.
struct Overlay {
  std::string file;  // "": none
  std::string section;
};

// The text of a config or model file (ReadText in core/file.h); throws ConfigError.
std::string ReadConfigText(const std::string& file);

class Document {
 public:
  // Parses `file` and lays `overrides` ("k.ey=value", the --set arguments) over it.  An override
  // X.name=... replaces section X (all its other keys from the file are dropped) before the other
  // overrides of X apply, whatever their order.  YAML syntax errors, repeated keys and malformed
  // overrides are noted for Finish; an unreadable file throws ConfigError.
  // Between the two lie `overlay`'s keys, which count instead of the file's.  Messages name an
  // override that is in `options` by what is there.
  static Document FromFile(const std::string& file, const std::vector<std::string>& overrides = {},
                           const Overlay& overlay = {}, const Options& options = {});
  static Document FromText(const std::string& text, const std::string& file_name,
                           const std::vector<std::string>& overrides = {},
                           const Overlay& overlay = {}, const Options& options = {});
  // No document at all: every key reads as its default.  For help tables.
  static Document Empty();

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  // Lets `rewrite` change what the text says (the blocks of a model) and note mistakes, before
  // anything is read of it.  Not called for a document that is no mapping.
  void Rewrite(const std::function<void(Tree& root, Diagnostics& diagnostics)>& rewrite);

  Reader root();
  const std::string& file_name() const;  // as given; "" for Empty

  // Notes unknown keys of every mapping that was read (unless its `name` or `type`, which decide
  // what keys there are, is itself a mistake), then throws ConfigError with all mistakes (sorted by
  // position, with their number and "nothing was started") if there are any.
  void Finish();
  // The mistakes so far without throwing, unknown keys not included.
  std::vector<std::string> mistakes() const;

  // Every declared key with the value in force, but for the one with the path `without`.
  std::string EffectiveYaml(const std::string& without = "") const;
  std::string EffectiveJson() const;
  std::vector<KeyHelp> Keys() const;  // every declared key

 private:
  struct Impl;
  explicit Document(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain::config
