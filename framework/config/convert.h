// Tree -> typed value, with a message for everything that is not exactly that type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/config/schema.h"
#include "framework/config/tree.h"

namespace dtrain::config {

// `tree` as the type that `like` holds; nullopt (noted, `path` is the key to name) when it is not.
// A single string or integer is read as a list of one.
std::optional<Value> Convert(const Tree& tree, const Value& like, const std::string& path,
                             Diagnostics& diagnostics);

// Whether every element of `value`, read from `tree`, keeps to `limits`; notes those that do not.
bool CheckLimits(const Value& value, const Tree& tree, const Limits& limits,
                 const std::string& path, Diagnostics& diagnostics);

std::string TypeName(const Value& value);  // "integer", "list of numbers"

// What a plain scalar is under the YAML 1.2 core schema (yaml.org/spec/1.2.2, section 10.3.2),
// which is what people read: `yes` and `no` are strings, `1e3` is a number and no integer.
enum class ScalarType { kNull, kBool, kInt, kFloat, kNotFinite, kString };

ScalarType ResolveScalar(std::string_view text);

// `text` of the type named; true when the value fits.  Integers may be 0x or 0o; a leading zero,
// which YAML 1.1 reads as octal and 1.2 does not, is left to the caller (HasLeadingZero).
bool ParseInt(std::string_view text, int64_t& value);
bool ParseNumber(std::string_view text, double& value);
bool HasLeadingZero(std::string_view text);  // "010", "-007"

}  // namespace dtrain::config
