// Fashion-MNIST (Xiao, Rasul, Vollgraf, arXiv:1708.07747): 60,000 + 10,000 articles of clothing in
// MNIST's format.
//
// Sizes and SHA-256 are those that TensorFlow Datasets records (url_checksums/fashion_mnist.txt); its record of the
// MNIST files agrees with ours.
#include "framework/data/images/idx.h"

namespace dtrain {
namespace {

RemoteFile Published(const std::string& name, int64_t bytes, const std::string& sha256) {
  return {name,
          {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/" + name,
           "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/" + name},
          sha256,
          bytes};
}

IdxInfo DescribeFashionMnist() {
  return {"fashion_mnist",
          {Shape{1, 28, 28}, 10, 0.2860f, 0.3530f},
          60000,
          10000,
          {Published("train-images-idx3-ubyte.gz", 26421880,
                     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
           Published("train-labels-idx1-ubyte.gz", 29515,
                     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
           Published("t10k-images-idx3-ubyte.gz", 4422102,
                     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
           Published("t10k-labels-idx1-ubyte.gz", 5148,
                     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5")}};
}

class FashionMnist : public IdxSource {
 public:
  FashionMnist() : IdxSource(DescribeFashionMnist()) {}
};

DTRAIN_DATASET("fashion_mnist", FashionMnist, "articles of clothing, 28 x 28 grey (IDX files)");

}  // namespace
}  // namespace dtrain
