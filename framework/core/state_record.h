// StateRecord holds visited state field by field, with names, for files whose fields are looked up and compared.
// (StateSaver writes the same state as bytes, for hashes.)
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
  std::vector<int64_t> ints;  // one value for kInt
  std::vector<float> floats;
  friend bool operator==(const StateField&, const StateField&) = default;
};

struct StateRecord {
  std::vector<StateField> fields;  // in the order of the walk
  bool empty() const { return fields.empty(); }
  // Returns the first field of this owner and name; null if there is none.
  const StateField* Find(std::string_view owner, std::string_view name) const;
  friend bool operator==(const StateRecord&, const StateRecord&) = default;
};

// Records the state that it visits.
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

// Loads a record.  Throws CheckpointError, naming the field, if the record is of another object.
class StatePlayer : public StateVisitor {
 public:
  explicit StatePlayer(const StateRecord& record) : record_(record) {}  // borrowed
  void Owner(std::string_view owner) override { owner_ = owner; }
  void Int(std::string_view name, int64_t& value) override;
  void Ints(std::string_view name, std::vector<int64_t>& values) override;
  void Floats(std::string_view name, std::span<float> values) override;
  void Finish() const;  // throws if fields are left

 private:
  const StateField& Next(std::string_view name, StateField::Kind kind);
  const StateRecord& record_;
  size_t next_ = 0;
  std::string owner_;
};

// Records what visit(visitor) visits.
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

// Visits a double as an integer with its bits.
void VisitDouble(StateVisitor& visitor, std::string_view name, double& value);

}  // namespace dtrain
