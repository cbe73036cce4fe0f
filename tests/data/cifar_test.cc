#include "framework/data/images/cifar.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kRecord = 13;  // one label, 3 x 2 x 2 pixels

// Describes a set with two training batches of 4 records and a test batch of 2.
CifarInfo TinyInfo() {
  CifarInfo info;
  info.name = "tiny";
  info.images = {Shape{3, 2, 2}, 10, 0, 1};
  info.label_classes = {10};
  info.batches = {{"data_1.bin", Split::kTrain, 4},
                  {"data_2.bin", Split::kTrain, 4},
                  {"t.bin", Split::kTest, 2}};
  info.folder = "tiny-bin";
  info.archive = {"tiny-binary.tar.gz", {"http://127.0.0.1:1/t"}, std::string(64, '0'), 1};
  return info;
}

// Returns records with these labels; pixel i of record r is first + 16 r + i.
std::string Records(const std::vector<int>& labels, int first) {
  std::string bytes;
  for (size_t r = 0; r < labels.size(); ++r) {
    bytes += static_cast<char>(labels[r]);
    for (int i = 0; i < 12; ++i) bytes += static_cast<char>(first + 16 * static_cast<int>(r) + i);
  }
  return bytes;
}

const std::string kData1 = Records({1, 2, 3, 4}, 0);
const std::string kData2 = Records({5, 6, 7, 8}, 64);
const std::string kTest = Records({9, 0}, 128);

void WriteLoose(const TempFolder& folder, const std::string& below = "") {
  folder.Write(below + "data_1.bin", kData1);
  folder.Write(below + "data_2.bin", kData2);
  folder.Write(below + "t.bin", kTest);
}

// As in the published archives, the members are in no order and other files are between them.
std::vector<std::pair<std::string, std::string>> Members() {
  return {{"tiny-bin/readme.html", "<html>"},
          {"tiny-bin/t.bin", kTest},
          {"tiny-bin/data_2.bin", kData2},
          {"tiny-bin/batches.meta.txt", "airplane"},
          {"tiny-bin/data_1.bin", kData1}};
}

std::string LoadMessage(const TempFolder& folder) {
  return MessageOf<DataError>([&] { CifarSource(TinyInfo()).Load(folder.path(), 1); });
}

std::vector<int> LabelsOf(const Dataset& set, Split split) {
  Batch batch(set.fields(), set.size(split));
  std::vector<int64_t> all(static_cast<size_t>(set.size(split)));
  std::iota(all.begin(), all.end(), 0);
  set.Fill(split, all, kNoEpoch, batch);
  return {batch.fields[1].i32(), batch.fields[1].i32() + set.size(split)};
}

void ExpectTheTinySet(const Dataset& set) {
  EXPECT_EQ(set.size(Split::kTrain), 8);
  EXPECT_EQ(set.size(Split::kTest), 2);
  EXPECT_EQ(LabelsOf(set, Split::kTrain), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(LabelsOf(set, Split::kTest), (std::vector<int>{9, 0}));
  Batch batch(set.fields(), 1);
  set.Fill(Split::kTrain, std::vector<int64_t>{6}, kNoEpoch, batch);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(batch.fields[0].f32()[i], static_cast<float>(64 + 32 + i) / 255.0f);
  }
}

TEST(Cifar, LoadsUnpackedBatches) {
  for (const std::string below : {"", "tiny-bin/"}) {
    const TempFolder folder;
    WriteLoose(folder, below);
    ExpectTheTinySet(*CifarSource(TinyInfo()).Load(folder.path(), 1));
  }
}

TEST(Cifar, LoadsAnyArchive) {
  for (const char* name : {"tiny-binary.tar.gz", "rebuilt.tar.xz", "other.tgz", "plain.tar"}) {
    const TempFolder folder;
    folder.WriteTar(name, Members());
    ExpectTheTinySet(*CifarSource(TinyInfo()).Load(folder.path(), 1));
  }
}

TEST(Cifar, UnpackedBatchesGoBeforeArchivesAndThePublishedBeforeOthers) {
  const TempFolder folder;
  const auto first_label = [&] {
    return LabelsOf(*CifarSource(TinyInfo()).Load(folder.path(), 1), Split::kTrain)[0];
  };
  folder.WriteTar("a.tar.gz", {{"python/data_batch_1", "pickled"}});  // has no batches: skipped
  auto members = Members();
  members.back().second = Records({7, 2, 3, 4}, 0);
  folder.WriteTar("b.tar.gz", members);
  EXPECT_EQ(first_label(), 7);
  members.back().second = Records({8, 2, 3, 4}, 0);
  folder.WriteTar("tiny-binary.tar.gz", members);
  EXPECT_EQ(first_label(), 8);
  WriteLoose(folder, "tiny-bin/");
  EXPECT_EQ(first_label(), 1);
  WriteLoose(folder);
  folder.Write("data_1.bin", Records({9, 2, 3, 4}, 0));
  EXPECT_EQ(first_label(), 9);
}

TEST(Cifar, TheLastLabelOfARecordIsLearned) {
  CifarInfo info = TinyInfo();
  info.label_classes = {3, 10};
  info.batches = {{"train.bin", Split::kTrain, 2}, {"test.bin", Split::kTest, 1}};
  const std::string pixels(12, 'p');
  const TempFolder folder;
  folder.Write("train.bin", "\2\7" + pixels + "\1\6" + pixels);
  folder.Write("test.bin", "\1\5" + pixels);
  const auto set = CifarSource(info).Load(folder.path(), 1);
  EXPECT_EQ(LabelsOf(*set, Split::kTrain), (std::vector<int>{7, 6}));
  EXPECT_EQ(LabelsOf(*set, Split::kTest), (std::vector<int>{5}));
  // Record 1, which begins at byte 14, has the superclass 3; the valid ones are 0 to 2.
  folder.Write("train.bin", "\2\7" + pixels + "\3\6" + pixels);
  EXPECT_THAT(MessageOf<DataError>([&] { CifarSource(info).Load(folder.path(), 1); }),
              HasSubstr("the label of record 1 (byte 14) is 3, the 3 classes are 0 to 2"));
}

TEST(Cifar, EveryLabelOfARecordIsChecked) {
  CifarInfo info = TinyInfo();
  info.label_classes = {3, 10};
  info.batches = {{"train.bin", Split::kTrain, 1}, {"test.bin", Split::kTest, 1}};
  const std::string pixels(12, 'p');
  const TempFolder folder;
  folder.Write("train.bin", "\2\12" + pixels);
  folder.Write("test.bin", "\1\5" + pixels);
  EXPECT_THAT(MessageOf<DataError>([&] { CifarSource(info).Load(folder.path(), 1); }),
              HasSubstr("the label of record 0 (byte 1) is 10, the 10 classes are 0 to 9"));
}

TEST(Cifar, SmallArchivesAreNotKeptUnpacked) {
  const TempFolder folder, cache;
  const ScopedVariable variable("XDG_CACHE_HOME", cache.path().c_str());
  folder.WriteTar("tiny-binary.tar.gz", Members());
  ExpectTheTinySet(*CifarSource(TinyInfo()).Load(folder.path(), 1));
  folder.WriteTar("tiny-binary.tar", Members());
  const fs::path archive = folder / "tiny-binary.tar";
  fs::remove(folder / "tiny-binary.tar.gz");
  fs::resize_file(archive, (16 << 20) - 1);
  ExpectTheTinySet(*CifarSource(TinyInfo()).Load(folder.path(), 1));
  EXPECT_TRUE(fs::is_empty(cache.path()));
  fs::resize_file(archive, 16 << 20);
  ExpectTheTinySet(*CifarSource(TinyInfo()).Load(folder.path(), 1));
  EXPECT_FALSE(fs::is_empty(cache.path()));
}

TEST(Cifar, TruncatedBatchNamesTheRecord) {
  const TempFolder folder;
  WriteLoose(folder);
  const fs::path path = folder.Write("data_2.bin", kData2.substr(0, 2 * kRecord + 5));
  EXPECT_THAT(
      LoadMessage(folder),
      AllOf(HasSubstr(path.string() + " ends at byte 31, inside record 2 of 4 (bytes 26 to 39)"),
            HasSubstr("truncated")));
  // The file is cut between two records, then to nothing.
  folder.Write("data_2.bin", kData2.substr(0, 3 * kRecord));
  EXPECT_THAT(LoadMessage(folder), HasSubstr("ends at byte 39, inside record 3 of 4"));
  folder.Write("data_2.bin", "");
  EXPECT_THAT(LoadMessage(folder), HasSubstr("ends at byte 0, inside record 0 of 4"));
}

TEST(Cifar, TruncatedBatchInAnArchive) {
  const TempFolder folder;
  auto members = Members();
  members[2].second.resize(2 * kRecord);
  folder.WriteTar("x.tar.xz", members);
  EXPECT_THAT(LoadMessage(folder),
              HasSubstr((folder / "x.tar.xz").string() +
                        ":tiny-bin/data_2.bin ends at byte 26, inside record 2 of 4"));
}

TEST(Cifar, RecordsOfAnotherSizeAreNotTakenForWrongLabels) {
  const TempFolder folder;
  WriteLoose(folder);
  std::string longer;
  for (int r = 0; r < 4; ++r) longer += "\xff" + kData1.substr(r * kRecord, kRecord);
  const fs::path path = folder.Write("data_1.bin", longer);
  EXPECT_THAT(LoadMessage(folder),
              AllOf(HasSubstr(path.string() +
                              ": content follows at byte 52, where 4 records of 13 bytes end"),
                    HasSubstr("another size (CIFAR-10: 3073 bytes, CIFAR-100: 3074)")));
}

TEST(Cifar, LabelOutOfRangeNamesRecordAndByte) {
  const TempFolder folder;
  WriteLoose(folder);
  const fs::path path = folder.Write("data_2.bin", Records({5, 6, 11, 12}, 64));
  EXPECT_THAT(LoadMessage(folder),
              HasSubstr(path.string() +
                        ": the label of record 2 (byte 26) is 11, the 10 classes are 0 to 9"));
}

TEST(Cifar, MissingBatches) {
  const TempFolder folder;
  WriteLoose(folder);
  fs::remove(folder / "data_2.bin");
  fs::remove(folder / "t.bin");
  EXPECT_THAT(LoadMessage(folder),
              AllOf(HasSubstr(folder.path().string() +
                              " has 1 of the 3 batches of 'tiny', missing: data_2.bin, t.bin"),
                    HasSubstr("dtrain data fetch tiny")));
  fs::remove(folder / "data_1.bin");
  auto members = Members();
  members.pop_back();
  folder.WriteTar("x.tar.gz", members);
  EXPECT_THAT(LoadMessage(folder),
              HasSubstr((folder / "x.tar.gz").string() +
                        " has 2 of the 3 batches of 'tiny', missing: data_1.bin"));
}

TEST(Cifar, NothingHere) {
  const TempFolder folder;
  EXPECT_THAT(
      LoadMessage(folder),
      AllOf(HasSubstr(folder.path().string() +
                      " has no data_1.bin, neither unpacked nor in an archive (.tar.gz, .tar.xz); "
                      "there is no archive"),
            HasSubstr("dtrain data fetch tiny (the binary version)")));
  folder.WriteTar("tiny-python.tar.gz", {{"tiny-py/data_batch_1", "pickled"}});
  EXPECT_THAT(LoadMessage(folder), HasSubstr("archives without any batch: tiny-python.tar.gz"));
}

TEST(Cifar, BrokenArchives) {
  const TempFolder folder;
  const fs::path path = folder / "tiny-binary.tar.gz";
  folder.Write("tiny-binary.tar.gz", "<html>404: not found</html>");
  EXPECT_THAT(LoadMessage(folder), HasSubstr(path.string() + " is not a gzip file"));
  // Noise does not compress, so half of the archive's bytes hold about half of the content.
  auto members = Members();
  members[0].second.resize(300'000);
  for (size_t i = 0; i < members[0].second.size(); ++i) {
    members[0].second[i] = static_cast<char>(i * i * 2654435761u >> 13);
  }
  folder.WriteTar("tiny-binary.tar.gz", members);
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(LoadMessage(folder),
              AllOf(HasSubstr(path.string() + " is damaged: "), HasSubstr(", near byte "),
                    HasSubstr("of the unpacked archive | fetch the file again")));
}

TEST(Cifar, ArchiveThatBreaksInsideABatchNamesMemberAndPosition) {
  CifarInfo info = TinyInfo();
  info.batches[0].records = 20'000;
  std::string noise(20'000 * kRecord, '\0');
  for (size_t i = 0; i < noise.size(); ++i) {
    if (i % kRecord != 0) noise[i] = static_cast<char>(i * i * 2654435761u >> 13);
  }
  const TempFolder folder;
  folder.WriteTar("x.tar.gz", {{"b/data_1.bin", noise}, {"b/data_2.bin", kData2}});
  fs::resize_file(folder / "x.tar.gz", fs::file_size(folder / "x.tar.gz") / 2);
  EXPECT_THAT(MessageOf<DataError>([&] { CifarSource(info).Load(folder.path(), 1); }),
              AllOf(HasSubstr("x.tar.gz:b/data_1.bin is damaged after byte "),
                    HasSubstr("unexpected end of file"), HasSubstr("fetch the file again")));
}

// The checksum of the archive is at its end, more than one block after the last batch.
TEST(Cifar, AnArchiveIsComparedWithItsSumAlsoWhereOthersFollowTheBatches) {
  auto members = Members();
  std::string noise(400'000, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 2654435761u >> 13);
  members.emplace_back("tiny-bin/behind", noise);
  const TempFolder folder;
  const fs::path path = folder.WriteTar("x.tar.gz", members);
  EXPECT_NO_THROW(CifarSource(TinyInfo()).Load(folder.path(), 1));
  std::string bytes = ReadFile(path);
  bytes[bytes.size() - 8] ^= 1;
  folder.Write("x.tar.gz", bytes);
  EXPECT_THAT(LoadMessage(folder),
              AllOf(HasSubstr(path.string() + " is damaged: "), HasSubstr("incorrect data check")));
}

// Returns the training images of the tiny set under `config`, as some epoch sees them.
std::vector<float> TrainingImages(const TempFolder& folder, const std::string& config,
                                  uint64_t seed) {
  config::Document document = config::Document::FromText(config, "test.yaml");
  CifarSource source(TinyInfo());
  config::Reader reader = document.root();
  source.Configure(reader);
  document.Finish();
  const auto set = source.Load(folder.path(), seed);
  Batch batch(set->fields(), 8);
  set->Fill(Split::kTrain, std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, 5, batch);
  return {batch.fields[0].f32(), batch.fields[0].f32() + 8 * 12};
}

TEST(Cifar, AugmentsByDefaultAndBySeed) {
  const TempFolder folder;
  WriteLoose(folder);
  const std::vector<float> plain = TrainingImages(folder, "{augment: none}", 1);
  EXPECT_EQ(plain[13], 17 / 255.0f);
  EXPECT_EQ(plain, TrainingImages(folder, "{augment: none}", 2));
  const std::vector<float> augmented = TrainingImages(folder, "{}", 1);
  EXPECT_NE(augmented, plain);
  EXPECT_EQ(augmented, TrainingImages(folder, "{augment: default}", 1));
  EXPECT_NE(augmented, TrainingImages(folder, "{}", 2));
  EXPECT_THAT(MessageOf<ConfigError>([&] { TrainingImages(folder, "{augment: defualt}", 1); }),
              AllOf(HasSubstr("test.yaml:1:11"), HasSubstr("defualt"), HasSubstr("default, none")));
}

TEST(Cifar, TheManifestFollowsContentNotPacking) {
  const TempFolder loose, packed, other;
  WriteLoose(loose);
  packed.WriteTar("x.tar.xz", Members());
  WriteLoose(other);
  other.Write("t.bin", Records({9, 1}, 128));
  const CifarSource source(TinyInfo());
  const std::string hash = source.Load(loose.path(), 1)->ManifestHash();
  EXPECT_EQ(source.Load(packed.path(), 2)->ManifestHash(), hash);
  EXPECT_NE(source.Load(other.path(), 1)->ManifestHash(), hash);
}

TEST(Cifar, PublishedSizes) {
  for (const auto& [name, classes] : {std::pair{"cifar10", 10}, std::pair{"cifar100", 100}}) {
    const auto source = DatasetRegistry::Get("data set", name).make();
    EXPECT_EQ(source->size(Split::kTrain), 50000);
    EXPECT_EQ(source->size(Split::kTest), 10000);
    EXPECT_EQ(source->classes(), classes);
    EXPECT_EQ(source->fields()[0].sample_shape, (Shape{3, 32, 32}));
  }
}

}  // namespace
}  // namespace dtrain
