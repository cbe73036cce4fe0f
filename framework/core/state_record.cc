#include "framework/core/state_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

std::string InWords(std::string_view owner, std::string_view name) {
  return owner.empty() ? std::string(name) : fmt::format("{}: {}", owner, name);
}

}  // namespace

const StateField* StateRecord::Find(std::string_view owner, std::string_view name) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const StateField& field) {
    return field.owner == owner && field.name == name;
  });
  return it == fields.end() ? nullptr : &*it;
}

StateField& StateRecorder::Next(std::string_view name, StateField::Kind kind) {
  return record_.fields.emplace_back(StateField{owner_, std::string(name), kind, {}, {}});
}

void StateRecorder::Int(std::string_view name, int64_t& value) {
  Next(name, StateField::Kind::kInt).ints = {value};
}

void StateRecorder::Ints(std::string_view name, std::vector<int64_t>& values) {
  Next(name, StateField::Kind::kInts).ints = values;
}

void StateRecorder::Floats(std::string_view name, std::span<float> values) {
  Next(name, StateField::Kind::kFloats).floats.assign(values.begin(), values.end());
}

const StateField& StatePlayer::Next(std::string_view name, StateField::Kind kind) {
  if (next_ == record_.fields.size()) {
    throw CheckpointError(fmt::format("saved state ends before '{}'", InWords(owner_, name)));
  }
  const StateField& field = record_.fields[next_++];
  if (field.owner == owner_ && field.name == name && field.kind == kind) return field;
  throw CheckpointError(fmt::format("saved state holds '{}' where '{}' is expected",
                                    InWords(field.owner, field.name), InWords(owner_, name)),
                        "it was saved by another strategy or version");
}

void StatePlayer::Int(std::string_view name, int64_t& value) {
  value = Next(name, StateField::Kind::kInt).ints.at(0);
}

void StatePlayer::Ints(std::string_view name, std::vector<int64_t>& values) {
  values = Next(name, StateField::Kind::kInts).ints;
}

void StatePlayer::Floats(std::string_view name, std::span<float> values) {
  const StateField& field = Next(name, StateField::Kind::kFloats);
  if (field.floats.size() != values.size()) {
    throw CheckpointError(fmt::format("saved '{}' has {} instead of {}", InWords(owner_, name),
                                      Counted(std::ssize(field.floats), "value"), values.size()),
                          "it was saved with another model or another number of servers");
  }
  std::copy(field.floats.begin(), field.floats.end(), values.begin());
}

void StatePlayer::Finish() const {
  if (next_ == record_.fields.size()) return;
  const StateField& left = record_.fields[next_];
  throw CheckpointError(fmt::format("saved state has '{}', which this run does not have",
                                    InWords(left.owner, left.name)));
}

void VisitDouble(StateVisitor& visitor, std::string_view name, double& value) {
  int64_t bits = std::bit_cast<int64_t>(value);
  visitor.Int(name, bits);
  value = std::bit_cast<double>(bits);
}

}  // namespace dtrain
