// Runs that are resumed with other data than those of their checkpoint: classes, columns, mean and deviation, image
// keys, samples.  Real and simulated runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/file.h"
#include "framework/core/random.h"
#include "framework/data/images/image_set.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/trained_data.h"
#include "framework/simulate/simulated_run.h"
#include "tests/data/image_files.h"
#include "tests/runtime/rewrite_checkpoint.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Keys = std::vector<std::string>;

class ResumedData : public RunFixture {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }

  // A row a,b,y; y is one of two words, depending on a.
  struct Row {
    std::string a, b, y;
  };
  static std::vector<Row> Rows(const std::string& high = "high", const std::string& low = "low") {
    std::vector<Row> rows;
    const Random random(1, Purpose::kSelfTest);
    for (uint64_t i = 0; i < 48; ++i) {
      const double a = random.Uniform(2 * i) * 10, b = random.Uniform(2 * i + 1);
      rows.push_back({fmt::format("{:.3f}", a), fmt::format("{:.3f}", b), a > 5 ? high : low});
    }
    return rows;
  }
  void WriteTable(const std::vector<Row>& rows, const std::string& header = "a,b,y",
                  const std::string& name = "t.csv") const {
    std::string text = header + "\n";
    for (const Row& row : rows) text += row.a + "," + row.b + "," + row.y + "\n";
    Write(name, text);
  }

  RunConfig Config(const std::string& data, const std::string& sample, const Keys& keys,
                   int classes = 2) const {
    Write("model.yaml", fmt::format("name: line\nsample: {}\nlayers:\n"
                                    "  - {{name: fc, type: inner_product, outputs: {}}}\n"
                                    "  - {{name: loss, type: softmax_cross_entropy, input: [fc, "
                                    "label]}}\n",
                                    sample, classes));
    Keys all = {"output=" + (folder_ / "run").string(), "cluster.step_seconds=0.01"};
    all.insert(all.end(), keys.begin(), keys.end());
    config::Document document = config::Document::FromText(
        fmt::format("model: {{name: {}}}\ndata: {{{}}}\nbatch: 8\nthreads: 1\nepochs: 2\n"
                    "solver: {{name: sgd, lr: 0.1}}\n",
                    (folder_ / "model.yaml").string(), data),
        "run.yaml", all);
    return ReadRunConfig(document);
  }
  RunConfig OfTable(const Keys& keys = {}) const {
    return Config("name: csv, train: " + (folder_ / "t.csv").string(), "[2]", keys);
  }
  // The test samples are in a file of their own, so that none are held out.
  RunConfig OfTables(Keys keys) const {
    keys.push_back("data.test=" + (folder_ / "u.csv").string());
    return OfTable(keys);
  }
  RunConfig OfImages(const Keys& keys = {}) const {
    return Config(
        "name: image_folder, size: [4, 4], colours: grey, train: " + (folder_ / "train").string(),
        "[1, 4, 4]", keys);
  }
  RunConfig OfDigits(const Keys& keys = {}) const {
    return Config("name: digits, train_samples: 48, test_samples: 20", "[1, 28, 28]", keys, 10);
  }
  void WriteImages(uint8_t dark = 20, const std::string& folder = "train") const {
    for (uint8_t i = 0; i < 8; ++i) {
      const auto grey = [&](uint8_t value) {
        return PngOf(std::vector<uint8_t>(24, static_cast<uint8_t>(value + i)), 4, 6,
                     PNG_FORMAT_GRAY);
      };
      Write(fmt::format("{}/cat/{}.png", folder, i), grey(dark));
      Write(fmt::format("{}/dog/{}.png", folder, i), grey(200));
    }
  }

  // Trains, calls `change` and resumes with `keys`; returns the outcome of the resume.
  struct Outcome {
    std::string error;  // in the form of MessageOf
    std::string message;
  };
  Outcome Resume(bool simulated, const std::function<RunConfig(const Keys&)>& config,
                 const std::function<void()>& change, const Keys& keys) const {
    fs::remove_all(folder_ / "run");
    Keys first = {"max_steps=3"};
    Train(simulated, config(first), "none");
    change();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.error = MessageOf([&] { Train(simulated, config(keys), "auto"); });
    outcome.message = ::testing::internal::GetCapturedStderr();
    return outcome;
  }
  static void Train(bool simulated, const RunConfig& config, const std::string& resume) {
    if (!simulated) {
      Run(config, {.resume = resume});
      return;
    }
    SimulatedRun run(config, std::nullopt, true);
    run.KeepCheckpoints(config.output, resume);
    run.Run();
  }

  // Rewrites the newest checkpoint as one that does not tell how images were turned, and has no hashes.
  void ForgetOrientation() const {
    RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) {
      nlohmann::json images = nlohmann::json::parse(info.images);
      images.erase("orientation");
      info.images = images.dump();
      info.data_hashes = {};
    });
  }

  ImageSetSpec InfoOfNewest() const {
    const fs::path file = FindCheckpoint(folder_ / "run");
    return ImageSetSpecFromText(ReadStoredInfo(file).images, "facts");
  }
};

TEST_F(ResumedData, OthersAreRefusedByName) {
  const auto table = [this](const Keys& keys) { return OfTable(keys); };
  const auto images = [this](const Keys& keys) { return OfImages(keys); };
  struct Change {
    std::function<RunConfig(const Keys&)> config;
    std::function<void()> make;
    Keys keys;
    std::string message;
  };
  const auto nothing = [] {};
  const std::vector<Change> changes = {
      {table,
       [this] {
         std::vector<Row> rows = Rows();
         for (Row& row : rows) std::swap(row.a, row.b);
         WriteTable(rows, "b,a,y");
       },
       {},
       "  columns, number 1: \"a\" -> \"b\"\n"},
      {table,
       [this] { WriteTable(Rows("above", "zero")); },
       {},
       "  class_names, number 1: \"high\" -> \"above\"\n"},
      {table,
       [this] { WriteTable(Rows(), "a,b,kind"); },
       {},
       "  label_column: \"y\" -> \"kind\"\n"},
      // Names and numbers stay; samples change.
      {table,
       [this] {
         std::vector<Row> rows = Rows();
         std::swap(rows[0].y, rows[1].y);
         std::swap(rows[0].a, rows[1].a);
         rows[0].y = rows[0].y == "high" ? "low" : "high";
         WriteTable(rows);
       },
       {},
       "  samples ("},
      {table, nothing, {"data.deviation=[2, 3]"}, "  deviation: ["},
      {table, nothing, {"data.mean=[1, 2]"}, "-> [1, 2]\n"},
      // This makes the dog the first class.
      {images,
       [this] { fs::rename(folder_ / "train/cat", folder_ / "train/zebra"); },
       {},
       "  class_names, number 1: \"cat\" -> \"dog\"\n"},
      {images, nothing, {"data.fit=crop"}, "  fit: \"stretch\" -> \"crop\"\n"},
      {images,
       [this] {
         fs::rename(folder_ / "train/cat", folder_ / "train/x");
         fs::rename(folder_ / "train/dog", folder_ / "train/cat");
         fs::rename(folder_ / "train/x", folder_ / "train/dog");
       },
       {},
       "  samples ("}};
  for (const bool simulated : {false, true}) {
    for (const Change& change : changes) {
      SCOPED_TRACE(change.message + (simulated ? "simulated" : "real"));
      fs::remove_all(folder_ / "train");
      WriteTable(Rows());
      WriteImages();
      const Outcome refused = Resume(simulated, change.config, change.make, change.keys);
      EXPECT_THAT(refused.error,
                  AllOf(HasSubstr("6: "), HasSubstr("step-00000003.h5 was trained on other data"),
                        HasSubstr(change.message), HasSubstr("checkpoint.other_data=take")));
      fs::remove_all(folder_ / "train");
      WriteTable(Rows());
      WriteImages();
      Keys keys = change.keys;
      keys.emplace_back("checkpoint.other_data=take");
      const Outcome taken = Resume(simulated, change.config, change.make, keys);
      EXPECT_EQ(taken.error, "no error");
      EXPECT_THAT(taken.message, HasSubstr(change.message));
    }
  }
}

// If no key gives mean and deviation, they are measured on data.train, which may have changed.
TEST_F(ResumedData, MeanAndDeviationThatWereMeasuredAreTheCheckpoints) {
  struct Data {
    std::function<RunConfig(const Keys&)> config;
    std::function<void()> change;
  };
  const Data sets[] = {{[this](const Keys& keys) { return OfTable(keys); },
                        [this] {
                          std::vector<Row> rows = Rows();
                          for (Row& row : rows) row.a = "1" + row.a;
                          WriteTable(rows);
                        }},
                       // Images with held-out samples.
                       {[this](Keys keys) {
                          keys.emplace_back("data.validation=0.2");
                          return OfImages(keys);
                        },
                        [this] { WriteImages(50); }}};
  for (const bool simulated : {false, true}) {
    for (const Data& data : sets) {
      SCOPED_TRACE(simulated);
      WriteTable(Rows());
      WriteImages();
      Resume(simulated, data.config, [] {}, {});
      const ImageSetSpec measured = InfoOfNewest();
      const Outcome taken =
          Resume(simulated, data.config, data.change, {"checkpoint.other_data=take"});
      EXPECT_EQ(taken.error, "no error");
      EXPECT_THAT(taken.message,
                  AllOf(HasSubstr("samples are normalised as in "), HasSubstr("  samples (")));
      EXPECT_EQ(InfoOfNewest().mean.values(), measured.mean.values());
      EXPECT_EQ(InfoOfNewest().deviation.values(), measured.deviation.values());
    }
  }
}

// Such a checkpoint has no hash of its samples.
TEST_F(ResumedData, ACheckpointWithoutHashesGoesOnWithItsMean) {
  WriteTable(Rows());
  WriteTable(Rows(), "a,b,y", "u.csv");
  const auto table = [this](const Keys& keys) { return OfTables(keys); };
  ImageSetSpec before;
  const auto change = [&] {
    before = InfoOfNewest();
    RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) { info.data_hashes = {}; });
    std::vector<Row> rows = Rows();
    rows[0].a = "99";
    WriteTable(rows);
  };
  for (const int workers : {1, 2}) {
    const Outcome again =
        Resume(false, table, change, {fmt::format("cluster.workers={}", workers)});
    EXPECT_EQ(again.error, "no error");
    EXPECT_THAT(again.message, HasSubstr("samples are normalised as in "));
    EXPECT_EQ(InfoOfNewest().mean.values(), before.mean.values());
    WriteTable(Rows());
  }
}

// That program read images as stored, without their orientation tag.
TEST_F(ResumedData, ACheckpointFromBeforeOrientationIsOfImagesAsStored) {
  WriteImages();
  WriteImages(30, "test");
  WriteTable(Rows());
  WriteTable(Rows(), "a,b,y", "u.csv");
  const auto images = [this](Keys keys) {
    keys.push_back("data.test=" + (folder_ / "test").string());
    return OfImages(keys);
  };
  const auto forget = [this] { ForgetOrientation(); };
  for (const bool simulated : {false, true}) {
    const Outcome refused = Resume(simulated, images, forget, {});
    EXPECT_THAT(refused.error,
                AllOf(HasSubstr("6: "), HasSubstr("  orientation: \"ignore\" -> \"exif\"\n"),
                      HasSubstr("--set data.orientation=ignore")));
    EXPECT_EQ(Resume(simulated, images, forget, {"data.orientation=ignore"}).error, "no error");
    // No file has an orientation tag.
    const auto digits = [this](const Keys& keys) { return OfDigits(keys); };
    EXPECT_EQ(Resume(simulated, digits, forget, {}).error, "no error");
    const auto table = [this](const Keys& keys) { return OfTables(keys); };
    EXPECT_EQ(Resume(simulated, table, forget, {}).error, "no error");
  }
}

TEST_F(ResumedData, AnotherSplitIsRefusedByName) {
  WriteTable(Rows());
  const auto table = [this](const Keys& keys) { return OfTable(keys); };
  const auto change = [this] {
    RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) {
      info.data_hashes.all = DerivedHash(info.data_hashes.all, "another");
      info.data_hashes.splits.fill(info.data_hashes.all);
    });
  };
  for (const bool simulated : {false, true}) {
    EXPECT_THAT(Resume(simulated, table, change, {}).error,
                AllOf(HasSubstr("6: "), HasSubstr("  samples ("),
                      HasSubstr("resume with the files and the keys")));
    EXPECT_EQ(Resume(simulated, table, change, {"checkpoint.other_data=take"}).error, "no error");
  }
}

TEST_F(ResumedData, AnEvaluationWarnsOfAnOlderSplit) {
  WriteTable(Rows());
  const std::unique_ptr<Dataset> data = LoadData(OfTable());
  const auto message = [&](const DataHashes& hashes, bool evaluates) {
    CheckpointInfo info;
    info.images = ToText(*data->image_info());
    info.data_hashes = hashes;
    ::testing::internal::CaptureStderr();
    CheckTrainedOn(info, "the weights", *data, /*tell=*/true, evaluates);
    return ::testing::internal::GetCapturedStderr();
  };
  DataHashes older = data->Hashes();
  older.splits.fill("older");
  EXPECT_EQ(message(data->Hashes(), true), "");
  EXPECT_EQ(message({}, true), "") << "exported weights have no hashes";
  EXPECT_EQ(message(older, false), "");
  EXPECT_THAT(message(older, true), HasSubstr("the weights was trained on other samples"));
}

TEST_F(ResumedData, WeightsThatDoNotDescribeTheirDataHaveLearnedTargetsAsTheyAre) {
  Write("t.csv", "a,b,y\n1,2,30.5\n2,1,10\n3,5,20\n");
  const auto data =
      SourceOf("csv", "train: " + (folder_ / "t.csv").string() + ", label: y")->Load("", 1);
  EXPECT_TRUE(data->image_info()->scales_targets());
  EXPECT_THAT(NormaliseAsTrained({}, "w.safetensors", *data),
              HasSubstr("targets are taken as they are, since w.safetensors does not say"));
  EXPECT_FALSE(data->image_info()->scales_targets());
  EXPECT_EQ(NormaliseAsTrained({}, "w.safetensors", *data), "");
}

TEST_F(ResumedData, AnEvaluationTellsOfImagesThatAreReadInAnotherWay) {
  const auto message = [](nlohmann::json images, const RunConfig& config) {
    CheckpointInfo info;
    info.images = images.dump();
    ::testing::internal::CaptureStderr();
    CheckTrainedOn(info, "the weights", *LoadData(config), /*tell=*/true);
    return ::testing::internal::GetCapturedStderr();
  };
  const auto info_of = [](const RunConfig& config) {
    return nlohmann::json::parse(ToText(*LoadData(config)->image_info()));
  };
  WriteImages();
  const nlohmann::json info = info_of(OfImages());
  EXPECT_EQ(message(info, OfImages()), "");
  nlohmann::json older = info;
  older.erase("orientation");
  EXPECT_THAT(message(older, OfImages()),
              AllOf(HasSubstr("the weights was trained on images with orientation: ignore"),
                    HasSubstr("orientation: exif"), Not(HasSubstr("fit:"))));
  EXPECT_THAT(
      message(info, OfImages({"data.fit=crop"})),
      AllOf(HasSubstr("fit: stretch"), HasSubstr("fit: crop"), Not(HasSubstr("orientation:"))));
  nlohmann::json not_fitted = info;
  not_fitted["fit"] = "none";
  EXPECT_EQ(message(not_fitted, OfImages()), "");
  nlohmann::json digits = info_of(OfDigits());
  digits.erase("orientation");
  EXPECT_EQ(message(digits, OfDigits()), "");
}

// The run does not train on these samples.
TEST_F(ResumedData, OtherSamplesForTheTestAloneAreReported) {
  const auto table = [this](const Keys& keys) { return OfTables(keys); };
  const auto images = [this](Keys keys) {
    keys.push_back("data.test=" + (folder_ / "test").string());
    keys.emplace_back("data.validation=0.2");
    return OfImages(keys);
  };
  const auto limited = [&](Keys keys) {
    keys.emplace_back("data.limit=40");
    return table(keys);
  };
  const auto write = [this] {
    WriteTable(Rows());
    WriteTable(Rows(), "a,b,y", "u.csv");
    WriteImages();
    WriteImages(30, "test");
  };
  const auto change = [this] {
    std::vector<Row> rows = Rows();
    rows[0].a = "7.5";
    WriteTable(rows, "a,b,y", "u.csv");
    WriteImages(40, "test");
  };
  const auto change_all = [&] {
    change();
    std::vector<Row> rows = Rows();
    std::swap(rows[0].b, rows[1].b);
    WriteTable(rows);
    fs::rename(folder_ / "train/cat", folder_ / "train/x");
    fs::rename(folder_ / "train/dog", folder_ / "train/cat");
    fs::rename(folder_ / "train/x", folder_ / "train/dog");
  };
  const std::function<RunConfig(const Keys&)> configs[] = {table, images, limited};
  for (const bool simulated : {false, true}) {
    for (const auto& config : configs) {
      write();
      const Outcome taken = Resume(simulated, config, change, {});
      EXPECT_EQ(taken.error, "no error");
      EXPECT_THAT(taken.message, AllOf(HasSubstr("the test samples are not those of "),
                                       Not(HasSubstr("validation samples")),
                                       Not(HasSubstr("trained on other data"))));
      write();
      EXPECT_THAT(Resume(simulated, config, change_all, {}).error,
                  AllOf(HasSubstr("trained on other data"), HasSubstr("  samples (")));
    }
  }
}

// That hash covers all splits.
TEST_F(ResumedData, ACheckpointThatHashedNoSplitIsComparedAsAWhole) {
  const auto table = [this](const Keys& keys) { return OfTables(keys); };
  const auto forget = [this] {
    RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) {
      EXPECT_FALSE(info.data_hashes[Split::kTrain].empty());
      info.data_hashes.splits = {};
    });
  };
  for (const bool simulated : {false, true}) {
    WriteTable(Rows());
    WriteTable(Rows(), "a,b,y", "u.csv");
    EXPECT_EQ(Resume(simulated, table, forget, {}).error, "no error");
    const auto change = [&] {
      forget();
      std::vector<Row> rows = Rows();
      rows[0].a = "7.5";
      WriteTable(rows, "a,b,y", "u.csv");
    };
    EXPECT_THAT(Resume(simulated, table, change, {}).error,
                AllOf(HasSubstr("trained on other data"), HasSubstr("  samples of some split (")));
  }
}

// The best step and the patience use the validation samples if there are any.
TEST_F(ResumedData, OtherValidationSamplesAreReportedWithWhatGoesByThem) {
  WriteTable(Rows());
  const std::unique_ptr<Dataset> data = LoadData(OfTable({"data.validation=0.2"}));
  Checkpoint checkpoint;
  checkpoint.path = "step.h5";
  checkpoint.info.data_hashes = data->Hashes();
  const auto message = [&](Split split) {
    Checkpoint other = checkpoint;
    other.info.data_hashes[split] = "another";
    DataHashes hashes;
    ::testing::internal::CaptureStderr();
    CheckGoesOnWith(other, OfTable(), *data, hashes);
    EXPECT_EQ(hashes, checkpoint.info.data_hashes);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(message(Split::kValidation),
              AllOf(HasSubstr("the validation samples are not those of step.h5"),
                    HasSubstr("its validation results so far, best and patience with them, are")));
  EXPECT_THAT(message(Split::kTest),
              AllOf(HasSubstr("the test samples are not those of step.h5"),
                    HasSubstr("its test results so far are of the old samples")));
}

// One of 16 images is left out when they are loaded, and two are held out.
TEST_F(ResumedData, BrokenImagesMustLeaveABatch) {
  WriteImages();
  Write("train/cat/0.png", "broken");
  EXPECT_EQ(LoadData(OfImages({"batch=13", "data.skip_broken=1"}))->size(Split::kTrain), 13);
  EXPECT_THAT(MessageOf([&] {
                LoadData(OfImages({"batch=14", "data.skip_broken=1"}));
              }),
              HasSubstr("batch 14 is more than the 13 training samples of image_folder"));
}

TEST_F(ResumedData, TheSameDataAreNoOthers) {
  WriteTable(Rows());
  const auto table = [this](const Keys& keys) { return OfTable(keys); };
  for (const bool simulated : {false, true}) {
    const Outcome same = Resume(simulated, table, [] {}, {});
    EXPECT_EQ(same.error, "no error");
    EXPECT_THAT(same.message, AllOf(Not(HasSubstr("other data")), Not(HasSubstr("normalised")),
                                    Not(HasSubstr("samples are not those"))));
  }
}

}  // namespace
}  // namespace dtrain
