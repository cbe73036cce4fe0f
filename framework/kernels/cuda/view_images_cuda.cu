// Composes batches from images that are kept in the GPU's memory (data/images/resident_images.h).
#include "framework/data/images/resident_images.h"
#include "framework/kernels/cuda/loops.h"

namespace dtrain {
namespace {

void ViewImagesCuda(const Device& device, const StoredImages& from, const SampleView* views,
                    int64_t samples, float* data, int32_t* labels) {
  CudaQueue& queue = QueueOf(device);
  const int64_t plane = from.rows * from.columns;
  const int64_t size = from.channels * plane;  // numbers of an image
  ForEach(queue,
          {"view images",
           {Reads(views, samples), Reads(from.images, from.samples * size).Only(samples * size, 1),
            Reads(from.values, from.channels * 256), Writes(data, samples * size)}},
          samples * size, [=] DT_DEVICE(int64_t i) {
            const SampleView& of = views[i / size];
            const int64_t channel = i % size / plane;
            const int64_t x = i % from.columns;
            const int64_t row = i % plane / from.columns + of.view.down;
            const int64_t column = (of.view.mirrored ? from.columns - 1 - x : x) + of.view.right;
            const bool inside = row >= 0 && row < from.rows && column >= 0 && column < from.columns;
            const uint8_t* const image = from.images + of.sample * size + channel * plane;
            data[i] =
                from.values[channel * 256 + (inside ? image[row * from.columns + column] : 0)];
          });
  ForEach(
      queue,
      {"view labels",
       {Reads(views, samples), Reads(from.labels, from.samples).Only(samples, sizeof(*from.labels)),
        Writes(labels, samples)}},
      samples, [=] DT_DEVICE(int64_t row) { labels[row] = from.labels[views[row].sample]; });
}

DTRAIN_VIEW_IMAGES(DeviceKind::kCuda, ViewImagesCuda);

}  // namespace
}  // namespace dtrain
