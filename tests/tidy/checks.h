// Housekeeping as unit tests: each check reads the tree and says what is out of order, one line a
// finding, "path:line: what".  No findings: tidy.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/tidy/source_tree.h"

namespace dtrain::tidy {

using Findings = std::vector<std::string>;

// include_checks.cc

// Folders include along the arrows of CMakeLists.txt only (DEPS of dtrain_library, and what those
// stand on); every "..." include is a file of the tree, named from its root.
Findings CheckIncludeArrows(const SourceTree& tree);
// Nets, strategies and the simulator link no oneDNN, MPI or CUDA, by way of nothing that they stand
// on in CMakeLists.txt.
Findings CheckLightLibraries(const SourceTree& tree);
// Libraries whose headers are slow to compile or not everywhere stay in the folders made for them,
// and out of headers.
Findings CheckHeavyHeaders(const SourceTree& tree);
// Every header is included by another file.
Findings CheckHeadersUsed(const SourceTree& tree);

// purity_checks.cc

// Protocols read no clock; nothing draws random numbers that are not counted (core/random.h).
Findings CheckPurity(const SourceTree& tree);

// build_checks.cc

// Every .cc is compiled.  `compiled`: paths from the root, from CompiledSources.
Findings CheckSourcesCompiled(const SourceTree& tree, const std::set<std::string>& compiled);
// Every folder of tests/ with a .cc is a dtrain_test or dtrain_mpi_test of tests/CMakeLists.txt.
Findings CheckTestFoldersRegistered(const SourceTree& tree);
// No constant of a source has the name of one in a header of its folder: where sources are compiled as one, it
// would be taken for the header's by those that stand behind it.
Findings CheckConstantsOfHeaders(const SourceTree& tree);
// The "file" entries of a compile_commands.json under `root`, relative to it, and what those that CMake makes of
// several files include.
std::set<std::string> CompiledSources(const std::string& json, const std::string& root);

// text_checks.cc

Findings CheckWhitespace(const SourceTree& tree);    // no tabs, no trailing blanks, a last newline
Findings CheckMachinePaths(const SourceTree& tree);  // no path of somebody's machine

// link_checks.cc

// Links between the documents lead to a file or folder of the tree, and to a heading of it.
Findings CheckLinks(const SourceTree& tree);

}  // namespace dtrain::tidy
