// A whole translation model, small enough for plain loops: a bidirectional GRU and a decoder with attention.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "framework/nn/graph.h"

namespace dtrain {

struct SmallSeq2Seq {
  int64_t source_length = 3, source_words = 13;
  int64_t target_length = 5, target_words = 11;
  std::string decoder;  // its keys other than `hidden`
};

inline Graph GraphOf(const SmallSeq2Seq& model) {
  return Graph::FromText(fmt::format(R"(
name: small_seq2seq
inputs:
  - {{name: source, shape: [{0}], classes: {1}}}
  - {{name: target, shape: [{2}], classes: {3}}}
  - {{name: label, shape: [{2}], classes: {3}}}
layers:
  - {{name: encoder.embedding, type: embedding, input: source, outputs: 4}}
  - {{name: encoder.rnn, type: gru, input: [encoder.embedding, source], hidden: 3, bidirectional: true}}
  - {{name: encoder.last, type: final_state, input: [encoder.rnn, source], bidirectional: true}}
  - {{name: encoder.fc, type: inner_product, outputs: 3}}
  - {{name: encoder.state, type: tanh}}
  - {{name: decoder, type: attention_decoder, input: [encoder.rnn, encoder.state, source, target],
     hidden: 3, {4}}}
  - {{name: loss, type: softmax_cross_entropy, input: [decoder, label], ignore: 1}}
)",
                                     model.source_length, model.source_words, model.target_length,
                                     model.target_words, model.decoder),
                         "m.yaml", {});
}

}  // namespace dtrain
