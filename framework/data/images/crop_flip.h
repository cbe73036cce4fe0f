// Crops and mirrors training images at random, the augmentation usual for CIFAR (He, Zhang, Ren, Sun, arXiv:1512.03385,
// section 4.2).
//
// The crop and the mirroring are a pure function of (seed, epoch, sample): they do not depend on the worker, the batch
// or the number of calls.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain {

struct CropFlip {
  int padding = 0;    // black border in pixels, before the crop to the original size
  bool flip = false;  // mirror half of the images, left to right
};

// A view of an image: pixel (y, x) of the view is pixel (y + down, x + right) of the image, and black outside of it;
// then the view may be mirrored.  The default is the unchanged image.
struct View {
  int64_t down = 0;
  int64_t right = 0;
  bool mirrored = false;
  friend bool operator==(const View&, const View&) = default;
};

// Draws a view: `down` and `right` are uniform over [-padding, padding], `mirrored` is true with probability 1/2 if
// flip.
View DrawView(const CropFlip& augment, uint64_t seed, uint64_t epoch, int64_t sample);

// Writes the view of one channel, [rows, columns] row-major, with each pixel p as values[p].
void CopyView(const View& view, const uint8_t* channel, int64_t rows, int64_t columns,
              std::span<const float, 256> values, float* to);

}  // namespace dtrain
