#include "framework/nn/tokens.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/nn/layer.h"

namespace dtrain {

int64_t ReadVocabulary(config::Reader& reader) {
  return reader.Int("vocabulary", 0)
      .Min(0)
      .Max(kLargestExtent)
      .Help("size of the vocabulary; 0: that of the input");
}

int64_t VocabularyOf(int64_t key, int64_t classes, const std::string& reads) {
  if (key == 0 && classes == 0) {
    throw ShapeError("how many tokens " + reads + " is unknown",
                     "set the key vocabulary, or classes of the model's input of tokens");
  }
  if (key > 0 && classes > key) {
    throw ShapeError(fmt::format("a vocabulary of {}, but the tokens {} go up to {}",
                                 Counted(key, "token"), reads, classes - 1),
                     "leave the key vocabulary out: it then follows the data set");
  }
  return key > 0 ? key : classes;
}

}  // namespace dtrain
