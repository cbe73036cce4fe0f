// The values in force, and the help table, of what was declared.
#pragma once

#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/config/schema.h"

namespace dtrain::config {

// Every declared key, in block style with one line a key; read again it gives the same values
// (numbers are printed so that they round-trip).  The key with the path `without` is left out.
std::string DumpYaml(const SectionNode& root, const std::string& without = "");
std::string DumpJson(const SectionNode& root);  // the same, indented

std::vector<KeyHelp> DumpKeys(const SectionNode& root);

}  // namespace dtrain::config
