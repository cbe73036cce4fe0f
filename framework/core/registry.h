// A registry of named things (layers, data sets, strategies, ...), filled before main by
// self-registration: name in the config, class in the code, one folder.
//
//   using LayerRegistry = Registry<LayerEntry>;
//   static const bool registered = LayerRegistry::Add("relu", LayerEntry{...});
//
// Each kind has a one-line macro to register its members: DTRAIN_LAYER, DTRAIN_SOLVER, ... A name that two source files
// register stops the program at its start, naming both.  Looking up an unknown name throws UsageError listing the known
// ones with the nearest first.  Iteration is in name order.  Static libraries would drop objects that nothing
// references, so CMake links these as OBJECT libraries.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {

// No caller could catch an exception before main.
[[noreturn]] inline void StopForTwoOfOneName(const std::string& name, const char* first,
                                             const char* second) {
  std::fprintf(stderr, "'%s' is registered twice: in %s and in %s\n", name.c_str(), first, second);
  std::abort();
}

template <class Entry>
class Registry {
 public:
  static bool Add(const std::string& name, Entry entry,
                  std::source_location where = std::source_location::current()) {
    const auto [file, added] = Files().emplace(name, where.file_name());
    if (!added) StopForTwoOfOneName(name, file->second, where.file_name());
    return Entries().emplace(name, std::move(entry)).second;
  }

  static const Entry* Find(const std::string& name) {
    const auto it = Entries().find(name);
    return it == Entries().end() ? nullptr : &it->second;
  }

  // `kind` is the noun of the message: unknown layer 'rellu'.
  static const Entry& Get(const std::string& kind, const std::string& name) {
    if (const Entry* entry = Find(name)) return *entry;
    throw UsageError("unknown " + kind + " '" + name + "'", SuggestName(name, Names()));
  }

  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, entry] : Entries()) names.push_back(name);
    return names;
  }

  static const std::map<std::string, Entry>& All() { return Entries(); }

  // Returns the source file that registers a known name.
  static std::string FileOf(const std::string& name) { return Files().at(name); }

 private:
  static std::map<std::string, Entry>& Entries() {
    static std::map<std::string, Entry> entries;
    return entries;
  }
  static std::map<std::string, const char*>& Files() {  // the source file of each name
    static std::map<std::string, const char*> files;
    return files;
  }
};

}  // namespace dtrain
