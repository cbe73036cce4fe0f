// A file of one section that is laid over the document's own: --cluster NAME.
#pragma once

#include <string>

#include "framework/config/tree.h"

namespace dtrain::config {

// Lays `text`, which is the file `file_name` and may hold nothing but `section`, over `root`:
// mappings key by key, everything else as a whole.  Mistakes of the file are noted.
void LayOver(const std::string& text, const std::string& file_name, const std::string& section,
             Tree& root, Diagnostics& diagnostics);

}  // namespace dtrain::config
