// Reads CIFAR's batches, as loose files and as archives, of a set with small images and few
// records.
#include "framework/data/images/cifar.h"

#include "framework/config/reader.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/gzip.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kClasses = 10;

CifarInfo SmallInfo() {
  CifarInfo info;
  info.name = "small";
  info.images = {Shape{3, 2, 2}, kClasses, 0.5f, 0.25f};
  info.label_classes = {20, kClasses};
  info.batches = {{"train.bin", Split::kTrain, 3}, {"test.bin", Split::kTest, 2}};
  info.folder = "small-batches";
  info.archive = {"small.tar.gz", {}, "", 0};
  return info;
}

fs::path MakeFolder(const std::string& name) {
  fs::path folder = ScratchFolder() / name;
  fs::create_directories(folder);
  return folder;
}

void CheckSet(const Dataset& set) {
  Require(set.size(Split::kTrain) == 3 && set.size(Split::kTest) == 2, "samples are missing");
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const auto& labels = dynamic_cast<const ImageSet&>(set).images(split).labels;
    for (const uint8_t label : labels) Require(label < kClasses, "a label is no class");
  }
}

// The first byte chooses between loose files (the first one has its length in front), a plain
// archive, an archive that the target compresses, and one that is compressed already.
bool Cifar(std::string_view input) {
  // Each kind has its own folder, because loose files take precedence over archives.
  static const fs::path loose = MakeFolder("loose"), plain = MakeFolder("plain"),
                        packed = MakeFolder("packed");
  static const CifarSource source(SmallInfo());
  InputReader in(input);
  const uint8_t choice = in.Byte() % 4;
  if (choice == 0) {
    WriteScratch("loose/train.bin", in.Text());
    WriteScratch("loose/test.bin", in.Rest());
  } else if (choice == 1) {
    WriteScratch("plain/small.tar", in.Rest());
  } else {
    const std::string_view rest = in.Rest();
    WriteScratch("packed/small.tar.gz", choice == 2 ? Gzipped(rest) : rest);
  }
  const fs::path& folder = choice == 0 ? loose : choice == 1 ? plain : packed;
  return Accepts(ExitCode::kData, [&] { CheckSet(*source.Load(folder, 1)); });
}

DTRAIN_FUZZ_TARGET("cifar", Cifar);

}  // namespace
}  // namespace dtrain::fuzz
