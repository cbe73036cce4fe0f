// All mistakes of a document, collected while it is read and told together.
//
//   run.yaml:14:3: unknown key 'stalness' in strategy 'ps_ssp'
//       did you mean 'staleness'?  allowed: name, servers, staleness
//   run.yaml:15:9: seed must be an integer, found 'one'
//   2 errors; nothing was started
#pragma once

#include <string>
#include <vector>

#include "framework/config/tree.h"

namespace dtrain::config {

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
