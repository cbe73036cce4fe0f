#include "framework/evaluate/translator.h"

#include <algorithm>
#include <numeric>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/nn/graph.h"

namespace dtrain {
namespace {

constexpr size_t kSentencesTogether = 64;  // sentences translated in one batch

// Holds the inputs of the graph: the source, and for all other fields tensors of length 1 that decoding does not read.
struct DecodingInput {
  DecodingInput(const Graph& graph, SourceBatch source, int64_t samples)
      : tokens(std::move(source.tokens)), unread(static_cast<size_t>(samples), token::kStart) {
    for (const FieldSpec& field : graph.inputs()) {
      const bool read = field.name == "source";
      std::vector<int32_t>& values = read ? tokens : unread;
      fields.push_back(
          {values.data(), {samples, read ? source.length : 1}, field.dtype, Format::kPlain});
    }
    input.fields = fields;
    input.samples = samples;
  }

  std::vector<int32_t> tokens, unread;
  std::vector<Tensor> fields;
  NetInput input;
};

// Returns the first `count` indices of a split, sorted by the length of their source, so that a batch has little
// padding.
std::vector<int64_t> ByLength(const SentencePairs& pairs, Split split, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return pairs.Source(split, a).size() < pairs.Source(split, b).size();
  });
  return order;
}

}  // namespace

std::vector<std::vector<int32_t>> Translate(Net& net, ConstArena weights, ConstArena state,
                                            const std::vector<std::vector<int32_t>>& sentences,
                                            const SearchOptions& options) {
  if (sentences.empty()) return {};
  const DecodingInput decoding(net.graph(), MakeSourceBatch(sentences),
                               static_cast<int64_t>(sentences.size()));
  return BeamSearch(net.StartDecoding(weights, state, decoding.input), options);
}

BleuCounts TranslateSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                          ConstArena state, int rank, int ranks, const SearchOptions& options) {
  BleuCounts counts;
  if (!net.CanDecode() || dataset.sentence_pairs() == nullptr) return counts;
  const BroughtModel model = net.Bring(weights, state);
  // These are all pairs, even if the data set is limited.
  const SentencePairs& pairs = *dataset.sentence_pairs();
  const std::vector<int64_t> order = ByLength(pairs, split, dataset.size(split));
  const size_t stride = kSentencesTogether * static_cast<size_t>(ranks);
  for (size_t begin = kSentencesTogether * static_cast<size_t>(rank); begin < order.size();
       begin += stride) {
    const size_t end = std::min(begin + kSentencesTogether, order.size());
    std::vector<std::vector<int32_t>> sentences;
    for (size_t i = begin; i < end; ++i) {
      const auto source = pairs.Source(split, order[i]);
      sentences.emplace_back(source.begin(), source.end());
    }
    const auto answers = Translate(net, model.weights, model.state, sentences, options);
    for (size_t i = begin; i < end; ++i) {
      counts.Add(pairs.info().target.WordsOf(answers[i - begin]), pairs.Reference(split, order[i]));
    }
  }
  return counts;
}

BleuCounts JoinCounts(Transport& transport, const BleuCounts& mine) {
  BleuCounts sum;
  for (const std::string& bytes : Gather(transport, ToBytes(mine))) {
    sum.Add(FromBytes<BleuCounts>(bytes));
  }
  return FromBytes<BleuCounts>(Broadcast(transport, transport.rank() == 0 ? ToBytes(sum) : ""));
}

}  // namespace dtrain
