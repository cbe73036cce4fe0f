// Converts a Tree to a typed value, and reports every value that is not exactly of that type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/config/schema.h"
#include "framework/config/tree.h"

namespace dtrain::config {

// Returns `tree` as the type that `like` holds; nullopt, after reporting an error of the key `path`, if it is not of
// it.  A single string or integer is read as a list of one.
std::optional<Value> Convert(const Tree& tree, const Value& like, const std::string& path,
                             Diagnostics& diagnostics);

// True if every element of `value`, which was read from `tree`, is within `limits`; reports those that are not.
bool CheckLimits(const Value& value, const Tree& tree, const Limits& limits,
                 const std::string& path, Diagnostics& diagnostics);

std::string TypeName(const Value& value);  // "integer", "list of numbers"

// Returns the type of a plain scalar under the YAML 1.2 core schema (yaml.org/spec/1.2.2, section 10.3.2), which
// matches what people expect: `yes` and `no` are strings, `1e3` is a number but no integer.
enum class ScalarType { kNull, kBool, kInt, kFloat, kNotFinite, kString };

ScalarType ResolveScalar(std::string_view text);

// Parse `text`, of the type that the function names; return true if the value fits.  Integers may be 0x or 0o.  Callers
// must check for a leading zero (HasLeadingZero), which YAML 1.1 reads as octal and YAML 1.2 does not.
bool ParseInt(std::string_view text, int64_t& value);
bool ParseNumber(std::string_view text, double& value);
bool HasLeadingZero(std::string_view text);  // "010", "-007"

}  // namespace dtrain::config
