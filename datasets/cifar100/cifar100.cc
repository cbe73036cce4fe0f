// CIFAR-100 (Krizhevsky, "Learning multiple layers of features from tiny images", technical report,
// University of Toronto, 2009): 50,000 + 10,000 colour photographs, 32 x 32.  A record has the superclass (of 20)
// before the class (of 100); the label is the class.
//
// Mean and deviation are those of the training pixels.  Size and SHA-256 are those that TensorFlow Datasets records
// (url_checksums/cifar100.txt).
#include "framework/data/images/cifar.h"

namespace dtrain {
namespace {

CifarInfo DescribeCifar100() {
  CifarInfo info;
  info.name = "cifar100";
  info.images = {Shape{3, 32, 32}, 100, {0.5071f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}};
  info.label_classes = {20, 100};
  info.batches = {{"train.bin", Split::kTrain, 50000}, {"test.bin", Split::kTest, 10000}};
  info.folder = "cifar-100-binary";
  info.archive = {"cifar-100-binary.tar.gz",
                  {"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"},
                  "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                  168513733};
  return info;
}

class Cifar100 : public CifarSource {
 public:
  Cifar100() : CifarSource(DescribeCifar100()) {}
};

DTRAIN_DATASET("cifar100", Cifar100, "photographs of 100 classes, 32 x 32 colour (binary files)");

}  // namespace
}  // namespace dtrain
