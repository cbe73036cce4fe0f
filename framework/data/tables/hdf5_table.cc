#include "framework/data/tables/hdf5_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "framework/core/bytes.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/data/text/parallel_text.h"
#include "framework/hdf5/child_call.h"
#include "framework/hdf5/hdf5_file.h"
#include "framework/hdf5/memory_file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using ValueType = Hdf5Reader::ValueType;

constexpr double kMostNumbers = 1e10;
constexpr int64_t kBlockValues = int64_t{1} << 24;  // values read at a time if not all are kept
constexpr int64_t kMostPacked = 1100;               // zlib compresses by at most 1032

// Holds the properties of a file that are read before its values.
struct Look {
  std::vector<int64_t> data_shape, label_shape;
  bool bytes = false;
  bool doubles = false;  // the values have more digits than a float
  bool whole_labels = false;
  std::vector<double> labels;
  DTRAIN_FIELDS(data_shape, label_shape, bytes, doubles, whole_labels, labels)
};

// Returns the limits of a child that holds `held` bytes of numbers.  A damaged file whose header promises more than
// compression allows does not get the memory.
ChildLimits LimitsFor(uint64_t file_bytes, int64_t held) {
  ChildLimits limits;
  limits.compute_seconds += static_cast<int64_t>(file_bytes >> 20);
  limits.wait_seconds += static_cast<int64_t>(file_bytes >> 20);
  limits.memory_bytes += 16 * static_cast<int64_t>(file_bytes);
  limits.memory_bytes += std::min(held, kMostPacked * static_cast<int64_t>(file_bytes));
  return limits;
}

// Runs `work`, which reads the file, in a child that holds `held` bytes of numbers.  Returns the bytes that it writes.
template <class Work>
std::string InChild(const fs::path& path, int64_t held, const Work& work) {
  try {
    MemoryFile file, answer;
    file.CopyFrom(path);
    RunInChild(
        "read " + path.string(), [&] { work(Hdf5Reader(file, path), answer); },
        LimitsFor(file.Content().size(), held));
    return std::string(answer.Content());
  } catch (const CheckpointError& error) {
    throw DataError(error.what(), error.hint());
  }
}

int64_t CountOf(const fs::path& path, const std::vector<int64_t>& shape) {
  double count = 1;
  for (const int64_t extent : shape) count *= static_cast<double>(extent);
  if (count > kMostNumbers) {
    throw CheckpointError(path.string() + ": it promises more numbers than dtrain loads");
  }
  return static_cast<int64_t>(count);
}

void CheckName(const Hdf5Reader& in, const std::string& name) {
  if (!in.Has(name)) {
    std::vector<std::string> names;
    for (const std::string& child : in.Children("/")) names.push_back(Printable(child));
    throw CheckpointError(fmt::format("{}: it has no data set '{}'; it has {}", in.path().string(),
                                      name, Join(names)),
                          "data.data_set and data.label_set name them");
  }
  if (in.TypeOf(name) == ValueType::kOther) {
    throw CheckpointError(fmt::format("{}: '{}' holds no numbers", in.path().string(), name));
  }
}

void LookAt(const Hdf5Reader& in, const Hdf5Names& names, MemoryFile& answer) {
  CheckName(in, names.data);
  CheckName(in, names.label);
  Look look;
  look.data_shape = in.ShapeOf(names.data);
  look.label_shape = in.ShapeOf(names.label);
  look.bytes = in.TypeOf(names.data) == ValueType::kBytes;
  const bool floats = in.TypeOf(names.data) == ValueType::kFloat ? in.ValueBytesOf(names.data) <= 4
                                                                 : in.ValueBytesOf(names.data) <= 2;
  look.doubles = !look.bytes && !floats;
  look.whole_labels = in.TypeOf(names.label) != ValueType::kFloat;
  CountOf(in.path(), look.data_shape);
  look.labels.resize(static_cast<size_t>(CountOf(in.path(), look.label_shape)));
  in.ReadDoubles(names.label, look.labels);
  answer.WriteAt(0, ToBytes(look));
}

// Throws CheckpointError if a value is not finite; `begin` is the first sample.
template <class T>
void CheckFinite(const fs::path& path, const std::string& name, std::span<const T> values,
                 int64_t each, int64_t begin) {
  const auto wrong =
      std::ranges::find_if(values, [](T x) { return !std::isfinite(static_cast<float>(x)); });
  if (wrong == values.end()) return;
  throw CheckpointError(fmt::format("{}: sample {} of '{}' has the value {}", path.string(),
                                    begin + (wrong - values.begin()) / each, name, *wrong),
                        "remove such samples, or give them a number");
}

// Holds the kept samples of a file, and the moments of all files so far.
struct FirstSamples {
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  std::vector<double> doubles;
  ChannelMoments moments;
  DTRAIN_FIELDS(bytes, floats, doubles, moments)
};

// Converts samples whose last axis is the channels.
template <class Values>
Values WithChannelsInFront(const Look& look, const Values& values) {
  return ChannelsToFront(values, look.data_shape[1] * look.data_shape[2], look.data_shape[3]);
}

// Reads the samples to keep of a file, and all others too if moments are measured.
template <class T>
void ReadFirst(const Hdf5Reader& in, const std::string& name, const Look& look,
               const Hdf5Part& part, std::vector<T>& kept, ChannelMoments& moments) {
  const int64_t samples = look.data_shape[0], each = CountOf(in.path(), look.data_shape) / samples;
  const int64_t keep = std::min(part.keep, samples), read = part.measure ? samples : keep;
  const int64_t most = std::max<int64_t>(1, kBlockValues / each);
  std::vector<T> block;
  for (int64_t begin = 0; begin < read; begin += most) {
    const int64_t count = std::min(most, read - begin);
    block.resize(static_cast<size_t>(count * each));
    in.ReadRows(name, begin, std::span<T>(block));
    if constexpr (!std::is_same_v<T, uint8_t>) {
      CheckFinite(in.path(), name, std::span<const T>(block), each, begin);
    }
    if (part.layout == ImageLayout::kHwc) block = WithChannelsInFront(look, block);
    if (part.measure) moments.Add(block.data(), static_cast<size_t>(count));
    block.resize(static_cast<size_t>(each * std::clamp<int64_t>(keep - begin, 0, count)));
    kept.insert(kept.end(), block.begin(), block.end());
  }
}

template <class T, class Read>
void WriteValues(const Hdf5Reader& in, const std::string& name, const Read& read,
                 MemoryFile& answer) {
  std::vector<T> values(static_cast<size_t>(CountOf(in.path(), in.ShapeOf(name))));
  read(values);
  answer.WriteAt(0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

void CheckLook(const fs::path& path, const Look& look) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}", path.string(), what),
                    "data is [samples, ...], labels are [samples] or [samples, numbers]");
  };
  const size_t rank = look.data_shape.size(), label_rank = look.label_shape.size();
  if (rank < 1 || rank > 4) refuse(fmt::format("the data has {} axes", rank));
  if (label_rank < 1 || label_rank > 2) refuse(fmt::format("the labels have {} axes", label_rank));
  if (std::ranges::count(look.data_shape, 0) > 0) refuse("its data is empty");
  if (std::ranges::count(look.label_shape, 0) > 0) refuse("its labels are empty");
  if (look.data_shape[0] != look.label_shape[0]) {
    refuse(fmt::format("{} samples and {} labels", look.data_shape[0], look.label_shape[0]));
  }
}

template <class T>
std::vector<T> ValuesIn(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void AppendValues(const fs::path& path, const std::string& name, const Look& look,
                  ImageLayout layout, TableValues& values) {
  const auto count = static_cast<size_t>(CountOf(path, look.data_shape));
  const size_t held = count * (look.bytes     ? sizeof(uint8_t)
                               : look.doubles ? sizeof(double)
                                              : sizeof(float));
  const auto read = [&](const Hdf5Reader& in, MemoryFile& answer) {
    if (look.bytes) {
      return WriteValues<uint8_t>(
          in, name, [&](auto& to) { in.ReadBytes(name, to); }, answer);
    }
    if (look.doubles) {
      return WriteValues<double>(
          in, name, [&](auto& to) { in.ReadDoubles(name, to); }, answer);
    }
    WriteValues<float>(
        in, name, [&](auto& to) { in.ReadFloats(name, to); }, answer);
  };
  const std::string found = InChild(path, static_cast<int64_t>(held), read);
  if (found.size() != held) {
    throw DataError(path.string() + " has changed while it was read");
  }
  const int64_t each = static_cast<int64_t>(count) / look.data_shape[0];
  const auto append = [&]<class T>(std::vector<T> read_values, std::vector<T>& to) {
    if constexpr (!std::is_same_v<T, uint8_t>) {
      try {
        CheckFinite(path, name, std::span<const T>(read_values), each, 0);
      } catch (const CheckpointError& error) {
        throw DataError(error.what(), error.hint());
      }
    }
    if (layout == ImageLayout::kHwc) read_values = WithChannelsInFront(look, read_values);
    to.insert(to.end(), read_values.begin(), read_values.end());
  };
  if (look.bytes) return append(ValuesIn<uint8_t>(found), values.bytes);
  std::visit([&]<class T>(std::vector<T>& to) { append(ValuesIn<T>(found), to); }, values.numbers);
}

void AppendFirst(const fs::path& path, const std::string& name, const Look& look,
                 const Hdf5Part& part, ChannelMoments& moments, TableValues& values) {
  const auto found = FromBytes<FirstSamples>(
      InChild(path, kBlockValues * 4, [&](const Hdf5Reader& in, MemoryFile& answer) {
        FirstSamples first{.moments = moments};
        if (look.bytes) {
          ReadFirst(in, name, look, part, first.bytes, first.moments);
        } else if (look.doubles) {
          ReadFirst(in, name, look, part, first.doubles, first.moments);
        } else {
          ReadFirst(in, name, look, part, first.floats, first.moments);
        }
        answer.WriteAt(0, ToBytes(first));
      }));
  values.bytes.insert(values.bytes.end(), found.bytes.begin(), found.bytes.end());
  const auto append = [&]<class T>(const std::vector<T>& from) {
    if (from.empty()) return;
    std::vector<T>& to = std::get<std::vector<T>>(values.numbers);
    to.insert(to.end(), from.begin(), from.end());
  };
  append(found.floats);
  append(found.doubles);
  moments = found.moments;
}

ChannelMoments NoMoments(const Look& look, ImageLayout layout) {
  const std::vector<int64_t>& shape = look.data_shape;
  const int64_t channels = layout == ImageLayout::kHwc              ? shape[3]
                           : shape.size() == 2 || shape.size() == 4 ? shape[1]
                                                                    : 1;
  int64_t each = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) each *= shape[axis];
  return {static_cast<size_t>(channels), static_cast<size_t>(each / channels)};
}

// Reads the values of all files.
TableValues ReadAll(const std::vector<fs::path>& files, const std::vector<Look>& looks,
                    const std::string& name, Hdf5Part part) {
  TableValues values;
  if (looks[0].doubles) values.numbers = std::vector<double>();
  int64_t samples = 0;
  for (const Look& look : looks) samples += look.data_shape[0];
  const bool whole = part.keep >= samples;
  ChannelMoments moments = NoMoments(looks[0], part.layout);
  for (size_t f = 0; f < files.size() && (whole || part.measure || part.keep > 0); ++f) {
    if (whole) {
      AppendValues(files[f], name, looks[f], part.layout, values);
    } else {
      AppendFirst(files[f], name, looks[f], part, moments, values);
      part.keep = std::max<int64_t>(0, part.keep - looks[f].data_shape[0]);
    }
  }
  if (!whole && part.measure) values.of_all = std::move(moments);
  return values;
}

// Decides where the channels of images are.  Caffe's files have them first, which is taken where the shape does not
// tell.
void SettleLayout(Hdf5Part& part, Table& table) {
  Shape& sample = table.sample_shape;
  if (sample.rank() != 3) {
    part.layout = ImageLayout::kChw;
    return;
  }
  const bool guessed = part.layout == ImageLayout::kAuto;
  const bool last = ChannelsLast(sample, part.layout).value_or(false);
  part.layout = last ? ImageLayout::kHwc : ImageLayout::kChw;
  if (last) sample = Shape{sample[2], sample[0], sample[1]};
  table.notes.read_as =
      fmt::format("layout {}{}", last ? "hwc" : "chw", guessed ? " (guessed)" : "");
}

}  // namespace

std::vector<fs::path> Hdf5FilesOf(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const fs::path path : paths) {
    if (path.extension() != ".txt") {
      files.push_back(path);
      continue;
    }
    for (const std::string& line : ReadLines(path)) {
      if (line.empty()) continue;
      const fs::path beside = path.parent_path() / line;
      files.push_back(fs::exists(beside) ? beside : fs::path(line));
    }
  }
  return files;
}

Table OpenHdf5(const std::vector<fs::path>& files, const Hdf5Names& names, Hdf5Part part) {
  if (files.empty()) throw DataError("the list names no HDF5 file");
  std::vector<Look> looks;
  std::vector<int64_t> ends;
  Table table;
  table.labels.whole_type = true;
  for (const fs::path& file : files) {
    looks.push_back(FromBytes<Look>(
        InChild(file, 0, [&](const Hdf5Reader& in, MemoryFile& to) { LookAt(in, names, to); })));
    Look& look = looks.back();
    CheckLook(file, look);
    const std::vector<int64_t> sample(look.data_shape.begin() + 1, look.data_shape.end());
    std::vector<int64_t> label(look.label_shape.begin() + 1, look.label_shape.end());
    if (label == std::vector<int64_t>{1}) label.clear();
    if (looks.size() == 1) {
      table.sample_shape = sample.empty() ? Shape{1} : Shape(sample);
      table.labels.shape = Shape(label);
      table.bytes = look.bytes;
    } else if (Shape(label) != table.labels.shape || look.bytes != table.bytes ||
               !std::ranges::equal(sample, std::span(looks[0].data_shape).subspan(1))) {
      throw DataError(fmt::format("{} and {} have samples of other shapes or types",
                                  files[0].string(), file.string()));
    }
    table.samples += look.data_shape[0];
    ends.push_back(table.samples);
    table.labels.whole_type = table.labels.whole_type && look.whole_labels;
    std::ranges::move(look.labels, std::back_inserter(table.labels.numbers));
    look.labels.clear();
  }
  // Files of floats and of doubles go together: as doubles.
  const bool doubles = std::ranges::any_of(looks, &Look::doubles);
  for (Look& look : looks) look.doubles = doubles;
  table.name = files[0].string();
  table.notes.files = table.name;
  if (files.size() > 1) table.notes.files += fmt::format(" and {} more", files.size() - 1);
  SettleLayout(part, table);
  table.where = [files, ends](int64_t sample) {
    const size_t file = std::ranges::upper_bound(ends, sample) - ends.begin();
    return fmt::format("{}: sample {}", files[file].string(),
                       file == 0 ? sample : sample - ends[file - 1]);
  };
  table.read = [files, looks, name = names.data, part] {
    return ReadAll(files, looks, name, part);
  };
  return table;
}

}  // namespace dtrain
