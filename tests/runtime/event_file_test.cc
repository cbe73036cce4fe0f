// TensorBoard's files beside a reader of its own: what the format says, byte by byte.
#include "framework/runtime/results/event_file.h"

#include <gmock/gmock.h>

#include <cstring>

#include "framework/runtime/results/tensorboard.h"
#include "tests/runtime/run_fixture.h"
#include "tests/weights/checkpoint_sample.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;

// RFC 3720, B.4.
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

template <class T>
T Read(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

uint64_t ReadVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = Read<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// The fields of a message: number -> the bytes of its last value.
std::map<uint64_t, std::vector<std::string>> FieldsOf(std::string_view bytes) {
  std::map<uint64_t, std::vector<std::string>> fields;
  while (!bytes.empty()) {
    const uint64_t key = ReadVarint(bytes);
    const std::string_view before = bytes;
    size_t length = key % 8 == 1 ? 8 : 4;
    if (key % 8 == 0) {
      ReadVarint(bytes);
      length = before.size() - bytes.size();
      bytes = before;
    }
    if (key % 8 == 2) length = ReadVarint(bytes);
    fields[key / 8].emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return fields;
}

struct ReadEvent {
  int64_t step = 0;
  std::string version;
  std::vector<std::pair<std::string, float>> scalars;
  bool starts_session = false;
};

ReadEvent EventOf(std::string_view payload) {
  ReadEvent event;
  auto fields = FieldsOf(payload);
  EXPECT_EQ(fields[1].size(), 1U);  // wall_time
  for (std::string_view bytes : fields[2]) event.step = static_cast<int64_t>(ReadVarint(bytes));
  for (const std::string& version : fields[3]) event.version = version;
  for (const std::string& summary : fields[5]) {
    const std::vector<std::string> values = FieldsOf(summary)[1];
    for (const std::string& value : values) {
      auto parts = FieldsOf(value);
      std::string_view bytes = parts[2].at(0);
      event.scalars.emplace_back(parts[1].at(0), Read<float>(bytes));
    }
  }
  for (const std::string& log : fields[7]) event.starts_session = FieldsOf(log)[1].at(0) == "\1";
  return event;
}

std::vector<ReadEvent> EventsIn(const fs::path& file) {
  const std::string content = Slurp(file);
  std::string_view bytes = content;
  std::vector<ReadEvent> events;
  while (!bytes.empty()) {
    const std::string_view head = bytes.substr(0, 8);
    const auto length = Read<uint64_t>(bytes);
    EXPECT_EQ(Unmasked(Read<uint32_t>(bytes)), Crc32c(head));
    const std::string_view payload = bytes.substr(0, length);
    bytes.remove_prefix(length);
    EXPECT_EQ(Unmasked(Read<uint32_t>(bytes)), Crc32c(payload));
    events.push_back(EventOf(payload));
  }
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

// In files whose names sort as they were begun, though they were within a second.
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
  { TensorBoardWriter writer(folder); }
  const std::vector<fs::path> files = FilesIn(folder);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].filename(), "notes.txt");
}

}  // namespace
}  // namespace dtrain
