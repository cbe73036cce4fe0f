#include "framework/core/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

// Counts of bytes, values or samples stay below this on any machine, and thousands of them can be added without
// overflow.
constexpr int64_t kMostCount = 1'000'000'000'000'000;

[[noreturn]] void Wrong(const std::string& where, const std::string& key, const char* what) {
  throw ConfigError(fmt::format("{}: {}: {}", where, key, what));
}

}  // namespace

nlohmann::json ParseJson(std::string_view text, const std::string& source) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw ConfigError(fmt::format("{}: not JSON (byte {})", source, error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw ConfigError(source + ": it has a number that is too large");
  }
}

JsonFields::JsonFields(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw ConfigError(where_ + ": not a JSON object");
}

const nlohmann::json& JsonFields::Get(const std::string& key) {
  known_.insert(key);
  const auto it = object_.find(key);
  if (it == object_.end()) throw ConfigError(fmt::format("{}: key '{}' is missing", where_, key));
  return *it;
}

bool JsonFields::Has(const std::string& key) const { return object_.contains(key); }

std::string JsonFields::String(const std::string& key) {
  const nlohmann::json& value = Get(key);
  if (!value.is_string()) Wrong(where_, key, "not a string");
  return value.get<std::string>();
}

int64_t JsonFields::Count(const std::string& key) {
  const nlohmann::json& value = Get(key);
  if (!value.is_number_integer()) Wrong(where_, key, "not an integer");
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kMostCount}) {
    Wrong(where_, key, "too large");
  }
  if (value.get<int64_t>() < 0) Wrong(where_, key, "negative");
  return value.get<int64_t>();
}

int JsonFields::SmallCount(const std::string& key) {
  const int64_t count = Count(key);
  if (count > std::numeric_limits<int>::max()) Wrong(where_, key, "too large");
  return static_cast<int>(count);
}

void JsonFields::Schema(int newest) {
  if (!Has("schema")) return;
  const int64_t schema = Count("schema");
  if (schema <= newest) return;
  throw ConfigError(
      fmt::format("{}: schema {}, this program reads those up to {}", where_, schema, newest),
      "a newer program wrote it");
}

double JsonFields::Amount(const std::string& key) {
  const nlohmann::json& value = Get(key);
  if (!value.is_number()) Wrong(where_, key, "not a number");
  if (!(value.get<double>() >= 0)) Wrong(where_, key, "negative");
  return value.get<double>();
}

const nlohmann::json& JsonFields::Array(const std::string& key) {
  const nlohmann::json& value = Get(key);
  if (!value.is_array()) Wrong(where_, key, "not a list");
  return value;
}

const nlohmann::json& JsonFields::Object(const std::string& key) {
  const nlohmann::json& value = Get(key);
  if (!value.is_object()) Wrong(where_, key, "not an object");
  return value;
}

void JsonFields::RejectOthers() const {
  const std::vector<std::string> names(known_.begin(), known_.end());
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    throw ConfigError(fmt::format("{}: unknown key '{}'", where_, key), SuggestName(key, names));
  }
}

}  // namespace dtrain
