// A language that a small model learns in a second: each word has one translation, in the same order.  Written as the
// files of multi30k.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/core/random.h"

namespace dtrain {

inline constexpr char kToyModel[] = R"(
name: toy_seq2seq
layers:
  - {name: source_embedding, type: embedding, input: source, outputs: 12}
  - {name: encoder, type: gru, input: [source_embedding, source], hidden: 16, bidirectional: true}
  - {name: final, type: final_state, input: [encoder, source], bidirectional: true}
  - {name: bridge, type: inner_product, outputs: 16}
  - {name: first, type: tanh}
  - {name: decoder, type: attention_decoder, input: [encoder, first, source, target],
     hidden: 16, embedding: 12, attention: 16, teacher_forcing: 0.5}
  - {name: loss, type: softmax_cross_entropy, input: [decoder, label], ignore: 1}
)";

// Writes `pairs` sentences of 1 to 6 words into folder/multi30k/raw, and the model folder/toy.yaml.  Another `dialect`
// has other words.
inline void WriteToyTranslation(const std::filesystem::path& folder, int64_t pairs,
                                const std::string& dialect = "") {
  const char* const words[][2] = {{"eins", "one"},  {"zwei", "two"},   {"drei", "three"},
                                  {"vier", "four"}, {"grün", "green"}, {"rot", "red"},
                                  {"blau", "blue"}, {"haus", "house"}};
  const std::filesystem::path raw = folder / "multi30k" / "raw";
  std::filesystem::create_directories(raw);
  std::ofstream(folder / "toy.yaml") << kToyModel;
  uint64_t sentence = 0;
  for (const std::string split : {"train", "val", "test_2016_flickr"}) {
    std::ofstream german(raw / (split + ".de")), english(raw / (split + ".en"));
    for (int64_t i = 0; i < (split == "train" ? pairs : pairs / 8); ++i) {
      const Random random(1, Purpose::kSelfTest, ++sentence);
      const uint64_t length = 1 + random.Below(0, 6);
      for (uint64_t w = 1; w <= length; ++w) {
        const auto& pair = words[random.Below(w, std::size(words))];
        german << dialect << pair[0] << ' ';
        english << pair[1] << ' ';
      }
      german << '\n';
      english << '\n';
    }
  }
}

}  // namespace dtrain
