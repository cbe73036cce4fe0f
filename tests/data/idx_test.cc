#include "framework/data/images/idx.h"

#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string BigEndian(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (const uint32_t v : values) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(v >> shift);
  }
  return bytes;
}

std::string Pixels(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7);
  return bytes;
}

std::string Images(uint32_t count, uint32_t rows, uint32_t columns) {
  return BigEndian({2051, count, rows, columns}) + Pixels(size_t{count} * rows * columns);
}

std::string Labels(const std::string& labels) {
  return BigEndian({2049, static_cast<uint32_t>(labels.size())}) + labels;
}

IdxInfo TinyIdxInfo() { return {"tiny", {Shape{1, 2, 3}, 4, 0.25f, 0.5f}, 5, 2, {}}; }

// Writes a complete set: 5 training and 2 test images of 2 x 3 pixels.
void WriteSet(const TempFolder& folder) {
  folder.WriteGzip("train-images-idx3-ubyte.gz", Images(5, 2, 3));
  folder.WriteGzip("train-labels-idx1-ubyte.gz", Labels(std::string("\0\1\2\3\0", 5)));
  folder.Write("t10k-images.idx3-ubyte", Images(2, 2, 3));
  folder.Write("t10k-labels-idx1-ubyte", Labels(std::string("\3\1", 2)));
}

std::string IdxMessage(const TempFolder& folder) {
  return MessageOf<DataError>([&] { IdxSource(TinyIdxInfo()).Load(folder.path(), 1); });
}

std::string ImagesMessage(const fs::path& path) {
  return MessageOf<DataError>([&] { ReadIdxImages(path); });
}

std::string LabelsMessage(const fs::path& path) {
  return MessageOf<DataError>([&] { ReadIdxLabels(path, 10); });
}

TEST(Idx, ReadsPlainAndGzipAlike) {
  const TempFolder folder;
  const IdxImages plain = ReadIdxImages(folder.Write("images", Images(3, 4, 5)));
  const IdxImages packed = ReadIdxImages(folder.WriteGzip("images.gz", Images(3, 4, 5)));
  EXPECT_EQ(plain.count, 3);
  EXPECT_EQ(plain.rows, 4);
  EXPECT_EQ(plain.columns, 5);
  const std::string pixels = Pixels(60);
  EXPECT_EQ(plain.pixels, std::vector<uint8_t>(pixels.begin(), pixels.end()));
  EXPECT_EQ(plain.pixels, packed.pixels);
}

TEST(Idx, LoadsASetAndNormalises) {
  const TempFolder folder;
  WriteSet(folder);
  const auto set = IdxSource(TinyIdxInfo()).Load(folder.path(), 1);
  EXPECT_EQ(set->size(Split::kTrain), 5);
  EXPECT_EQ(set->size(Split::kTest), 2);
  EXPECT_EQ(set->classes(), 4);
  Batch batch(set->fields(), 3);
  batch.Resize(2);
  set->Fill(Split::kTrain, std::vector<int64_t>{3, 1}, 0, batch);
  EXPECT_EQ(batch.fields[0].shape, (Shape{2, 1, 2, 3}));
  EXPECT_EQ(batch.fields[1].shape, (Shape{2}));
  EXPECT_EQ(batch.fields[1].i32()[0], 3);
  EXPECT_EQ(batch.fields[1].i32()[1], 1);
  // Pixel 0 of sample 3 is byte 18 of the data, whose value is 18 * 7 = 126.
  EXPECT_EQ(batch.fields[0].f32()[0], (126 / 255.0f - 0.25f) / 0.5f);
  EXPECT_EQ(batch.fields[0].f32()[6], (42 / 255.0f - 0.25f) / 0.5f);
}

TEST(Idx, ManifestHashFollowsContent) {
  const TempFolder folder;
  WriteSet(folder);
  const IdxSource source(TinyIdxInfo());
  const std::string hash = source.Load(folder.path(), 1)->ManifestHash();
  EXPECT_EQ(hash, source.Load(folder.path(), 2)->ManifestHash());
  folder.Write("t10k-labels-idx1-ubyte", Labels(std::string("\3\2", 2)));
  EXPECT_NE(hash, source.Load(folder.path(), 1)->ManifestHash());
}

TEST(Idx, MissingFileListsWhatWasLookedFor) {
  const TempFolder folder;
  WriteSet(folder);
  fs::remove(folder / "train-labels-idx1-ubyte.gz");
  EXPECT_THAT(IdxMessage(folder),
              AllOf(HasSubstr(folder.path().string() +
                              " has none of train-labels-idx1-ubyte.gz, "
                              "train-labels-idx1-ubyte, train-labels.idx1-ubyte.gz, "
                              "train-labels.idx1-ubyte"),
                    HasSubstr("dtrain data fetch tiny")));
}

TEST(Idx, TruncatedHeader) {
  const TempFolder folder;
  const fs::path path = folder.Write("images", Images(3, 4, 5).substr(0, 10));
  EXPECT_THAT(ImagesMessage(path),
              HasSubstr(path.string() + " ends at byte 10, inside the header (bytes 8 to 12)"));
}

TEST(Idx, EmptyFile) {
  const TempFolder folder;
  const fs::path path = folder.Write("images", "");
  EXPECT_THAT(ImagesMessage(path),
              HasSubstr(path.string() + " ends at byte 0, inside the header (bytes 0 to 4)"));
}

TEST(Idx, TruncatedContentOfAGzip) {
  const TempFolder folder;
  const fs::path path = folder.WriteGzip("images.gz", Images(30, 4, 5).substr(0, 500));
  EXPECT_THAT(
      ImagesMessage(path),
      HasSubstr(path.string() + " ends at byte 500, inside 30 images of 4 x 5 (bytes 16 to 616)"));
}

TEST(Idx, TruncatedGzipStream) {
  const TempFolder folder;
  std::string noise = Images(1, 1000, 1000);
  for (size_t i = 16; i < noise.size(); ++i)
    noise[i] = static_cast<char>(i * i * 2654435761u >> 13);
  const fs::path path = folder.WriteGzip("images.gz", noise);
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(ImagesMessage(path), AllOf(HasSubstr(path.string() + " is damaged after byte "),
                                         HasSubstr("unexpected end of file")));
}

TEST(Idx, TruncatedPlainContent) {
  const TempFolder folder;
  const fs::path path = folder.Write("images", Images(30, 4, 5).substr(0, 500));
  EXPECT_THAT(ImagesMessage(path),
              HasSubstr(path.string() + ": the header (bytes 4 to 16) promises 30 images of 4 x 5, "
                                        "600 B, more than a file of 500 bytes can hold"));
}

TEST(Idx, WrongMagic) {
  const TempFolder folder;
  const fs::path path = folder.Write("images", BigEndian({1234, 1, 1, 1}) + "x");
  EXPECT_THAT(ImagesMessage(path),
              HasSubstr(path.string() + ": the magic number at byte 0 is 1234 (0x000004d2), "
                                        "IDX images have 2051"));
}

TEST(Idx, ImagesAndLabelsExchanged) {
  const TempFolder folder;
  const fs::path path = folder.Write("labels", Images(1, 2, 3));
  EXPECT_THAT(LabelsMessage(path),
              AllOf(HasSubstr("the magic number at byte 0 is 2051"), HasSubstr("labels have 2049"),
                    HasSubstr("images and labels may be exchanged")));
}

TEST(Idx, GzipWithoutItsEnding) {
  const TempFolder folder;
  fs::rename(folder.WriteGzip("images.gz", Images(1, 2, 3)), folder / "images");
  EXPECT_THAT(ImagesMessage(folder / "images"),
              AllOf(HasSubstr("the magic number at byte 0 is"),
                    HasSubstr("this is a gzip file: give its name the ending .gz")));
}

TEST(Idx, NotReallyGzip) {
  const TempFolder folder;
  const fs::path path = folder.Write("images.gz", "<html>404 not found</html>");
  EXPECT_THAT(
      ImagesMessage(path),
      HasSubstr(path.string() + " is not a gzip file: it does not begin with the bytes 1f 8b"));
}

TEST(Idx, MoreContentThanTheHeaderSays) {
  const TempFolder folder;
  const fs::path path = folder.WriteGzip("images.gz", Images(3, 4, 5) + "more");
  EXPECT_THAT(ImagesMessage(path),
              HasSubstr(path.string() + ": content follows at byte 76, where the 3 images of 4 x 5 "
                                        "of the header end"));
}

TEST(Idx, LabelCountLargerThanTheFile) {
  const TempFolder folder;
  const fs::path path = folder.Write("labels", BigEndian({2049, 1000}) + "abc");
  EXPECT_THAT(LabelsMessage(path),
              HasSubstr("promises 1000 labels, 1.0 kB, more than a file of 11"));
}

// A header may promise as many bytes as the file has, or as a gzip file of its size can hold.
// Within this bound only reading finds a shorter content.
TEST(Idx, PromisesHaveABound) {
  const TempFolder folder;
  const auto message = [&](uint32_t count, const std::string& ending) {
    const std::string content = BigEndian({2049, count}) + "abc";
    return LabelsMessage(ending.empty() ? folder.Write("labels", content)
                                        : folder.WriteGzip("labels.gz", content));
  };
  EXPECT_THAT(message(11, ""), HasSubstr("ends at byte 11, inside 11 labels (bytes 8 to 19)"));
  EXPECT_THAT(message(12, ""), HasSubstr("promises 12 labels, 12 B, more than a file of 11 bytes"));
  message(40'000, ".gz");
  const auto bytes = static_cast<uint32_t>(fs::file_size(folder / "labels.gz"));
  EXPECT_THAT(message(1032 * bytes, ".gz"), HasSubstr("ends at byte 11, inside "));
  ASSERT_EQ(fs::file_size(folder / "labels.gz"), bytes);
  EXPECT_THAT(message(1032 * bytes + 1, ".gz"), HasSubstr("more than a file of "));
}

TEST(Idx, OversizedDimensionsAreRefusedBeforeAllocating) {
  const TempFolder folder;
  const uint32_t most = 0xffffffff;
  const std::string header = BigEndian({2051, most, most, most});
  for (const fs::path& path :
       {folder.Write("images", header), folder.WriteGzip("images.gz", header)}) {
    EXPECT_THAT(ImagesMessage(path),
                AllOf(HasSubstr(path.string() + ": the header (bytes 4 to 16) promises 4294967295 "
                                                "images of 4294967295 x 4294967295"),
                      HasSubstr("more than dtrain loads (68.7 GB)")));
  }
}

TEST(Idx, SizesAGzipCannotHoldAreRefusedBeforeAllocating) {
  const TempFolder folder;
  const fs::path path = folder.WriteGzip("images.gz", BigEndian({2051, 60000, 280, 280}));
  EXPECT_THAT(ImagesMessage(path),
              AllOf(HasSubstr("60000 images of 280 x 280, 4.7 GB, more than a "),
                    HasSubstr("bytes can hold")));
}

TEST(Idx, LabelOutOfRangeNamesSampleAndValue) {
  const TempFolder folder;
  const fs::path path = folder.Write("labels", Labels(std::string("\1\2\12\3", 4)));
  EXPECT_THAT(
      LabelsMessage(path),
      HasSubstr(path.string() + ": the label of sample 2 (byte 10) is 10, the 10 classes are "
                                "0 to 9"));
}

TEST(Idx, CountsThatDiffer) {
  const TempFolder folder;
  WriteSet(folder);
  folder.WriteGzip("train-labels-idx1-ubyte.gz", Labels(std::string("\0\1\2\3", 4)));
  EXPECT_THAT(IdxMessage(folder), AllOf(HasSubstr("train-images-idx3-ubyte.gz has 5 images, "),
                                        HasSubstr("train-labels-idx1-ubyte.gz has 4 labels")));
  folder.WriteGzip("train-labels-idx1-ubyte.gz", Labels("\1"));
  EXPECT_THAT(IdxMessage(folder), HasSubstr("train-labels-idx1-ubyte.gz has 1 label"));
  EXPECT_THAT(IdxMessage(folder), Not(HasSubstr("has 1 labels")));
}

TEST(Idx, ImagesOfAnotherSize) {
  const TempFolder folder;
  WriteSet(folder);
  folder.WriteGzip("train-images-idx3-ubyte.gz", Images(5, 3, 3));
  EXPECT_THAT(IdxMessage(folder), HasSubstr("images of 3 x 3 (bytes 8 to 16), not of 2 x 3"));
}

}  // namespace
}  // namespace dtrain
