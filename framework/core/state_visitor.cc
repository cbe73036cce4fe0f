#include "framework/core/state_visitor.h"

#include <cstring>

#include "framework/core/error.h"
#include "framework/core/sha256.h"

namespace dtrain {

// A field is stored as: length of its name, name, length of its data in bytes, data.
void StateSaver::Append(std::string_view name, const void* data, size_t bytes) {
  const auto length = [this](uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  length(name.size());
  bytes_.append(name);
  length(bytes);
  bytes_.append(static_cast<const char*>(data), bytes);
}

void StateSaver::Int(std::string_view name, int64_t& value) { Append(name, &value, sizeof(value)); }

void StateSaver::Ints(std::string_view name, std::vector<int64_t>& values) {
  Append(name, values.data(), values.size() * sizeof(int64_t));
}

void StateSaver::Floats(std::string_view name, std::span<float> values) {
  Append(name, values.data(), values.size_bytes());
}

std::string_view StateLoader::Next(std::string_view name) {
  const auto take = [this, name](uint64_t bytes) {
    if (bytes > rest_.size()) {
      throw CheckpointError("saved state ends within '" + std::string(name) + "'", "");
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  };
  const auto length = [&take] {
    uint64_t value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  };
  const std::string_view found = take(length());
  if (found != name) {
    throw CheckpointError("saved state holds '" + std::string(found) + "' where '" +
                              std::string(name) + "' is expected",
                          "it was saved by another strategy or version");
  }
  return take(length());
}

void StateLoader::Int(std::string_view name, int64_t& value) {
  const std::string_view data = Next(name);
  if (data.size() != sizeof(value)) {
    throw CheckpointError("saved '" + std::string(name) + "' is not one number", "");
  }
  std::memcpy(&value, data.data(), sizeof(value));
}

void StateLoader::Ints(std::string_view name, std::vector<int64_t>& values) {
  const std::string_view data = Next(name);
  values.resize(data.size() / sizeof(int64_t));
  if (!data.empty()) std::memcpy(values.data(), data.data(), values.size() * sizeof(int64_t));
}

void StateLoader::Floats(std::string_view name, std::span<float> values) {
  const std::string_view data = Next(name);
  if (data.size() != values.size_bytes()) {
    throw CheckpointError("saved '" + std::string(name) + "' has " +
                              std::to_string(data.size() / sizeof(float)) + " values instead of " +
                              std::to_string(values.size()),
                          "it was saved with another model or another number of servers");
  }
  if (!data.empty()) std::memcpy(values.data(), data.data(), data.size());
}

void StateLoader::Finish() const {
  if (!rest_.empty()) throw CheckpointError("saved state has more fields than expected", "");
}

std::string HashStateBytes(std::string_view bytes) { return Sha256::Of(bytes); }

}  // namespace dtrain
