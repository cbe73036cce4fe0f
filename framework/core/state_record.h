// StateRecord: what a StateVisitor has walked, field by field, with names: for files whose parts are
// to be told apart, compared and looked for.  (StateSaver makes bytes of the same, for hashes.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/state_visitor.h"

namespace dtrain {

struct StateField {
  enum class Kind { kInt, kInts, kFloats };
  std::string owner;  // an actor, "worker 3"; "" before the first one
  std::string name;
  Kind kind = Kind::kInt;
  std::vector<int64_t> ints;  // one of kInt
  std::vector<float> floats;
  friend bool operator==(const StateField&, const StateField&) = default;
};

struct StateRecord {
  std::vector<StateField> fields;  // in the order of the walk
  bool empty() const { return fields.empty(); }
  // The first of this owner and name; null when there is none.
  const StateField* Find(std::string_view owner, std::string_view name) const;
  friend bool operator==(const StateRecord&, const StateRecord&) = default;
};

// Writes down what it visits.
class StateRecorder : public StateVisitor {
 public:
  void Owner(std::string_view owner) override { owner_ = owner; }
  void Int(std::string_view name, int64_t& value) override;
  void Ints(std::string_view name, std::vector<int64_t>& values) override;
  void Floats(std::string_view name, std::span<float> values) override;
  StateRecord Take() { return std::move(record_); }

 private:
  StateField& Next(std::string_view name, StateField::Kind kind);
  std::string owner_;
  StateRecord record_;
};

// Loads it again.  Throws CheckpointError, naming the field, when the record is of another object.
class StatePlayer : public StateVisitor {
 public:
  explicit StatePlayer(const StateRecord& record) : record_(record) {}  // borrowed
  void Owner(std::string_view owner) override { owner_ = owner; }
  void Int(std::string_view name, int64_t& value) override;
  void Ints(std::string_view name, std::vector<int64_t>& values) override;
  void Floats(std::string_view name, std::span<float> values) override;
  void Finish() const;  // throws when something is left

 private:
  const StateField& Next(std::string_view name, StateField::Kind kind);
  const StateRecord& record_;
  size_t next_ = 0;
  std::string owner_;
};

// visit(visitor)
template <class Visit>
StateRecord RecordState(const Visit& visit) {
  StateRecorder recorder;
  visit(recorder);
  return recorder.Take();
}

template <class Visit>
void PlayState(const StateRecord& record, const Visit& visit) {
  StatePlayer player(record);
  visit(player);
  player.Finish();
}

// A double, as its bits.
void VisitDouble(StateVisitor& visitor, std::string_view name, double& value);

}  // namespace dtrain
