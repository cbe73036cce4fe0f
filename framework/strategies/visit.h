// Helpers for the state of actors: two more kinds of fields for Visit (lists of a fixed length, and
// whole messages), and text for Describe().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/strategies/message.h"

namespace dtrain {

// Visits one number for each worker or server.  Throws CheckpointError if the loaded state has
// another number of values.
void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<int64_t>& values);
void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<double>& values);

// Visits a message as the list of its words.
template <class M>
void VisitMessage(StateVisitor& visitor, std::string_view name, M& fields) {
  Message message = Pack(fields);
  VisitFixed(visitor, name, message.words);
  fields = Unpack<M>(message);
}

// Describes the set of workers or servers i with member[i] != 0: "{0, 1}".  Of a large set it shows
// the first eight and the size: "{0, 1, 2, 3, 4, 5, 6, 7, ...} (2047)".
std::string DescribeMembers(const std::vector<int64_t>& member);

}  // namespace dtrain
