// Conventions of layers that read sentences: tokens are int32 [N, T], and only padding tokens follow the end of a
// sentence.
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/reader.h"

namespace dtrain {

inline constexpr int64_t kPadToken = 1;  // the default of the key `pad`

// Returns the length of one row's sentence: the tokens before the first `pad`.
constexpr int64_t SentenceLength(const int32_t* tokens, int64_t count, int64_t pad) {
  int64_t length = 0;
  while (length < count && tokens[length] != pad) ++length;
  return length;
}

// Reads the key `vocabulary`; 0 means as many tokens as the input may hold.
int64_t ReadVocabulary(config::Reader& reader);

// Returns the vocabulary: the key's value, else the number of tokens of the input (Layer::SetInputClasses).  Throws
// ShapeError if neither is known or the input may hold tokens beyond the key's value.  `reads` is a phrase of the
// message: "it reads".
int64_t VocabularyOf(int64_t key, int64_t classes, const std::string& reads);

}  // namespace dtrain
