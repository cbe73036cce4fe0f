// Random crop and mirroring of training images, the augmentation usual for CIFAR (He, Zhang, Ren,
// Sun, arXiv:1512.03385, section 4.2).
//
// Where an image is cut and whether it is mirrored is a pure function of (seed, epoch, sample):
// which worker asks, in which batch and how often does not matter.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain {

struct CropFlip {
  int padding = 0;    // black pixels around the image, before it is cut to its own size again
  bool flip = false;  // mirror every other image, left to right
};

// How one image is seen: pixel (y, x) of the view is pixel (y + down, x + right) of the image, and
// black outside of it; then the view is mirrored or not.  The default is the image as it is.
struct View {
  int64_t down = 0;
  int64_t right = 0;
  bool mirrored = false;
  friend bool operator==(const View&, const View&) = default;
};

// `down` and `right` are uniform over [-padding, padding], `mirrored` is true for half of all.
View DrawView(const CropFlip& augment, uint64_t seed, uint64_t epoch, int64_t sample);

// Writes the view of one channel, [rows, columns] row-major, with each pixel p as values[p].
void CopyView(const View& view, const uint8_t* channel, int64_t rows, int64_t columns,
              std::span<const float, 256> values, float* to);

}  // namespace dtrain
