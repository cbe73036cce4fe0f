#include "framework/data/images/crop_flip.h"

#include <algorithm>
#include <array>

#include "framework/core/random.h"

namespace dtrain {
namespace {

// Copies one row of the view; kStep is -1 to write it from the right.
template <int kStep>
void CopyRow(int64_t right, const uint8_t* from, int64_t columns,
             std::span<const float, 256> values, float* to) {
  const int64_t begin = std::clamp<int64_t>(-right, 0, columns);
  const int64_t end = std::clamp<int64_t>(columns - right, begin, columns);
  const float* value = values.data();
  const float black = value[0];
  for (int64_t x = 0; x < begin; ++x) to[kStep * x] = black;
  for (int64_t x = begin; x < end; ++x) to[kStep * x] = value[from[x + right]];
  for (int64_t x = end; x < columns; ++x) to[kStep * x] = black;
}

}  // namespace

View DrawView(const CropFlip& augment, uint64_t seed, uint64_t epoch, int64_t sample) {
  const Random random(seed, Purpose::kAugment, epoch, static_cast<uint64_t>(sample));
  const std::array<uint32_t, 4> words = random.Block(0);
  const auto offset = [&](uint32_t word) {
    const uint64_t places = 2 * static_cast<uint64_t>(augment.padding) + 1;
    return static_cast<int64_t>(word * places >> 32) - augment.padding;
  };
  return {offset(words[0]), offset(words[1]), augment.flip && words[2] >> 31 != 0};
}

void CopyView(const View& view, const uint8_t* channel, int64_t rows, int64_t columns,
              std::span<const float, 256> values, float* to) {
  for (int64_t y = 0; y < rows; ++y, to += columns) {
    const int64_t source = y + view.down;
    if (source < 0 || source >= rows) {
      std::fill_n(to, columns, values[0]);
    } else if (view.mirrored) {
      CopyRow<-1>(view.right, channel + source * columns, columns, values, to + columns - 1);
    } else {
      CopyRow<1>(view.right, channel + source * columns, columns, values, to);
    }
  }
}

}  // namespace dtrain
