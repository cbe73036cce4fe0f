// What is written is read back, byte for byte as the format says.  Whatever the format forbids is
// an error with the path and the position.
#include "framework/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "framework/core/error.h"
#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a file with this header and data.
std::string FileOf(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  uint64_t begin, uint64_t end) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

class Safetensors : public ::testing::Test {
 protected:
  std::filesystem::path path_ = FreshFolder() / "w.safetensors";

  std::string ErrorOf(const std::string& content) {
    Spit(path_, content);
    try {
      SafetensorsReader in(path_);
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
};

TEST_F(Safetensors, AreReadAsWritten) {
  const float matrix[] = {1, -0.0f, 3, std::nanf(""), 5, 6};
  const int32_t labels[] = {-1, 7};
  const int64_t counts[] = {1832, -1};
  WriteSafetensors(
      path_, {{"b", "F32", {2, 3}, matrix}, {"a", "I32", {2}, labels}, {"n", "I64", {2}, counts}},
      {{"model", "lenet5"}});
  const SafetensorsReader in(path_);
  ASSERT_EQ(in.entries().size(), 3u);
  EXPECT_EQ(in.metadata().at("model"), "lenet5");
  std::vector<float> values(6);
  ASSERT_NE(in.Find("b"), nullptr);
  EXPECT_THAT(in.Find("b")->shape, ElementsAre(2, 3));
  in.ReadFloats(*in.Find("b"), values.data());
  EXPECT_EQ(std::memcmp(values.data(), matrix, sizeof(matrix)), 0);
  int32_t whole[2];
  in.ReadInts(*in.Find("a"), whole);
  EXPECT_THAT(whole, ElementsAre(-1, 7));
  in.ReadInts(*in.Find("n"), whole);
  EXPECT_THAT(whole, ElementsAre(1832, -1));
  EXPECT_EQ(in.Find("c"), nullptr);
}

TEST_F(Safetensors, AreKnownByNameOrBeginning) {
  EXPECT_TRUE(LooksLikeSafetensors("/nowhere/w.safetensors"));
  EXPECT_FALSE(LooksLikeSafetensors("/nowhere/w.h5"));
  EXPECT_FALSE(LooksLikeSafetensors("/dev/zero"));
  const std::filesystem::path path = path_.parent_path() / "w";
  const std::string length(8, '\1');
  for (const std::string end : {"", "{", "{ ", "[\"", " {\"", "{a"}) {
    Spit(path, length + end);
    EXPECT_FALSE(LooksLikeSafetensors(path)) << end;
  }
  Spit(path, length + "{\"");
  EXPECT_TRUE(LooksLikeSafetensors(path));
}

// The bytes follow the format's description: wider types come first, then names in ascending order;
// the data begins at a multiple of 8.
TEST_F(Safetensors, AreLaidOutAsTheFormatSays) {
  const float x = 1.5f;
  const int64_t n = 2;
  WriteSafetensors(path_, {{"x", "F32", {1}, &x}, {"n", "I64", {}, &n}}, {});
  const std::string file = Slurp(path_);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  std::string header = file.substr(8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(header, R"({"n":{"data_offsets":[0,8],"dtype":"I64","shape":[]},)"
                    R"("x":{"data_offsets":[8,12],"dtype":"F32","shape":[1]}})");
  EXPECT_EQ(file.substr(8 + length), std::string("\2\0\0\0\0\0\0\0\0\0\xc0\x3f", 12));
}

TEST_F(Safetensors, HalfPrecisionIsWidened) {
  // These are 1, -2.5, the largest and the smallest subnormal value, and infinity.
  const uint16_t half[] = {0x3c00, 0xc100, 0x7bff, 0x0001, 0x7c00};
  const uint16_t brain[] = {0x3f80, 0xc020, 0x0001, 0x7f80, 0x8000};
  std::string data(reinterpret_cast<const char*>(half), sizeof(half));
  data.append(reinterpret_cast<const char*>(brain), sizeof(brain));
  Spit(path_,
       FileOf("{" + Entry("h", "F16", "[5]", 0, 10) + "," + Entry("b", "BF16", "[5]", 10, 20) + "}",
              data));
  const SafetensorsReader in(path_);
  std::vector<float> values(5);
  in.ReadFloats(*in.Find("h"), values.data());
  EXPECT_THAT(values, ElementsAre(1, -2.5f, 65504, 0x1p-24f, INFINITY));
  in.ReadFloats(*in.Find("b"), values.data());
  EXPECT_THAT(values, ElementsAre(1, -2.5f, std::bit_cast<float>(0x00010000u), INFINITY, -0.0f));
}

TEST_F(Safetensors, OtherTypesAreNoWeights) {
  Spit(path_, FileOf("{" + Entry("d", "F64", "[1]", 0, 8) + "}", std::string(8, '\0')));
  const SafetensorsReader in(path_);
  float value = 0;
  try {
    in.ReadFloats(*in.Find("d"), &value);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'d' is F64; weights are F32, BF16 or F16"));
  }
}

// Wider types come first; within a width tensors are ordered by name.
TEST_F(Safetensors, LieInOrderOfWidthAndName) {
  const float x = 1.5f;
  const int64_t n = 2;
  const int32_t i = 3;
  WriteSafetensors(path_,
                   {{"b", "F32", {1}, &x},
                    {"c", "I32", {1}, &i},
                    {"n", "I64", {}, &n},
                    {"a", "F32", {1}, &x},
                    {"m", "I64", {}, &n}},
                   {});
  const std::string file = Slurp(path_);
  const auto offsets = [&](const std::string& name) {
    const size_t at = file.find("[", file.find("data_offsets", file.find('"' + name + "\":")));
    return file.substr(at, file.find("]", at) + 1 - at);
  };
  EXPECT_EQ(offsets("m"), "[0,8]");
  EXPECT_EQ(offsets("n"), "[8,16]");
  EXPECT_EQ(offsets("a"), "[16,20]");
  EXPECT_EQ(offsets("b"), "[20,24]");
  EXPECT_EQ(offsets("c"), "[24,28]");
}

// Other programs store tensors of these types beside the weights.
TEST_F(Safetensors, EveryTypeOfTheFormatHasItsSize) {
  const std::pair<const char*, uint64_t> kSizes[] = {
      {"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},     {"I32", 4},
      {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2},     {"U16", 2},
      {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const auto& [type, size] : kSizes) {
    Spit(path_, FileOf("{" + Entry("a", type, "[3]", 0, 3 * size) + "}", std::string(3 * size, 0)));
    EXPECT_NO_THROW(SafetensorsReader{path_}) << type;
  }
}

TEST_F(Safetensors, HeadersThatDoNotFitAreErrors) {
  EXPECT_THAT(ErrorOf("short"), HasSubstr("5 bytes are too few"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff')),
              HasSubstr("byte 0: a header of 18446744073709551615"));
  EXPECT_THAT(ErrorOf(std::string("\x20\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("byte 0: a header of 32 bytes in a file of 10"));
  EXPECT_THAT(ErrorOf(FileOf("{\"a\": nonsense}", "")), HasSubstr("the header is not JSON"));
  EXPECT_THAT(ErrorOf(FileOf("[1, 2]", "")), HasSubstr("the header is not a JSON object"));
  EXPECT_THAT(ErrorOf(FileOf("{\"a\": 3}", "")), HasSubstr("'a' lacks one of dtype, shape"));
  EXPECT_THAT(ErrorOf(FileOf("{\"__metadata__\": {\"a\": 3}}", "")),
              HasSubstr("'a' is not a text"));
  const std::string a = Entry("a", "F32", "[1]", 0, 4);
  EXPECT_THAT(ErrorOf(FileOf("{" + a + "," + a + "}", "1234")), HasSubstr("names 'a' twice"));
}

TEST_F(Safetensors, TensorsThatDoNotFitAreErrors) {
  const std::string four(4, '\0'), eight(8, '\0');
  const auto file = [](const std::string& entries, const std::string& data) {
    return FileOf("{" + entries + "}", data);
  };
  EXPECT_THAT(ErrorOf(file(Entry("a", "F33", "[1]", 0, 4), four)),
              HasSubstr("unknown dtype 'F33'"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[2]", 0, 8), four)),
              HasSubstr("'a': data_offsets [0, 8] do not fit the 4 bytes of data"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[1]", 4, 0), four)),
              HasSubstr("data_offsets [4, 0]"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[2]", 0, 4), four)),
              HasSubstr("'a': F32 [2] needs 8 bytes, its data_offsets [0, 4] hold 4"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[4294967296,4294967296]", 0, 4), four)),
              HasSubstr("needs 18446744073709551615 bytes"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[-1]", 0, 4), four)), HasSubstr("'a': shape [-1]"));
  EXPECT_THAT(
      ErrorOf(file(Entry("a", "F32", "[1]", 0, 4) + "," + Entry("b", "F32", "[1]", 2, 6), eight)),
      HasSubstr("'b' overlaps 'a'"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[1]", 4, 8), eight)),
              HasSubstr("'a' leaves a gap behind the header"));
  EXPECT_THAT(ErrorOf(file(Entry("a", "F32", "[1]", 0, 4), eight)),
              HasSubstr("4 bytes behind 'a' belong to no tensor"));
}

TEST_F(Safetensors, EveryTruncationIsAnError) {
  const float x[] = {1, 2, 3};
  WriteSafetensors(path_, {{"x", "F32", {3}, x}}, {});
  const std::string whole = Slurp(path_);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) ErrorOf(whole.substr(0, bytes));
}

}  // namespace
}  // namespace dtrain
