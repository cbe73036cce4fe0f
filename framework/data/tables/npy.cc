#include "framework/data/tables/npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/files/archive.h"
#include "framework/data/tables/layout.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 1 << 16;
constexpr uint64_t kMostBytes = uint64_t{64} << 30;
constexpr size_t kBlock = 1 << 20;  // bytes; a whole number of values of any type

[[noreturn]] void ThrowHeader(const MemberReader& in, const std::string& what) {
  throw DataError(fmt::format("{}: the header of the .npy file {}", in.name(), what),
                  "write it anew with numpy.save");
}

// Returns the text of the header, a Python dictionary.
std::string ReadHeaderText(MemberReader& in) {
  char start[8];
  in.ReadExactly(start, sizeof start, "the header");
  if (std::string_view(start, kMagic.size()) != kMagic) {
    throw DataError(fmt::format("{}: it does not begin as a .npy file does", in.name()),
                    "numpy.save writes one; an .npz is an archive of several");
  }
  const int version = start[6];
  if (version < 1 || version > 3) ThrowHeader(in, fmt::format("has version {}", version));
  uint8_t length[4] = {};
  in.ReadExactly(length, version == 1 ? 2 : 4, "the header");
  const size_t bytes =
      length[0] | size_t{length[1]} << 8 | size_t{length[2]} << 16 | size_t{length[3]} << 24;
  if (bytes > kLongestHeader) ThrowHeader(in, fmt::format("would have {} bytes", bytes));
  std::string text(bytes, '\0');
  in.ReadExactly(text.data(), bytes, "the header");
  return text;
}

// Returns the text after 'key': in the dictionary.
std::string_view ValueOf(const MemberReader& in, std::string_view text, std::string_view key) {
  const std::string quoted = fmt::format("'{}'", key);
  const size_t at = text.find(quoted);
  if (at == std::string_view::npos) ThrowHeader(in, "has no " + quoted);
  text.remove_prefix(at + quoted.size());
  text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
  return text;
}

void ReadType(const MemberReader& in, std::string_view text, NpyHeader& header) {
  const std::string_view value = ValueOf(in, text, "descr");
  const size_t end = value.empty() ? 0 : value.find(value[0], 1);
  const bool quoted = !value.empty() && value[0] == '\'' && end != std::string_view::npos;
  const std::string_view type =
      quoted ? value.substr(1, end - 1) : value.substr(0, value.find(']'));
  const std::string_view allowed[] = {"<f4", "<f8", "|u1", "|i1", "|b1", "<u2",
                                      "<i2", "<u4", "<i4", "<u8", "<i8"};
  const std::string_view kind = type.substr(std::min<size_t>(1, type.size()), 1);
  if (kind == "U" || kind == "S" || kind == "O") {
    throw DataError(
        fmt::format("{}: its values are {}", in.name(), kind == "O" ? "Python objects" : "texts"),
        "for labels: names, numbers = numpy.unique(labels, return_inverse=True); save the numbers, "
        "and give the names as data.class_names");
  }
  if (!quoted || std::ranges::find(allowed, type) == std::end(allowed)) {
    throw DataError(
        fmt::format("{}: its values are of type '{}'; dtrain reads uint8, float32 and float64, and "
                    "whole numbers of 1 to 8 bytes, little-endian",
                    in.name(), type),
        "convert it: numpy.save(file, array.astype('<f4'))");
  }
  header.kind = type[1];
  header.value_bytes = type[2] - '0';
}

void ReadShape(const MemberReader& in, std::string_view text, NpyHeader& header) {
  std::string_view value = ValueOf(in, text, "shape");
  const size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos) ThrowHeader(in, "has no shape");
  value = value.substr(1, end - 1);
  std::vector<int64_t> extents;
  unsigned __int128 bytes = static_cast<unsigned __int128>(header.value_bytes);
  while (true) {
    value.remove_prefix(std::min(value.find_first_not_of(" ,"), value.size()));
    if (value.empty()) break;
    int64_t extent = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), extent);
    if (error != std::errc() || extent < 0) ThrowHeader(in, "has no shape");
    value.remove_prefix(static_cast<size_t>(rest - value.data()));
    extents.push_back(extent);
    bytes *= static_cast<unsigned __int128>(extent);
    if (bytes > kMostBytes || extents.size() > Shape::kMaxRank) {
      ThrowHeader(in, "promises more than dtrain loads (64 GB, 6 axes)");
    }
  }
  header.shape = Shape(extents);
}

NpyHeader ReadHeader(MemberReader& in) {
  const std::string text = ReadHeaderText(in);
  NpyHeader header;
  ReadType(in, text, header);
  if (ValueOf(in, text, "fortran_order").starts_with("True")) {
    throw DataError(in.name() + ": its values are in Fortran order; dtrain reads C order",
                    "convert it: numpy.save(file, numpy.ascontiguousarray(array))");
  }
  if (!ValueOf(in, text, "fortran_order").starts_with("False")) {
    ThrowHeader(in, "does not say its order");
  }
  ReadShape(in, text, header);
  return header;
}

template <class T>
void Append(const char* from, size_t count, Numbers& numbers) {
  std::visit(
      [&]<class To>(std::vector<To>& to) {
        for (size_t i = 0; i < count; ++i) {
          T value;
          std::memcpy(&value, from + i * sizeof(T), sizeof(T));
          to.push_back(static_cast<To>(value));
        }
      },
      numbers);
}

// Returns an empty list of numbers that holds the header's values without loss.
Numbers NumbersFor(const NpyHeader& header) {
  const bool floats = header.kind == 'f' ? header.value_bytes == 4 : header.value_bytes <= 2;
  if (floats) return std::vector<float>();
  return std::vector<double>();
}

void AppendValues(const NpyHeader& header, const std::string& block, size_t bytes,
                  TableValues& values) {
  const char* const from = block.data();
  const size_t count = bytes / static_cast<size_t>(header.value_bytes);
  Numbers& to = values.numbers;
  if (header.bytes()) {
    values.bytes.insert(values.bytes.end(), block.begin(),
                        block.begin() + static_cast<std::ptrdiff_t>(bytes));
    return;
  }
  if (header.kind == 'f') {
    return header.value_bytes == 4 ? Append<float>(from, count, to)
                                   : Append<double>(from, count, to);
  }
  const bool sign = header.kind == 'i';
  switch (header.value_bytes) {
    case 1:
      return sign ? Append<int8_t>(from, count, to) : Append<uint8_t>(from, count, to);
    case 2:
      return sign ? Append<int16_t>(from, count, to) : Append<uint16_t>(from, count, to);
    case 4:
      return sign ? Append<int32_t>(from, count, to) : Append<uint32_t>(from, count, to);
    default:
      return sign ? Append<int64_t>(from, count, to) : Append<uint64_t>(from, count, to);
  }
}

// `begin` is the index of the first sample.
void CheckFinite(const MemberReader& in, const NpyHeader& header, const TableValues& values,
                 int64_t begin = 0) {
  std::visit(
      [&](const auto& numbers) {
        const auto wrong = std::ranges::find_if(
            numbers, [](auto value) { return !std::isfinite(static_cast<float>(value)); });
        if (wrong == numbers.end()) return;
        const int64_t place = wrong - numbers.begin();
        const int64_t each = header.shape.rank() > 0 ? header.shape.CountFrom(1) : 1;
        throw DataError(fmt::format("{}: value {} of sample {} is {}, not a finite float32",
                                    in.name(), place % each, begin + place / each, *wrong),
                        "remove such samples, or give them a number: numpy.isfinite finds them");
      },
      values.numbers);
}

std::string ContentOf(const NpyHeader& header) { return "an array of " + header.shape.ToString(); }

void CheckEnd(MemberReader& in, const NpyHeader& header) {
  char more;
  if (in.Read(&more, 1) == 0) return;
  throw DataError(fmt::format("{}: content follows at byte {}, where {} ends", in.name(),
                              in.position() - 1, ContentOf(header)),
                  "the header does not belong to this content");
}

// Returns the entries of a sample's channel axis; an image [H, W] is grey.
int64_t ChannelsOf(const Shape& samples, bool channels_last) {
  if (samples.rank() == 4) return samples[channels_last ? 3 : 1];
  return samples.rank() == 2 ? samples[1] : 1;
}

int64_t SamplesOfABlock(const NpyHeader& header) {
  const int64_t bytes = header.shape.CountFrom(1) * header.value_bytes;
  return std::max<int64_t>(1, static_cast<int64_t>(kBlock) / std::max<int64_t>(1, bytes));
}

// Reads the next `count` samples, of which `begin` is the first.
void ReadSamples(MemberReader& in, const NpyHeader& header, int64_t begin, int64_t count,
                 bool channels_last, TableValues& values) {
  values.bytes.clear();
  values.numbers = NumbersFor(header);
  std::string block(static_cast<size_t>(count * header.shape.CountFrom(1) * header.value_bytes),
                    '\0');
  in.ReadExactly(block.data(), block.size(), ContentOf(header));
  AppendValues(header, block, block.size(), values);
  CheckFinite(in, header, values, begin);
  if (!channels_last) return;
  const int64_t pixels = header.shape[1] * header.shape[2], channels = header.shape[3];
  values.bytes = ChannelsToFront(values.bytes, pixels, channels);
  values.numbers = ChannelsToFront(values.numbers, pixels, channels);
}

void AddMoments(const TableValues& values, size_t samples, ChannelMoments& moments) {
  if (!values.bytes.empty()) return moments.Add(values.bytes.data(), samples);
  std::visit([&](const auto& numbers) { moments.Add(numbers.data(), samples); }, values.numbers);
}

// Appends the first `count` values.
void Keep(const TableValues& values, int64_t count, TableValues& kept) {
  const auto append = [count](const auto& from, auto& to) {
    if (!from.empty()) to.insert(to.end(), from.begin(), from.begin() + count);
  };
  append(values.bytes, kept.bytes);
  std::visit(
      [&]<class T>(const std::vector<T>& numbers) {
        append(numbers, std::get<std::vector<T>>(kept.numbers));
      },
      values.numbers);
}

}  // namespace

NpyHeader ReadNpyHeader(const fs::path& path) {
  MemberReader in(path);
  return ReadHeader(in);
}

NpyArray ReadNpy(const fs::path& path) {
  MemberReader in(path);
  NpyArray array{ReadHeader(in), {}};
  array.values.numbers = NumbersFor(array);
  auto left = static_cast<size_t>(array.shape.count()) * static_cast<size_t>(array.value_bytes);
  std::string block(std::min(left, kBlock), '\0');
  while (left > 0) {
    const size_t bytes = std::min(left, block.size());
    in.ReadExactly(block.data(), bytes, ContentOf(array));
    AppendValues(array, block, bytes, array.values);
    left -= bytes;
  }
  CheckEnd(in, array);
  CheckFinite(in, array, array.values);
  return array;
}

TableValues ReadNpyPart(const fs::path& path, const NpyPart& part) {
  MemberReader in(path);
  const NpyHeader header = ReadHeader(in);
  const int64_t samples = header.shape[0], each = header.shape.CountFrom(1);
  const bool whole = part.keep >= samples;
  const int64_t read = whole || part.measure ? samples : part.keep;
  const int64_t channels = ChannelsOf(header.shape, part.channels_last);
  ChannelMoments moments(static_cast<size_t>(channels), static_cast<size_t>(each / channels));
  TableValues kept, values;
  kept.numbers = NumbersFor(header);
  for (int64_t begin = 0; begin < read; begin += SamplesOfABlock(header)) {
    const int64_t count = std::min(SamplesOfABlock(header), read - begin);
    ReadSamples(in, header, begin, count, part.channels_last, values);
    if (!whole && part.measure) AddMoments(values, static_cast<size_t>(count), moments);
    Keep(values, each * std::clamp<int64_t>(part.keep - begin, 0, count), kept);
  }
  if (read == samples) CheckEnd(in, header);
  if (!whole && part.measure) kept.of_all = std::move(moments);
  return kept;
}

void ChannelsToFront(NpyArray& array) {
  const Shape from = array.shape;
  const int64_t pixels = from[1] * from[2], channels = from[3];
  array.values.bytes = ChannelsToFront(array.values.bytes, pixels, channels);
  array.values.numbers = ChannelsToFront(array.values.numbers, pixels, channels);
  array.shape = Shape{from[0], channels, from[1], from[2]};
}

void FitSamples(const fs::path& path, const Shape& shape, NpyArray& array) {
  const bool image = shape.rank() == 3;
  const Shape each = array.shape.rank() > 0 ? array.shape.DropBatch() : Shape();
  const bool last = image && each == Shape{shape[1], shape[2], shape[0]};
  const bool grey = image && shape[0] == 1 && each == Shape{shape[1], shape[2]};
  const bool single = shape == Shape{1} && array.shape.rank() == 1;
  if (!(each == shape || last || grey || single)) {
    throw DataError(fmt::format("{}: {}, the model takes samples of {} each", path.string(),
                                array.shape.ToString(), shape.ToString()),
                    image ? "images are [N, C, H, W] or [N, H, W, C]" : "");
  }
  if (last && each == shape && shape[0] > 1) {
    throw DataError(fmt::format("{}: shape {} does not tell which axis is the channels",
                                path.string(), array.shape.ToString()),
                    "use CSV: one sample per line, channel by channel");
  }
  if (last) ChannelsToFront(array);
}

}  // namespace dtrain
