// What layers that read sentences agree on: tokens are int32 [N, T], and behind the end of a
// sentence there is nothing but a padding token.
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/reader.h"

namespace dtrain {

inline constexpr int64_t kPadToken = 1;  // the default of the key `pad`

// Of one row of tokens: those before the first `pad`.
constexpr int64_t SentenceLength(const int32_t* tokens, int64_t count, int64_t pad) {
  int64_t length = 0;
  while (length < count && tokens[length] != pad) ++length;
  return length;
}

// The key `vocabulary`: 0 means as many as the input may hold.
int64_t ReadVocabulary(config::Reader& reader);

// The key's value, else what the input says (Layer::SetInputClasses).  Throws ShapeError when
// neither is known or the input may hold tokens beyond the key's.  `reads`: "it reads", for the
// message.
int64_t VocabularyOf(int64_t key, int64_t classes, const std::string& reads);

}  // namespace dtrain
