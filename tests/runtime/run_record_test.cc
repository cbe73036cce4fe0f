#include "framework/results/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/exchange/event_log.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunRecordTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }

  RunRecord Sample() const {
    RunRecord record;
    record.config_yaml = "batch: 64\n";
    record.model_yaml = "layers: []\n";
    record.plan.isa = "avx2";
    record.plan.buckets = {{0, 10}};
    record.weights_sha256 = std::string(64, 'a');
    record.logs = {"one", std::string("t\0o", 3), ""};
    return record;
  }

  std::string ErrorOf() const {
    return WhatOf<CheckpointError>([&] { ReadRecord(path_); });
  }

  const fs::path path_ =
      fs::temp_directory_path() / fmt::format("dtrain-record-{}.bin", ::getpid());
};

TEST_F(RunRecordTest, ReadsWhatItWrote) {
  WriteRecord(path_, Sample());
  const RunRecord record = ReadRecord(path_);
  EXPECT_EQ(record.config_yaml, Sample().config_yaml);
  EXPECT_EQ(record.model_yaml, Sample().model_yaml);
  EXPECT_EQ(record.plan, Sample().plan);
  EXPECT_EQ(record.weights_sha256, Sample().weights_sha256);
  EXPECT_EQ(record.logs, Sample().logs);
}

TEST_F(RunRecordTest, HasTheStepTimesOfEachWorker) {
  EventLog first, second;
  first.Add({EventKind::kBegin, 1, 0});
  first.Add({EventKind::kEnd, 1, 2'000'000'000});
  first.Add({EventKind::kMessage, 1, 3});
  first.Add({EventKind::kEnd, 1, 500'000'000});
  second.Add({EventKind::kEnd, 0, 1'000'000'000});
  RunRecord record = Sample();
  record.plan.workers = 2;
  record.logs = {first.bytes(), second.bytes()};
  EXPECT_EQ(RecordedStepSeconds(record), (std::vector<std::vector<double>>{{1}, {2, 0.5}}));
}

TEST_F(RunRecordTest, ARecordCutShortAnywhereIsRefused) {
  WriteRecord(path_, Sample());
  const std::string whole = ReadFile(path_);
  const size_t first_line = whole.find('\n') + 1;
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, size);
    EXPECT_THAT(ErrorOf(), HasSubstr(size < first_line ? "not a record of a run"
                                                       : "the record is cut short or damaged"))
        << size;
  }
}

TEST_F(RunRecordTest, AFlippedBitIsSeen) {
  WriteRecord(path_, Sample());
  std::string bytes = ReadFile(path_);
  bytes[bytes.size() / 2] ^= 1;
  WriteFileDurably(path_, bytes);
  EXPECT_THAT(ErrorOf(), HasSubstr("cut short or damaged"));
}

TEST_F(RunRecordTest, AnotherFileIsNoRecord) {
  for (const char* other : {"config: yes\n", "ddrain record 1\n", "dtrain record 10\n"}) {
    WriteFileDurably(path_, other);
    EXPECT_THAT(ErrorOf(), HasSubstr("not a record of a run")) << other;
  }
}

TEST_F(RunRecordTest, OfAnotherVersionIsRefused) {
  WriteRecord(path_, Sample());
  const std::string whole = ReadFile(path_);
  const size_t digit = whole.find('\n') - 1;
  for (char version = '0'; version <= whole[digit] + 1; ++version) {
    std::string bytes = whole.substr(0, whole.size() - 64);
    bytes[digit] = version;
    WriteFileDurably(path_, bytes + Sha256::Of(bytes));
    if (version == whole[digit]) {
      EXPECT_NO_THROW(ReadRecord(path_));
    } else {
      EXPECT_THAT(ErrorOf(),
                  HasSubstr(fmt::format("a record of version {}, this program reads version {}",
                                        version, whole[digit])));
    }
  }
}

}  // namespace
}  // namespace dtrain
