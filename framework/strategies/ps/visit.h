// Two more kinds of field for Visit: lists whose length the run decides, and whole messages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/core/state_visitor.h"
#include "framework/strategies/message.h"

namespace dtrain::ps {

// One number for each worker or server.  Throws CheckpointError when the loaded state has another
// number of them.
void VisitFixed(StateVisitor& visitor, std::string_view name, std::vector<int64_t>& values);

// A message, as its words.
template <class M>
void VisitMessage(StateVisitor& visitor, std::string_view name, M& fields) {
  Message message = Pack(fields);
  VisitFixed(visitor, name, message.words);
  fields = Unpack<M>(message);
}

}  // namespace dtrain::ps
