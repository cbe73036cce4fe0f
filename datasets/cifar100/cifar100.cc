// CIFAR-100 (Krizhevsky, "Learning multiple layers of features from tiny images", technical report,
// University of Toronto, 2009): 50,000 + 10,000 colour photographs, 32 x 32.  A record has the
// superclass (of 20) before the class (of 100); the class is learned.
//
// Mean and deviation are those of the training pixels.  Size and SHA-256 as TensorFlow Datasets
// records them (url_checksums/cifar100.txt).
#include "framework/data/images/cifar.h"

namespace dtrain {
namespace {

CifarFacts Facts() {
  CifarFacts facts;
  facts.name = "cifar100";
  facts.images = {Shape{3, 32, 32}, 100, {0.5071f, 0.4865f, 0.4409f}, {0.2673f, 0.2564f, 0.2762f}};
  facts.label_classes = {20, 100};
  facts.batches = {{"train.bin", Split::kTrain, 50000}, {"test.bin", Split::kTest, 10000}};
  facts.folder = "cifar-100-binary";
  facts.archive = {"cifar-100-binary.tar.gz",
                   {"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"},
                   "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                   168513733};
  return facts;
}

class Cifar100 : public CifarSource {
 public:
  Cifar100() : CifarSource(Facts()) {}
};

DTRAIN_DATASET("cifar100", Cifar100, "photographs of 100 classes, 32 x 32 colour (binary files)");

}  // namespace
}  // namespace dtrain
