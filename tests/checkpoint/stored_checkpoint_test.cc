// Reads sealed checkpoints from disk, and those from before seals existed. without_seal.h5 is
// CheckpointSample as dtrain wrote it at revision f15a69d.
#include "framework/checkpoint/stored_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "framework/core/sha256.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/checkpoint/foreign_hdf5.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWithoutSeal[] = DTRAIN_SOURCE_DIR "/tests/checkpoint/without_seal.h5";

std::vector<std::string> NamesOf(const ArenaLayout& layout) {
  std::vector<std::string> names;
  for (const ArenaEntry& entry : layout.entries) names.push_back(entry.name);
  return names;
}

// Builds the seal from the description in checkpoint_seal.h.
std::string Sealed(const std::string& content) {
  std::string seal = "dtrain checkpoint\nversion 1\nbytes " + std::to_string(content.size()) +
                     "\nsha256 " + Sha256::Of(content) + "\n";
  return seal.append(512 - seal.size(), '\n') + content;
}

class StoredCheckpoints : public ::testing::Test {
 protected:
  std::string ErrorOf(const fs::path& path) {
    return WhatOf<CheckpointError>([&] { ReadStoredCheckpoint(path, CheckpointPart::kAll); });
  }
  std::string ErrorOfBytes(const std::string& bytes) {
    Spit(folder_ / "bad.h5", bytes);
    return ErrorOf(folder_ / "bad.h5");
  }
  std::string Good() {
    WriteCheckpoint(folder_ / "c.h5", sample_.View());
    return Slurp(folder_ / "c.h5");
  }

  CheckpointSample sample_;
  fs::path folder_ = FreshFolder();
};

TEST_F(StoredCheckpoints, ASealLiesInFrontOfHdf5) {
  const std::string good = Good();
  EXPECT_EQ(good.substr(512, 8), "\x89HDF\r\n\x1a\n");
  EXPECT_EQ(Sealed(good.substr(512)), good);
}

TEST_F(StoredCheckpoints, PartsAreReadAsAsked) {
  Good();
  const fs::path path = folder_ / "c.h5";
  const StoredCheckpoint info = ReadStoredCheckpoint(path, CheckpointPart::kInfo);
  EXPECT_EQ(info.info, sample_.info);
  EXPECT_THAT(info.weights, IsEmpty());
  const StoredCheckpoint model = ReadStoredCheckpoint(path, CheckpointPart::kModel);
  EXPECT_TRUE(SameBits(model.weights, sample_.weights));
  EXPECT_TRUE(SameBits(model.state, sample_.state));
  EXPECT_THAT(NamesOf(model.layout.parameters),
              ElementsAre("ip1.bias", "ip1.weight", "scale", "conv1.weight"));
  EXPECT_THAT(model.solver, IsEmpty());
  const StoredCheckpoint all = ReadStoredCheckpoint(path, CheckpointPart::kAll);
  ASSERT_THAT(all.solver, SizeIs(1));
  EXPECT_TRUE(SameBits(all.solver.at("momentum"), sample_.momentum));
}

TEST_F(StoredCheckpoints, AFileWithoutASealIsReadToTheBit) {
  const Checkpoint read = ReadCheckpoint(kWithoutSeal, sample_.layout);
  EXPECT_EQ(read.info, sample_.info);
  EXPECT_TRUE(SameBits(read.weights, sample_.weights));
  EXPECT_TRUE(SameBits(read.state, sample_.state));
  ASSERT_THAT(read.solver, SizeIs(1));
  EXPECT_TRUE(SameBits(read.solver.at("momentum"), sample_.momentum));
  EXPECT_EQ(ReadStoredCheckpoint(kWithoutSeal, CheckpointPart::kInfo).info, sample_.info);
  EXPECT_TRUE(SameBits(ReadWeights(kWithoutSeal, sample_.layout).weights, sample_.weights));
}

// Returns the page faults of all children that have ended: a larger number shows that a child did
// work.
int64_t FaultsOfChildren() {
  rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_minflt;
}

TEST_F(StoredCheckpoints, OnlyFilesWithoutASealAreReadByAChild) {
  Good();
  const int64_t before = FaultsOfChildren();
  EXPECT_EQ(ErrorOf(folder_ / "c.h5"), "no error");
  EXPECT_EQ(FaultsOfChildren(), before);
  EXPECT_EQ(ErrorOf(kWithoutSeal), "no error");
  EXPECT_GT(FaultsOfChildren(), before);
}

TEST_F(StoredCheckpoints, DamageToAFileWithoutASealIsNamed) {
  const auto with_flip_in = [](const std::vector<float>& numbers) {
    std::string bytes = Slurp(kWithoutSeal);
    const std::string of_ip1(reinterpret_cast<const char*>(numbers.data() + 3), 24 * 4);
    bytes.at(bytes.find(of_ip1) + 5) ^= 1;
    return bytes;
  };
  EXPECT_THAT(
      ErrorOfBytes(with_flip_in(sample_.weights)),
      AllOf(HasSubstr("cannot read " + (folder_ / "bad.h5").string() + ": /model/ip1.weight: "),
            HasSubstr("Fletcher32 checksum")));
  EXPECT_THAT(ErrorOfBytes(with_flip_in(sample_.momentum)),
              HasSubstr("bad.h5: /solver/momentum/ip1.weight: "));
  EXPECT_THAT(ErrorOfBytes(Slurp(kWithoutSeal).substr(0, 4000)),
              HasSubstr("it is truncated or damaged"));
}

// The checksum of zeros is zero, so HDF5 does not detect it.
TEST_F(StoredCheckpoints, ATextThatBecameZerosIsNoText) {
  std::string bytes = Slurp(kWithoutSeal);
  const std::string text = sample_.info.config_yaml + '\0';
  constexpr size_t kChecksumBytes = 4;
  bytes.replace(bytes.find(text), text.size() + kChecksumBytes, text.size() + kChecksumBytes, '\0');
  EXPECT_THAT(ErrorOfBytes(bytes), HasSubstr("bad.h5: /run/config holds zeros"));
}

TEST_F(StoredCheckpoints, ALostOrMovedSealIsFound) {
  const std::string good = Good();
  // Both begin as a file without a seal does.
  EXPECT_THAT(ErrorOfBytes(good.substr(512)),
              AnyOf(HasSubstr("its format is 2, not 1"), HasSubstr("cannot read")));
  EXPECT_THAT(ErrorOfBytes(good.substr(512, 512) + good.substr(0, 512) + good.substr(1024)),
              HasSubstr("cannot read"));
  EXPECT_THAT(ErrorOfBytes(std::string(512, '\0') + good.substr(512)), HasSubstr("is damaged: "));
  EXPECT_THAT(ErrorOfBytes(good.substr(0, 512)), HasSubstr("is damaged: "));
  EXPECT_THAT(ErrorOfBytes(Sealed(Slurp(kWithoutSeal))), HasSubstr("cannot read"));
}

TEST_F(StoredCheckpoints, DataSetsAreOpenedByTheListedNames) {
  Hdf5Builder out(512);
  WriteContent(out, sample_.View());
  const float one = 1;
  out.WriteFloats("/model/unlisted", {1}, &one);
  MemoryFile& file = out.Finish();
  Spit(folder_ / "more.h5", Sealed(std::string(file.Content().substr(512))));
  const StoredCheckpoint stored = ReadStoredCheckpoint(folder_ / "more.h5", CheckpointPart::kModel);
  EXPECT_TRUE(SameBits(stored.weights, sample_.weights));
  EXPECT_THAT(stored.layout.parameters.entries, SizeIs(4));
}

TEST_F(StoredCheckpoints, NewerFormatsAreRefused) {
  Hdf5Builder out(512);
  out.SetAttribute("/run", "format", int64_t{3});
  const std::string content(out.Finish().Content().substr(512));
  const auto error_of = [&](const std::string& bytes) -> std::string {
    Spit(folder_ / "bad.h5", bytes);
    try {
      ReadStoredCheckpoint(folder_ / "bad.h5", CheckpointPart::kAll);
    } catch (const CheckpointError& error) {
      return error.what() + (": " + error.hint());
    }
    return "no error";
  };
  EXPECT_THAT(error_of(Sealed(content)),
              HasSubstr("its format is 3, not 2: a newer program wrote it"));
  EXPECT_THAT(error_of(content),
              HasSubstr("its format is 3, not 1: it has lost its first 512 bytes"));
}

// A newer seal only shares the first two lines with this version.
TEST_F(StoredCheckpoints, NewerSealsAreRefusedAsSuch) {
  const std::string good = Good(), first = "dtrain checkpoint\nversion ";
  const auto with_lines = [&](const std::string& lines) {
    return first + lines + good.substr((first + lines).size());
  };
  const std::string newer = "cannot read " + (folder_ / "bad.h5").string() +
                            ": a newer program wrote it (its first block has version ";
  EXPECT_EQ(ErrorOfBytes(with_lines("2\nblake3 0123")), newer + "2, not 1)");
  EXPECT_EQ(ErrorOfBytes(first + "10\n"), newer + "10, not 1)");
  for (const char* damaged : {"0\n", "-2\n", "2x\n", "x\n", "\n", "99999999999999999999\n"}) {
    EXPECT_THAT(ErrorOfBytes(with_lines(damaged)), HasSubstr("is damaged: ")) << damaged;
  }
}

TEST_F(StoredCheckpoints, OtherFilesAndPipesAreRefused) {
  EXPECT_THAT(ErrorOfBytes("something else"),
              HasSubstr("it is neither a checkpoint nor a safetensors file"));
  EXPECT_THAT(ErrorOfBytes(""), HasSubstr("it is neither a checkpoint nor a safetensors file"));
  EXPECT_THAT(ErrorOf(folder_ / "none.h5"), HasSubstr("No such file or directory"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe.h5").c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf(folder_ / "pipe.h5"), HasSubstr("it is not a regular file"));
  EXPECT_THAT(ErrorOf("/dev/zero"), HasSubstr("it is not a regular file"));
}

// Tests a sealed file, and one from before seals existed, which a child process reads.
TEST_F(StoredCheckpoints, WeightsInAnotherFileAreRefusedByName) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const Elsewhere where : kEverywhere) {
    for (const std::string& other : {std::string("/etc/passwd"), pipe, std::string("/dev/zero")}) {
      Good();
      MoveTo(folder_ / "c.h5", "model", "ip1.weight", {3, 8}, where, other);
      SealAgain(folder_ / "c.h5");
      EXPECT_THAT(
          ErrorOf(folder_ / "c.h5"),
          AllOf(HasSubstr("cannot read " + (folder_ / "c.h5").string()), HasSubstr("model/")));
      fs::copy_file(kWithoutSeal, folder_ / "old.h5", fs::copy_options::overwrite_existing);
      fs::permissions(folder_ / "old.h5", fs::perms::owner_all);
      MoveTo(folder_ / "old.h5", "model", "ip1.weight", {3, 8}, where, other);
      EXPECT_THAT(
          ErrorOf(folder_ / "old.h5"),
          AllOf(HasSubstr("cannot read " + (folder_ / "old.h5").string()), HasSubstr("model")));
    }
  }
}

}  // namespace
}  // namespace dtrain
