#include <algorithm>
#include <map>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

// Which folders a folder may include, besides itself (framework/README.md draws it).  A file
// belongs to the longest name that fits.  layers/<x> and datasets/<x> do not include their
// neighbours; tests/ and tools/ may include everything and are not listed.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"framework/core", {}},
    {"framework/config", {"framework/core"}},
    {"framework/device", {"framework/core"}},
    {"framework/device/cpu", {"framework/core", "framework/device"}},
    {"framework/solver",
     {"framework/core", "framework/config", "framework/device", "framework/device/cpu"}},
    {"framework/nn",
     {"framework/core", "framework/config", "framework/device", "framework/device/cpu"}},
    {"framework/data", {"framework/core", "framework/config", "framework/device"}},
    {"framework/comm", {"framework/core", "framework/device", "framework/device/cpu"}},
    {"framework/comm/local", {"framework/core", "framework/device", "framework/comm"}},
    {"framework/comm/mpi", {"framework/core", "framework/device", "framework/comm"}},
    {"framework/strategies",
     {"framework/core", "framework/config", "framework/device", "framework/solver",
      "framework/comm"}},
    {"framework/sim",
     {"framework/core", "framework/config", "framework/device", "framework/solver",
      "framework/comm", "framework/strategies"}},
    {"framework/runtime",
     {"framework/core", "framework/config", "framework/device", "framework/device/cpu",
      "framework/solver", "framework/nn", "framework/data", "framework/comm",
      "framework/comm/local", "framework/comm/mpi", "framework/strategies", "framework/sim"}},
    {"framework/cli",
     {"framework/core", "framework/config", "framework/device", "framework/device/cpu",
      "framework/solver", "framework/nn", "framework/data", "framework/comm",
      "framework/comm/local", "framework/comm/mpi", "framework/strategies", "framework/sim",
      "framework/runtime"}},
    {"layers",
     {"framework/core", "framework/config", "framework/device", "framework/device/cpu",
      "framework/nn"}},
    {"datasets", {"framework/core", "framework/config", "framework/device", "framework/data"}},
};

// A library's headers, the folders whose .cc files (in tests/, headers too) may include them, and
// the headers that may as well because only those .cc files include them in turn.
struct Heavy {
  std::string prefix;
  std::vector<std::string> folders;
  std::vector<std::string> headers = {};
};

const std::vector<Heavy> kHeavy = {
    {"spdlog/", {"framework/core"}},
    {"nlohmann/json.hpp", {"framework", "tests"}},
    {"CLI/", {"framework/cli"}},
    {"yaml-cpp/", {"framework/config"}},
    {"hdf5", {"framework/runtime", "tests"}},
    {"mpi.h", {"framework/comm/mpi", "tests"}, {"framework/comm/mpi/mpi_transport.h"}},
    {"oneapi/dnnl/", {"framework/device/cpu", "layers"}, {"framework/device/cpu/onednn.h"}},
    {"dnnl", {}},
    {"curl/", {"framework/data"}},
    {"archive", {"framework/data", "tests"}},
    {"openssl/", {"framework/core"}},
};

std::string Finding(const SourceFile& file, const Include& include, const std::string& what) {
  return file.path + ":" + std::to_string(include.line) + ": " + what;
}

// The key of kArrows that `path` belongs to; "" for none (tests, tools).
std::string AreaOf(const std::string& path) {
  std::string best;
  for (const auto& [area, allowed] : kArrows) {
    if (Under(path, area) && area.size() > best.size()) best = area;
  }
  return best;
}

// layers/relu/relu.cc -> layers/relu: the folders that stand alone within an area.
std::string AloneFolder(const std::string& path, const std::string& area) {
  return area == "layers" || area == "datasets" ? FolderOf(path) : area;
}

bool Allowed(const std::string& from, const std::string& to) {
  const std::string area = AreaOf(from), target = AreaOf(to);
  if (area == target) return AloneFolder(from, area) == AloneFolder(to, area);
  return kArrows.at(area).contains(target);
}

bool HeavyAllowed(const SourceFile& file, const Heavy& heavy) {
  if (file.path == "framework/cli/doctor_report.cc") return true;  // asks each for its version
  if (IsHeader(file) && !Under(file.path, "tests"))
    return std::count(heavy.headers.begin(), heavy.headers.end(), file.path) > 0;
  return std::any_of(heavy.folders.begin(), heavy.folders.end(),
                     [&](const std::string& folder) { return Under(file.path, folder); });
}

}  // namespace

Findings CheckIncludeArrows(const SourceTree& tree) {
  std::set<std::string> paths;
  for (const SourceFile& file : tree) paths.insert(file.path);
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsHeader(file) && !IsSource(file)) continue;
    for (const Include& include : IncludesOf(file)) {
      if (!include.quoted) continue;
      if (!paths.contains(include.target)) {
        findings.push_back(Finding(file, include, "no file " + include.target + " in the tree"));
      } else if (AreaOf(file.path).empty()
                     ? !Under(file.path, "tests") && !Under(file.path, "tools")
                     : !Allowed(file.path, include.target)) {
        findings.push_back(Finding(file, include, "must not include " + include.target));
      }
    }
  }
  return findings;
}

Findings CheckHeavyHeaders(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsHeader(file) && !IsSource(file)) continue;
    for (const Include& include : IncludesOf(file)) {
      if (include.quoted) continue;
      for (const Heavy& heavy : kHeavy) {
        if (!include.target.starts_with(heavy.prefix) || HeavyAllowed(file, heavy)) continue;
        findings.push_back(Finding(file, include, "must not include <" + include.target + ">"));
      }
    }
  }
  return findings;
}

Findings CheckHeadersUsed(const SourceTree& tree) {
  std::set<std::string> used;
  for (const SourceFile& file : tree) {
    for (const Include& include : IncludesOf(file)) {
      if (include.target != file.path) used.insert(include.target);
    }
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (IsHeader(file) && !used.contains(file.path)) {
      findings.push_back(file.path + ": no file includes this header");
    }
  }
  return findings;
}

}  // namespace dtrain::tidy
