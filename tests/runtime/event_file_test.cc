// Checks TensorBoard files with an independent reader, byte by byte.
#include "framework/results/event_file.h"

#include <gmock/gmock.h>

#include "framework/results/tensorboard.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/event_reader.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;

// Values of RFC 3720, B.4.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(Crc32c(""), 0U);
}

uint32_t Unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

std::vector<ReadEvent> EventsIn(const fs::path& file) {
  std::vector<ReadEvent> events = EventsOf(
      Slurp(file),
      [](std::string_view bytes, uint32_t masked) { EXPECT_EQ(Unmasked(masked), Crc32c(bytes)); });
  for (const ReadEvent& event : events) EXPECT_EQ(event.wall_times, 1U);
  return events;
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

StepMetrics AtStep(int64_t step) {
  return {.at = {.step = step}, .loss = 2.5, .learning_rate = 0.25, .samples_per_second = 8};
}

TEST(TensorBoard, EveryValueIsRead) {
  const fs::path folder = FreshFolder() / "tensorboard";
  {
    TensorBoardWriter writer(folder);
    writer.Write(AtStep(300));
    writer.Write(EvaluationMetrics{
        .at = {.step = 300}, .loss = 0.5, .accuracy = 0.75, .others = {{"top5", 1}}});
    writer.Write(EvaluationMetrics{.at = {.step = 301}, .loss = 4, .split = "validation"});
  }
  ASSERT_EQ(FilesIn(folder).size(), 1U);
  const std::vector<ReadEvent> events = EventsIn(FilesIn(folder)[0]);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 300);
  EXPECT_THAT(
      events[1].scalars,
      ElementsAre(Pair("train/loss", 2.5F), Pair("train/learning_rate", 0.25F),
                  Pair("train/samples_per_second", 8.F), Pair("train/exposed_seconds", 0.F)));
  EXPECT_THAT(events[2].scalars, ElementsAre(Pair("test/loss", 0.5F), Pair("test/accuracy", 0.75F),
                                             Pair("test/top5", 1.F)));
  EXPECT_EQ(events[3].step, 301);
  EXPECT_THAT(events[3].scalars, ElementsAre(Pair("validation/loss", 4.F)));
}

// The file names sort in the order of their creation, even within a second.
TEST(TensorBoard, AResumedRunGoesOnInAnotherFile) {
  const fs::path folder = FreshFolder() / "tensorboard";
  for (const int64_t step : {0, 20, 40}) {
    TensorBoardWriter writer(folder, step == 0 ? std::nullopt : std::optional(step));
    writer.Write(AtStep(step + 1));
  }
  const std::vector<fs::path> files = FilesIn(folder);
  ASSERT_EQ(files.size(), 3U);
  for (size_t i = 0; i < files.size(); ++i) {
    const std::vector<ReadEvent> events = EventsIn(files[i]);
    EXPECT_EQ(events.back().step, 20 * static_cast<int64_t>(i) + 1);
    EXPECT_EQ(events[1].starts_session, i > 0);
    if (i > 0) {
      EXPECT_EQ(events[1].step, 20 * static_cast<int64_t>(i) + 1);
    }
  }
}

TEST(TensorBoard, AFreshRunRemovesTheFilesOfTheOneBefore) {
  const fs::path folder = FreshFolder() / "tensorboard";
  { TensorBoardWriter writer(folder); }
  std::ofstream(folder / "notes.txt") << "mine";
  std::ofstream(folder / "events.out.tfevents.1.host.7") << "another program's";
  { TensorBoardWriter writer(folder); }
  const std::vector<fs::path> files = FilesIn(folder);
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].filename(), "events.out.tfevents.1.host.7");
  EXPECT_EQ(files[2].filename(), "notes.txt");
}

}  // namespace
}  // namespace dtrain
