// Tree -> typed value, with a message for everything that is not exactly that type.
#pragma once

#include <optional>
#include <string>

#include "framework/config/diagnostics.h"
#include "framework/config/schema.h"
#include "framework/config/tree.h"

namespace dtrain::config {

// `tree` as the type that `like` holds; nullopt (noted, `path` is the key to name) when it is not.
std::optional<Value> Convert(const Tree& tree, const Value& like, const std::string& path,
                             Diagnostics& diagnostics);

// Whether every element of `value`, read from `tree`, keeps to `limits`; notes those that do not.
bool CheckLimits(const Value& value, const Tree& tree, const Limits& limits,
                 const std::string& path, Diagnostics& diagnostics);

std::string TypeName(const Value& value);  // "integer", "list of numbers"

}  // namespace dtrain::config
