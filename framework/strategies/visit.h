// What actors say of their state: two more kinds of field for Visit - lists whose length the run
// decides, and whole messages - and words for Describe().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/strategies/message.h"

namespace dtrain {

// One number for each worker or server.  Throws CheckpointError when the loaded state has another
// number of them.
void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<int64_t>& values);
void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<double>& values);

// A message, as its words.
template <class M>
void VisitMessage(StateVisitor& visitor, std::string_view name, M& fields) {
  Message message = Pack(fields);
  VisitFixed(visitor, name, message.words);
  fields = Unpack<M>(message);
}

// A set of workers or servers in words: those i with member[i] != 0: "{0, 1}"; of many the first
// few: "{0, 1, 2, 3, 4, 5, 6, 7, ...} (2047)".
std::string DescribeMembers(const std::vector<int64_t>& member);

}  // namespace dtrain
