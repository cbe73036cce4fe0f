// --set k.ey=value: changes to a Tree before anybody reads it.
#pragma once

#include <string>
#include <vector>

#include "framework/config/tree.h"

namespace dtrain::config {

// Overrides keys of `root` by `arguments`.  Values are YAML ("0.1", "[1, 2]", "{name: sgd}");
// nothing after the '=' is the empty string.  Sections that are missing are made; a scalar X where
// a section is needed becomes {name: X}.  X.name=... first empties section X, and comes before
// every other X.* whatever their order; of two equal keys the later one counts.
void ApplyOverrides(const std::vector<std::string>& arguments, Tree& root,
                    Diagnostics& diagnostics);

// {name: X} for the scalar X; any other node as it is.
Tree NamedSection(const Tree& node);

}  // namespace dtrain::config
