// The data set `hdf5`: the user's own HDF5 files in the layout of Caffe's HDF5Data
// (framework/data/tables/hdf5_table.h).
#include "framework/data/tables/hdf5_table.h"
#include "framework/data/tables/table_source.h"

namespace dtrain {
namespace {

class OwnHdf5 : public TableSource {
 public:
  OwnHdf5() : TableSource(/*images=*/true, /*whole_are_classes=*/true) {}

 private:
  Files ReadKeys(config::Reader& reader) override {
    const auto paths = [&reader](const char* key, const char* help, bool required) {
      auto field = reader.Strings(key, {}).Help(help);
      if (required) field.Required();
      return static_cast<std::vector<std::string>>(field);
    };
    train_ =
        paths("train", "HDF5 files of the training samples, or a .txt file that lists them", true);
    test_ = paths("test", "HDF5 files of the test samples; []: test_share of the training samples",
                  false);
    names_.data = static_cast<std::string>(
        reader.String("data_set", "data").Help("HDF5 data set with the samples, [samples, ...]"));
    names_.label = static_cast<std::string>(
        reader.String("label_set", "label").Help("HDF5 data set with their labels"));
    layout_ =
        LayoutOf(reader.String("layout", "auto")
                     .OneOf({"auto", "chw", "hwc"})
                     .Help("position of the channels in [N, ., ., .]; auto: the first or last "
                           "axis, whichever has 1, 3 or 4, else chw"));
    Files files;
    for (const std::string& path : train_) files.train.emplace_back("train", path);
    for (const std::string& path : test_) files.test.emplace_back("test", path);
    return files;
  }

  Table Open(Split split, const std::vector<std::string>& words) override {
    return OpenHdf5(Hdf5FilesOf(split == Split::kTrain ? train_ : test_), names_,
                    {.keep = keep(), .measure = measures(), .layout = layout_});
  }

  std::vector<std::string> train_, test_;
  Hdf5Names names_;
  ImageLayout layout_ = ImageLayout::kAuto;
};

DTRAIN_DATASET("hdf5", OwnHdf5, "your own samples in HDF5 files (Caffe's HDF5Data)");

}  // namespace
}  // namespace dtrain
