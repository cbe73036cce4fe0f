#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "tests/tidy/checks.h"

namespace dtrain::tidy {

namespace {

// A library's headers, the folders whose .cc files (in tests/, headers too) may include them, and
// the headers that may include them because only those .cc files include these headers in turn.
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
    {"hdf5", {"framework/hdf5", "framework/checkpoint", "tests"}},
    {"onnx/", {"framework/onnx/file"}},
    {"google/protobuf/", {}},
    {"mpi.h", {"framework/comm/mpi", "tests"}, {"framework/comm/mpi/mpi_transport.h"}},
    {"oneapi/dnnl/", {"framework/kernels/cpu", "layers"}, {"framework/kernels/cpu/onednn.h"}},
    {"dnnl", {}},
    {"cuda_runtime", {"framework/device/cuda", "tests"}, {"framework/device/cuda/queue.h"}},
    {"cublas", {"tests"}, {"framework/device/cuda/queue.h"}},
    {"cudnn.h", {"tests"}, {"framework/device/cuda/queue.h"}},
    {"cudnn_frontend", {"layers/convolution"}},
    {"cub/", {}, {"framework/kernels/cuda/sort.h", "framework/kernels/cuda/compact.h"}},
    {"thrust/", {}, {"framework/kernels/cuda/compact.h"}},
    {"curl/", {"framework/data/files"}},
    {"archive", {"framework/data/files", "tests"}},
    {"openssl/", {"framework/core"}},
};

std::string Finding(const SourceFile& file, const Include& include, const std::string& what) {
  return file.path + ":" + std::to_string(include.line) + ": " + what;
}

// The dependencies in CMakeLists.txt: dtrain_library(NAME DIR folder... DEPS library... ...).
class Arrows {
 public:
  explicit Arrows(const std::string& cmake) {
    static const std::regex call(R"((?:^|\n)\s*dtrain_library\((\w+)([^)]*)\))");
    for (std::sregex_iterator at(cmake.begin(), cmake.end(), call), end; at != end; ++at) {
      Add((*at)[1], (*at)[2]);
    }
  }

  // Returns the library whose folder contains `path`; "" for none (tests, tools).
  std::string LibraryOf(const std::string& path) const {
    const std::string folder = FolderOf(path);
    const auto exact = library_of_.find(folder);
    if (exact != library_of_.end()) return exact->second;
    // DIR may contain a pattern such as framework/strategies/*.
    const auto any = library_of_.find(FolderOf(folder) + "/*");
    return any == library_of_.end() ? "" : any->second;
  }

  bool Allowed(const std::string& from, const std::string& to) const {
    const std::string library = LibraryOf(from), target = LibraryOf(to);
    if (library != target) return StandsOn(library, target);
    return !libraries_.at(library).alone || FolderOf(from) == FolderOf(to);
  }

  // Returns the external libraries that `library` and its dependencies link.
  std::set<std::string> LinksOf(const std::string& library) const {
    const auto it = libraries_.find(library);
    if (it == libraries_.end()) return {};
    std::set<std::string> links(it->second.links.begin(), it->second.links.end());
    for (const std::string& dep : it->second.deps) links.merge(LinksOf(dep));
    return links;
  }

 private:
  struct Library {
    std::vector<std::string> deps;
    std::vector<std::string> links;
    bool alone = false;  // its folders may not include each other
  };

  void Add(const std::string& name, const std::string& arguments) {
    Library& library = libraries_[name];
    std::string keyword;
    std::istringstream words(arguments);
    for (std::string word; words >> word;) {
      if (word == "ALONE") library.alone = true;
      if (std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
        keyword = word;
      } else if (keyword == "DIR") {
        library_of_[word] = name;
      } else if (keyword == "DEPS") {
        library.deps.push_back(word);
      } else if (keyword == "LINK") {
        library.links.push_back(word);
      }
    }
  }

  // CMake lets a library depend on earlier ones only, so there are no cycles.
  bool StandsOn(const std::string& library, const std::string& target) const {
    const auto it = libraries_.find(library);
    if (it == libraries_.end()) return false;
    return std::any_of(it->second.deps.begin(), it->second.deps.end(), [&](const std::string& dep) {
      return dep == target || StandsOn(dep, target);
    });
  }

  std::map<std::string, Library> libraries_;
  std::map<std::string, std::string> library_of_;  // by folder
};

Arrows ArrowsOf(const SourceTree& tree) {
  for (const SourceFile& file : tree) {
    if (file.path == "CMakeLists.txt") return Arrows(file.text);
  }
  return Arrows("");
}

bool OfTheProgram(const std::string& path) {
  return Under(path, "framework") || Under(path, "layers") || Under(path, "datasets");
}

bool HeavyAllowed(const SourceFile& file, const Heavy& heavy) {
  if (file.path == "framework/cli/doctor_report.cc") return true;  // prints each one's version
  if (IsHeader(file) && !Under(file.path, "tests"))
    return std::count(heavy.headers.begin(), heavy.headers.end(), file.path) > 0;
  return std::any_of(heavy.folders.begin(), heavy.folders.end(),
                     [&](const std::string& folder) { return Under(file.path, folder); });
}

}  // namespace

Findings CheckIncludeArrows(const SourceTree& tree) {
  const Arrows arrows = ArrowsOf(tree);
  std::set<std::string> paths;
  for (const SourceFile& file : tree) paths.insert(file.path);
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsHeader(file) && !IsSource(file)) continue;
    if (OfTheProgram(file.path) && arrows.LibraryOf(file.path).empty()) {
      findings.push_back(file.path + ": no dtrain_library of CMakeLists.txt has this folder");
      continue;
    }
    for (const Include& include : IncludesOf(file)) {
      if (!include.quoted) continue;
      if (!paths.contains(include.target)) {
        findings.push_back(Finding(file, include, "no file " + include.target + " in the tree"));
      } else if (OfTheProgram(file.path)
                     ? !arrows.Allowed(file.path, include.target)
                     : !Under(file.path, "tests") && !Under(file.path, "tools")) {
        findings.push_back(Finding(file, include, "must not include " + include.target));
      }
    }
  }
  return findings;
}

Findings CheckLightLibraries(const SourceTree& tree) {
  const Arrows arrows = ArrowsOf(tree);
  Findings findings;
  for (const std::string library : {"nn", "exchange_threaded", "sim"}) {
    for (const std::string& link : arrows.LinksOf(library)) {
      if (link == "dtrain::onednn" || link.starts_with("MPI::") || link.starts_with("CUDA::")) {
        findings.push_back("CMakeLists.txt: " + library + " must not link " + link);
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
