// CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", technical report,
// University of Toronto, 2009): 50,000 + 10,000 colour photographs, 32 x 32, of ten classes.
//
// The mean is that of the training pixels.  The deviation is the one that published recipes use (0.2023 ...), which is
// the mean over the images of the deviation within an image; over all pixels it is 0.2470 0.2435 0.2616.  Size and
// SHA-256 are those that TensorFlow Datasets records (url_checksums/cifar10.txt).
#include "framework/data/images/cifar.h"

namespace dtrain {
namespace {

CifarInfo DescribeCifar10() {
  CifarInfo info;
  info.name = "cifar10";
  info.images = {Shape{3, 32, 32}, 10, {0.4914f, 0.4822f, 0.4465f}, {0.2023f, 0.1994f, 0.2010f}};
  info.label_classes = {10};
  for (const char number : {'1', '2', '3', '4', '5'}) {
    info.batches.push_back({std::string("data_batch_") + number + ".bin", Split::kTrain, 10000});
  }
  info.batches.push_back({"test_batch.bin", Split::kTest, 10000});
  info.folder = "cifar-10-batches-bin";
  info.archive = {"cifar-10-binary.tar.gz",
                  {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
                  "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                  170052171};
  return info;
}

class Cifar10 : public CifarSource {
 public:
  Cifar10() : CifarSource(DescribeCifar10()) {}
};

DTRAIN_DATASET("cifar10", Cifar10, "photographs of ten classes, 32 x 32 colour (binary batches)");

}  // namespace
}  // namespace dtrain
