// The data set `npy`: the user's own NumPy arrays of images or vectors and their labels (framework/data/tables/npy.h).
#include "framework/data/tables/npy.h"

#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/tables/layout.h"
#include "framework/data/tables/table_source.h"

namespace dtrain {
namespace {
namespace fs = std::filesystem;

// Returns true if the last axis of the samples is the channels.  Throws DataError if the shape does not tell.
bool AreChannelsLast(const fs::path& path, const Shape& shape, ImageLayout layout) {
  if (shape.rank() != 4) return false;
  if (const auto last = ChannelsLast(shape.DropBatch(), layout)) return *last;
  throw DataError(fmt::format("{}: shape {} does not tell which axis is the channels",
                              path.string(), shape.ToString()),
                  "set data.layout to chw or hwc");
}

class OwnNpy : public TableSource {
 public:
  OwnNpy() : TableSource(/*images=*/true, /*whole_are_classes=*/false) {}

 private:
  struct Paths {
    std::string samples, labels;
  };

  Files ReadKeys(config::Reader& reader) override {
    train_.samples = reader.String("train", "")
                         .Required()
                         .Help(
                             ".npy file of the training samples: images [N, H, W], [N, C, H, W] or "
                             "[N, H, W, C], or vectors [N, D]");
    train_.labels = reader.String("train_labels", "")
                        .Required()
                        .Help(".npy file of their labels, [N] or [N, K]");
    test_.samples =
        reader.String("test", "")
            .Help(".npy file of the test samples; \"\": test_share of the training samples");
    test_.labels = reader.String("test_labels", "").Help(".npy file of their labels");
    layout_ = LayoutOf(reader.String("layout", "auto")
                           .OneOf({"auto", "chw", "hwc"})
                           .Help("position of the channels in [N, ., ., .]; auto: the "
                                 "first or last axis, whichever has 1, 3 or 4"));
    Files files;
    if (test_.samples.empty() != test_.labels.empty()) {
      reader.AddError(test_.samples.empty() ? "test_labels" : "test",
                      "test samples and test labels go together", "give both, or none",
                      {"test", "test_labels"});
      return files;
    }
    if (train_.samples.empty() || train_.labels.empty()) return files;
    files.train = {{"train", train_.samples}, {"train_labels", train_.labels}};
    if (!test_.samples.empty()) {
      files.test = {{"test", test_.samples}, {"test_labels", test_.labels}};
    }
    return files;
  }

  Table Open(Split split, const std::vector<std::string>& words) override {
    const Paths& paths = split == Split::kTrain ? train_ : test_;
    const NpyHeader header = ReadNpyHeader(paths.samples);
    const Shape& shape = header.shape;
    const bool values = header.kind == 'f' || header.bytes();
    if (!values || shape.rank() < 1 || shape.rank() > 4 || shape.count() == 0) {
      throw DataError(
          fmt::format("{}: {} of type {}{}", paths.samples, shape.ToString(), header.kind,
                      header.value_bytes),
          "samples are [N, D], [N, H, W], [N, C, H, W] or [N, H, W, C] of uint8, float32 "
          "or float64");
    }
    Table table;
    table.name = paths.samples;
    table.samples = shape[0];
    table.bytes = header.bytes();
    const bool last = AreChannelsLast(paths.samples, shape, layout_);
    table.sample_shape = shape.rank() == 1 ? Shape{1}
                         : last            ? Shape{shape[3], shape[1], shape[2]}
                                           : shape.DropBatch();
    if (shape.rank() == 4) {
      table.notes.read_as = fmt::format("layout {}{}", last ? "hwc" : "chw",
                                        layout_ == ImageLayout::kAuto ? " (guessed)" : "");
    }
    table.labels = ReadLabels(paths, shape[0]);
    table.where = [name = paths.labels](int64_t sample) {
      return fmt::format("{}: sample {}", name, sample);
    };
    const NpyPart part{.keep = keep(), .measure = measures(), .channels_last = last};
    table.read = [path = paths.samples, part] { return ReadNpyPart(path, part); };
    return table;
  }

  static TableLabels ReadLabels(const Paths& paths, int64_t samples) {
    NpyArray array = ReadNpy(paths.labels);
    const Shape& shape = array.shape;
    if (shape.rank() < 1 || shape.rank() > 2 || shape[0] != samples || shape.count() == 0) {
      throw DataError(fmt::format("{}: labels {} for the {} samples of {}", paths.labels,
                                  shape.ToString(), samples, paths.samples),
                      "labels are [N], or [N, K] for K numbers a sample");
    }
    TableLabels labels;
    labels.whole_type = array.kind != 'f';
    if (shape.CountFrom(1) > 1) labels.shape = shape.DropBatch();
    labels.numbers = InDouble(array.values.TakeNumbers());
    return labels;
  }

  Paths train_, test_;
  ImageLayout layout_ = ImageLayout::kAuto;
};

DTRAIN_DATASET("npy", OwnNpy, "your own images or vectors and labels in .npy files (NumPy)");

}  // namespace
}  // namespace dtrain
