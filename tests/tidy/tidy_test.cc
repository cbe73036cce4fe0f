// Each check passes on the repository and fails on a planted error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "framework/core/file.h"
#include "tests/data/temp_folder.h"
#include "tests/tidy/checks.h"

namespace dtrain::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SourceTree& Repository() {
  static const SourceTree tree = LoadSourceTree(DTRAIN_SOURCE_DIR);
  return tree;
}

bool Has(const SourceTree& tree, const std::string& path) {
  return std::any_of(tree.begin(), tree.end(), [&](const auto& f) { return f.path == path; });
}

TEST(Tidy, SeesTheWholeTree) {
  for (const char* path : {"CMakeLists.txt", ".ci/run", "framework/core/error.h", "tests/run.sh",
                           "tests/tidy/tidy_test.cc", "configs/models/lenet5.yaml", "README.md"}) {
    EXPECT_TRUE(Has(Repository(), path)) << path;
  }
  EXPECT_GT(Repository().size(), 150u);
}

// Prints the lines: tidy_tests --gtest_filter=Tidy.FewLinesAskForTheKindOfAStrategy
TEST(Tidy, FewLinesAskForTheKindOfAStrategy) {
  const Findings lines = KindsAskedFor(Repository());
  for (const std::string& line : lines) std::cout << line << '\n';
  EXPECT_LE(lines.size(), 10u);
}

TEST(Tidy, KindsAskedForFindsPlanted) {
  const SourceTree tree = {
      {"framework/strategies/a.cc", "if (placement.nodes() > 0) return;\n"},
      {"framework/exchange/b.cc",
       "// nodes() > 0\nif (placement.nodes() > 0) return;\nif (model == ModelPlace::kReplicas) "
       "{}\n"
       "int servers = 1;\nif (servers > 0) {}\nreturn placement.replicated;\n"}};
  EXPECT_THAT(KindsAskedFor(tree),
              ElementsAre("framework/exchange/b.cc:2:if (placement.nodes() > 0) return;",
                          "framework/exchange/b.cc:3:if (model == ModelPlace::kReplicas) {}",
                          "framework/exchange/b.cc:5:if (servers > 0) {}",
                          "framework/exchange/b.cc:6:return placement.replicated;"));
}

TEST(Tidy, IncludeArrows) { EXPECT_THAT(CheckIncludeArrows(Repository()), IsEmpty()); }

TEST(Tidy, IncludeArrowsFindsPlanted) {
  const SourceTree tree = {
      {"CMakeLists.txt",
       "dtrain_library(core DIR framework/core)\n"
       "dtrain_library(config DIR framework/config DEPS core)\n"
       "dtrain_library(device DIR framework/device/cpu DEPS core LINK comm)\n"
       "dtrain_library(nn DIR framework/nn DEPS config device)\n"
       "dtrain_library(comm DIR framework/comm DEPS core)\n"
       "dtrain_library(local DIR framework/comm/local DEPS comm)\n"
       "dtrain_library(mpi DIR framework/comm/mpi DEPS comm)\n"
       "dtrain_library(strategies DIR framework/strategies framework/strategies/* DEPS comm)\n"
       "dtrain_library(layers DIR layers/*\n  DEPS nn ALONE)\n"
       "dtrain_library(runtime DIR framework/runtime DEPS mpi nn)\n"},
      {"framework/core/a.h", "#pragma once\n#include \"framework/config/b.h\"\n"},
      {"framework/config/b.h", "#include \"framework/core/a.h\"\n"},
      {"framework/strategies/c.cc", "#include \"framework/nn/net.h\"\n#include \"c.h\"\n"},
      {"framework/nn/net.h", "#include \"framework/device/cpu/x.h\"\n"},
      {"framework/device/cpu/x.h", "#include \"framework/comm/t.h\"\n"},
      {"framework/strategies/ps/s.cc",
       "#include \"framework/core/a.h\"\n#include \"framework/strategies/ssp/s.h\"\n"},
      {"framework/strategies/ssp/s.h", ""},
      {"framework/extra/e.cc", ""},
      {"framework/comm/mpi/m.h", "#include \"framework/comm/local/l.h\"\n"},
      {"framework/comm/local/l.h", "#include \"framework/comm/t.h\"\n"},
      {"framework/comm/t.h", ""},
      {"layers/relu/relu.cc", "#include \"layers/relu/relu.h\"\n#include \"layers/lrn/lrn.h\"\n"},
      {"layers/relu/relu.h", ""},
      {"layers/lrn/lrn.h", "#include \"framework/runtime/r.h\"\n"},
      {"framework/runtime/r.h", "#include \"framework/comm/mpi/m.h\"\n"},
      {"tests/nn/t.cc", "#include \"framework/runtime/r.h\"\n"},
      {"extra/t.cc", "#include \"framework/core/a.h\"\n"},
  };
  EXPECT_THAT(
      CheckIncludeArrows(tree),
      ElementsAre("framework/core/a.h:2: must not include framework/config/b.h",
                  "framework/strategies/c.cc:1: must not include framework/nn/net.h",
                  "framework/strategies/c.cc:2: no file c.h in the tree",
                  "framework/device/cpu/x.h:1: must not include framework/comm/t.h",
                  "framework/extra/e.cc: no dtrain_library of CMakeLists.txt has this folder",
                  "framework/comm/mpi/m.h:1: must not include framework/comm/local/l.h",
                  "layers/relu/relu.cc:2: must not include layers/lrn/lrn.h",
                  "layers/lrn/lrn.h:1: must not include framework/runtime/r.h",
                  "extra/t.cc:1: must not include framework/core/a.h"));
}

TEST(Tidy, LightLibraries) { EXPECT_THAT(CheckLightLibraries(Repository()), IsEmpty()); }

TEST(Tidy, LightLibrariesFindsPlanted) {
  const SourceTree tree = {
      {"CMakeLists.txt",
       "dtrain_library(device_cpu DIR framework/device/cpu LINK OpenMP::OpenMP_CXX "
       "dtrain::onednn)\n"
       "dtrain_library(solver DIR framework/solver DEPS device_cpu)\n"
       "dtrain_library(comm_mpi DIR framework/comm/mpi LINK MPI::MPI_CXX)\n"
       "dtrain_library(nn DIR framework/nn PRECOMPILED plain)\n"
       "dtrain_library(exchange_threaded DIR framework/exchange/threaded DEPS comm_mpi)\n"
       "dtrain_library(sim DIR framework/sim DEPS solver PRECOMPILED plain LINK fmt::fmt)\n"}};
  EXPECT_THAT(CheckLightLibraries(tree),
              ElementsAre("CMakeLists.txt: exchange_threaded must not link MPI::MPI_CXX",
                          "CMakeLists.txt: sim must not link dtrain::onednn"));
}

TEST(Tidy, HeavyHeaders) { EXPECT_THAT(CheckHeavyHeaders(Repository()), IsEmpty()); }

TEST(Tidy, HeavyHeadersFindsPlanted) {
  const SourceTree tree = {
      {"framework/core/log.cc", "#include <spdlog/spdlog.h>\n"},
      {"framework/core/log.h", "#include <vector>\n#include <spdlog/spdlog.h>\n"},
      {"framework/checkpoint/a.h", "#include <nlohmann/json.hpp>\n#include <hdf5.h>\n"},
      {"framework/checkpoint/a.cc", "#include <nlohmann/json.hpp>\n#include <hdf5.h>\n"},
      {"framework/cli/b.cc", "#include <yaml-cpp/yaml.h>\n#include <CLI/CLI.hpp>\n"},
      {"framework/train/h.cc", "#include <hdf5.h>\n"},
      {"framework/strategies/c.cc", "#include <mpi.h>\n#include <oneapi/dnnl/dnnl.hpp>\n"},
      {"framework/comm/mpi/mpi_transport.h", "#include <mpi.h>\n"},
      {"framework/device/cuda/queue.h", "#include <cudnn.h>\n"},
      {"layers/lrn/lrn_cuda.cu", "#include <cudnn.h>\n"},
  };
  EXPECT_THAT(CheckHeavyHeaders(tree),
              ElementsAre("framework/core/log.h:2: must not include <spdlog/spdlog.h>",
                          "framework/checkpoint/a.h:1: must not include <nlohmann/json.hpp>",
                          "framework/checkpoint/a.h:2: must not include <hdf5.h>",
                          "framework/cli/b.cc:1: must not include <yaml-cpp/yaml.h>",
                          "framework/train/h.cc:1: must not include <hdf5.h>",
                          "framework/strategies/c.cc:1: must not include <mpi.h>",
                          "framework/strategies/c.cc:2: must not include <oneapi/dnnl/dnnl.hpp>",
                          "layers/lrn/lrn_cuda.cu:1: must not include <cudnn.h>"));
}

TEST(Tidy, HeadersUsed) { EXPECT_THAT(CheckHeadersUsed(Repository()), IsEmpty()); }

TEST(Tidy, HeadersUsedFindsPlanted) {
  const SourceTree tree = {
      {"framework/core/a.h", "#include \"framework/core/a.h\"\n"},
      {"framework/core/b.h", ""},
      {"framework/core/b.cc", "#include \"framework/core/b.h\"\n"},
  };
  EXPECT_THAT(CheckHeadersUsed(tree),
              ElementsAre("framework/core/a.h: no file includes this header"));
}

TEST(Tidy, Purity) { EXPECT_THAT(CheckPurity(Repository()), IsEmpty()); }

TEST(Tidy, PurityFindsPlanted) {
  const SourceTree tree = {
      {"framework/strategies/ps/a.cc",
       "// WallNow() in a comment is fine\n"
       "const Nanos now = WallNow();\n"
       "std::thread thread;\n"
       "const int step_time = Runtime(3);\n"},
      {"framework/strategies/b.h", "#include <chrono>\n"},
      {"framework/strategies/c.cc", "long t = time(nullptr);\n"},
      {"framework/exchange/x.cc", "std::mutex mutex;\n#include <mutex>\n"},
      {"framework/exchange/threaded/y.cc", "const Nanos now = WallNow();\n"},
      {"framework/runtime/d.cc", "auto t = WallNow();\nint x = rand();\nint operand(int);\n"},
      {"layers/dropout/e.cc", "std::mt19937 generator;\n"},
      {"datasets/digits/f.cc", "std::random_device device;\n"},
  };
  const std::string uncounted = "draws uncounted random numbers (core/random.h has counted ones)";
  EXPECT_THAT(
      CheckPurity(tree),
      ElementsAre("framework/strategies/ps/a.cc:2: reads a clock",
                  "framework/strategies/ps/a.cc:3: starts or blocks a thread",
                  "framework/strategies/b.h:1: reads a clock",
                  "framework/strategies/c.cc:1: reads a clock",
                  "framework/exchange/x.cc:2: starts or blocks a thread",
                  "framework/runtime/d.cc:2: " + uncounted, "layers/dropout/e.cc:1: " + uncounted,
                  "datasets/digits/f.cc:1: " + uncounted));
}

TEST(Tidy, SourcesCompiled) {
  const std::string json =
      ReadFile(std::filesystem::path(DTRAIN_BINARY_DIR) / "compile_commands.json");
  EXPECT_THAT(CheckSourcesCompiled(Repository(), CompiledSources(json, DTRAIN_SOURCE_DIR)),
              IsEmpty());
}

TEST(Tidy, SourcesCompiledFindsPlanted) {
  const std::string json =
      R"([{"directory": "/b", "file": "/src/framework/a.cc", "command": "c++"},
          {"directory": "/b", "file": "/b/empty.cc", "command": "c++"}])";
  const std::set<std::string> compiled = CompiledSources(json, "/src");
  EXPECT_THAT(compiled, ElementsAre("framework/a.cc"));
  EXPECT_THAT(CheckSourcesCompiled({{"framework/a.cc", ""}, {"framework/b.cc", ""}}, compiled),
              ElementsAre("framework/b.cc: no target compiles this file"));
  const SourceTree of_cuda = {
      {"framework/x_cuda.cc", ""}, {"layers/lrn/lrn_cuda.cu", ""}, {"tests/cuda/x_test.cc", ""}};
  EXPECT_THAT(CheckSourcesCompiled(of_cuda, compiled), IsEmpty());
  EXPECT_THAT(CheckSourcesCompiled(of_cuda, {"framework/y_cuda.cc"}),
              ElementsAre("framework/x_cuda.cc: no target compiles this file",
                          "layers/lrn/lrn_cuda.cu: no target compiles this file",
                          "tests/cuda/x_test.cc: no target compiles this file"));
}

TEST(Tidy, SourcesThatAreCompiledAsOneAreFound) {
  const TempFolder folder;
  const std::string several =
      folder.Write("Unity/unity_0_cxx.cxx",
                   "/* generated by CMake */\n\n#include \"/src/core/a.cc\"\n\n"
                   "#include \"/src/core/b.cc\"\n#include \"/other/c.cc\"\n");
  const std::string json =
      R"([{"directory": "/b", "file": ")" + several + R"(", "command": "c++"}])";
  EXPECT_THAT(CompiledSources(json, "/src"), ElementsAre("core/a.cc", "core/b.cc"));
}

TEST(Tidy, TestFoldersRegistered) {
  EXPECT_THAT(CheckTestFoldersRegistered(Repository()), IsEmpty());
}

TEST(Tidy, TestFoldersRegisteredFindsPlanted) {
  const SourceTree tree = {
      {"tests/CMakeLists.txt",
       "dtrain_test(core DEPS core)\ndtrain_mpi_test(world RANKS 2)\n"
       "add_library(harm MODULE faults/module.cc)\n"
       "# dtrain_test(lost DEPS core)\n"},
      {"tests/core/a_test.cc", ""},
      {"tests/core/helper/main.cc", ""},
      {"tests/faults/module.cc", ""},
      {"tests/lost/b_test.cc", ""},
      {"tests/support/c.h", ""},
      {"tests/world/d_test.cc", ""},
  };
  EXPECT_THAT(CheckTestFoldersRegistered(tree),
              ElementsAre("tests/lost: no dtrain_test(...) in tests/CMakeLists.txt builds this "
                          "folder"));
}

TEST(Tidy, ConstantsOfHeaders) { EXPECT_THAT(CheckConstantsOfHeaders(Repository()), IsEmpty()); }

TEST(Tidy, ConstantsOfHeadersFindsPlanted) {
  const SourceTree tree = {
      {"tests/a/fixture.h", "inline constexpr size_t kSize = 1000;\nextern const int kLater;\n"},
      {"tests/a/one_test.cc", "constexpr int64_t kSize = 3000;\nconst int kLater = 1;\n"},
      {"tests/a/two_test.cc", "TEST(A, B) {\n  constexpr int kSize = 10;\n}\nint x = kSize;\n"},
      {"tests/b/three_test.cc", "const int kSize = 3;\n"},
      {"layers/a/a.h", "constexpr int kSize = 1;\n"},
      {"layers/b/b.cc", "constexpr int kSize = 2;\n"}};
  EXPECT_THAT(CheckConstantsOfHeaders(tree),
              ElementsAre("tests/a/one_test.cc:1: kSize is a constant of tests/a/fixture.h, too",
                          "layers/b/b.cc:1: kSize is a constant of layers/a/a.h, too"));
}

TEST(Tidy, Whitespace) { EXPECT_THAT(CheckWhitespace(Repository()), IsEmpty()); }

TEST(Tidy, WhitespaceFindsPlanted) {
  const SourceTree tree = {{"a.cc", "int a;\n\tint b;\nint c; \n"}, {"b.md", "text"}};
  EXPECT_THAT(CheckWhitespace(tree),
              ElementsAre("a.cc:2: tab", "a.cc:3: blank at the end of the line",
                          "b.md:1: no newline at the end of the file"));
}

TEST(Tidy, MachinePaths) { EXPECT_THAT(CheckMachinePaths(Repository()), IsEmpty()); }

TEST(Tidy, MachinePathsFindsPlanted) {
  const std::string home = std::string("/ho") + "me/ann/data";
  const SourceTree tree = {{"a.md", "see\nin " + home + "\n"},
                           {"b.sh", "cd \"" + home + "\"\n"},
                           {"c.h", "// tests/home/x.h and https://example.org" + home + "\n"}};
  EXPECT_THAT(CheckMachinePaths(tree), ElementsAre("a.md:2: path of somebody's machine",
                                                   "b.sh:1: path of somebody's machine"));
}

TEST(Tidy, Links) { EXPECT_THAT(CheckLinks(Repository()), IsEmpty()); }

TEST(Tidy, LinksFindsPlanted) {
  const SourceTree tree = {
      {"README.md",
       "# A\n## What `x` does, in short\n```\n## no heading\n```\n"
       "[here](#what-x-does-in-short) [there](b/c.md#two) [folder](b) [out](https://a.org/b#c)\n"
       "[lost](#no-heading) [lost](b/c.md#three) [lost](b/d.md)\n    [code](x)\n"},
      {"b/c.md", "## Two\n[up](../README.md#a)\n[out](../../x)\n"}};
  EXPECT_THAT(CheckLinks(tree),
              ElementsAre("README.md:7: no #no-heading", "README.md:7: no b/c.md#three",
                          "README.md:7: no b/d.md", "b/c.md:3: no ../../x"));
}

}  // namespace
}  // namespace dtrain::tidy
