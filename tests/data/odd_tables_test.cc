// Odd tables and arrays, made by odd_tables.py, are read as pandas, h5py and NumPy read them, or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/images/image_set.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

// A line of list.tsv.
struct OddTable {
  std::string name, keys, verdict;
  int64_t samples = 0;
  double tolerance = 0;
  std::string reason;
};

std::vector<OddTable> TablesIn(const TempFolder& folder) {
  std::vector<OddTable> tables;
  std::ifstream in(folder / "list.tsv");
  for (std::string line; std::getline(in, line);) {
    OddTable& table = tables.emplace_back();
    std::istringstream words(line);
    std::getline(words, table.name, '\t');
    std::getline(words, table.keys, '\t');
    std::getline(words, table.verdict, '\t');
    if (table.verdict == "read") {
      words >> table.samples >> table.tolerance;
    } else {
      std::getline(words, table.reason);
    }
    for (size_t at; (at = table.keys.find("FOLDER")) != std::string::npos;) {
      table.keys.replace(at, 6, folder.path().string());
    }
  }
  return tables;
}

std::vector<double> DoublesIn(const std::filesystem::path& path) {
  const std::string bytes = ReadFile(path);
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Returns the module that reads files of this kind.
std::string ModuleFor(const std::string& kind) {
  return kind == "csv" ? "pandas" : kind == "hdf5" ? "h5py" : "numpy";
}

class OddTables : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Dataset> Load(const OddTable& table) {
    return SourceOf(GetParam(), table.keys)->Load("", 1);
  }

  // Fills `batch` with all training samples, as they are in the file.
  static void FillAll(Dataset& set, Batch& batch) {
    const int64_t count = set.size(Split::kTrain);
    std::vector<int64_t> indices(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) indices[static_cast<size_t>(i)] = i;
    batch.Resize(count);
    set.Fill(Split::kTrain, indices, kNoEpoch, batch);
  }

  void ExpectRead(const OddTable& table) {
    const std::shared_ptr<Dataset> set = Load(table);
    set->KeepTargets();
    ASSERT_EQ(set->size(Split::kTrain), table.samples);
    Batch batch(set->fields(), table.samples);
    FillAll(*set, batch);
    ExpectSamples(table, batch.fields[0]);
    ExpectLabels(table, set->image_info()->class_names, batch.fields[1]);
  }

  void ExpectSamples(const OddTable& table, const Tensor& data) {
    const std::vector<double> expected = DoublesIn(folder_ / (table.name + ".x"));
    ASSERT_EQ(data.shape.count(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto value = static_cast<float>(expected[i]);
      const double tolerance = table.tolerance * std::max(1.0, std::abs(expected[i]));
      ASSERT_NEAR(data.f32()[i], value, tolerance) << "value " << i;
    }
  }

  // A line has the label's text, or its numbers.
  void ExpectLabels(const OddTable& table, const std::vector<std::string>& names,
                    const Tensor& labels) {
    std::ifstream in(folder_ / (table.name + ".labels"));
    int64_t at = 0;
    for (std::string line; std::getline(in, line);) {
      if (!names.empty()) {
        EXPECT_EQ(names.at(static_cast<size_t>(labels.i32()[at++])), line);
        continue;
      }
      std::istringstream numbers(line);
      for (std::string number; numbers >> number; ++at) {
        const double expected =
            number == "True" || number == "False" ? number == "True" : std::stod(number);
        const double label = labels.dtype == DType::kI32 ? labels.i32()[at] : labels.f32()[at];
        EXPECT_EQ(label, static_cast<float>(expected)) << "number " << at;
      }
    }
    EXPECT_EQ(at, labels.shape.count());
  }

  void ExpectRefused(const OddTable& table) {
    std::string what = "nothing";
    try {
      Load(table);
    } catch (const DataError& error) {
      what = std::string(error.what()) + " | " + error.hint();
    }
    EXPECT_THAT(what, HasSubstr(table.reason));
  }

  TempFolder folder_;
};

TEST_P(OddTables, AreReadAsPythonReadsThemOrRefused) {
  const std::string python = "/usr/bin/python3";  // Debian's packages are installed for it
  const std::string module = ModuleFor(GetParam());
  if (std::system((python + " -c 'import numpy, " + module + "' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no numpy" << (module == "numpy" ? "" : " or no " + module) << " for "
                 << python;
  }
  const std::string command = python + " -B " DTRAIN_SOURCE_DIR "/tests/data/odd_tables.py " +
                              GetParam() + " " + folder_.path().string();
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::vector<OddTable> tables = TablesIn(folder_);
  EXPECT_GE(tables.size(), GetParam() == "csv" ? 100u : 50u);
  for (const OddTable& table : tables) {
    SCOPED_TRACE(table.name + ": " + table.keys);
    if (table.verdict == "read") {
      EXPECT_NO_THROW(ExpectRead(table));
    } else {
      EXPECT_NO_THROW(ExpectRefused(table));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfAllKinds, OddTables, testing::Values("csv", "hdf5", "npy"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace dtrain
