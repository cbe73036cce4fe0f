// Housekeeping checks as unit tests.  Each check reads the tree and returns its findings, one line
// each: "path:line: what".  A tidy tree has none.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/tidy/source_tree.h"

namespace dtrain::tidy {

using Findings = std::vector<std::string>;

// include_checks.cc defines these checks.

// Folders include only folders that CMakeLists.txt lets them depend on (DEPS of dtrain_library,
// directly or indirectly).  Every "..." include is a file of the tree, named from its root.
Findings CheckIncludeArrows(const SourceTree& tree);
// Nets, strategies and the simulator link no oneDNN, MPI or CUDA, directly or through any
// dependency in CMakeLists.txt.
Findings CheckLightLibraries(const SourceTree& tree);
// Libraries that are slow to compile or not installed everywhere are included only in the folders
// made for them, and not in headers.
Findings CheckHeavyHeaders(const SourceTree& tree);
// Every header is included by another file.
Findings CheckHeadersUsed(const SourceTree& tree);

// purity_checks.cc defines these checks.

// Protocols read no clock, and all random numbers are counted ones (core/random.h).
Findings CheckPurity(const SourceTree& tree);
// Lists the lines outside framework/strategies that ask what kind a strategy is: whether it has servers, actors of nodes
// or replicas (Placement, StrategyTraits::model).  A strategy should say it in the interface instead.
Findings KindsAskedFor(const SourceTree& tree);

// build_checks.cc defines these checks.

// Every .cc file is compiled.  `compiled` has paths from the root, as CompiledSources returns them.
Findings CheckSourcesCompiled(const SourceTree& tree, const std::set<std::string>& compiled);
// Every folder of tests/ with a .cc file is a dtrain_test or dtrain_mpi_test of
// tests/CMakeLists.txt.
Findings CheckTestFoldersRegistered(const SourceTree& tree);
// No constant of a source has the name of one in a header of its folder.  In a unity build the
// files after that source would use its constant in place of the header's.
Findings CheckConstantsOfHeaders(const SourceTree& tree);
// Returns the "file" entries of a compile_commands.json that are under `root`, relative to it.  For
// a unity file it adds the sources that the file includes.
std::set<std::string> CompiledSources(const std::string& json, const std::string& root);

// text_checks.cc defines these checks.

Findings CheckWhitespace(const SourceTree& tree);    // no tabs, no trailing blanks, a last newline
Findings CheckMachinePaths(const SourceTree& tree);  // no path of a developer's machine

// link_checks.cc defines this check.

// Links between the documents lead to an existing file or folder of the tree, and to an existing
// heading.
Findings CheckLinks(const SourceTree& tree);

}  // namespace dtrain::tidy
