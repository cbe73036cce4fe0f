#include "framework/data/images/resident_images.h"

#include <array>
#include <map>
#include <vector>

#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

std::map<DeviceKind, ViewImages>& Registered() {
  static std::map<DeviceKind, ViewImages> registered;
  return registered;
}

template <class T>
size_t BytesOf(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

class ResidentImages : public ResidentSamples {
 public:
  ResidentImages(const ImageSet& set, const Device& device, ViewImages view_images)
      : set_(set), device_(device), view_images_(view_images), values_(Copy(set.values())) {
    for (const Split split : kSplits) {
      const LabelledImages& source = set.images(split);
      splits_[static_cast<size_t>(split)] = {Copy(source.images), Copy(source.labels)};
    }
    device_.Record().Wait();
  }

  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch, Batch& batch) override {
    Reserve(indices.size());
    auto* const views = static_cast<SampleView*>(host_views_.data());
    for (size_t row = 0; row < indices.size(); ++row) {
      views[row] = {indices[row], set_.ViewOf(split, epoch, indices[row])};
    }
    device_.queue->Upload(views_.data(), views, indices.size() * sizeof(SampleView));
    const Images& images = splits_[static_cast<size_t>(split)];
    const Shape& shape = set_.image_shape();
    const StoredImages from = {static_cast<const uint8_t*>(images.pixels.data()),
                               static_cast<const uint16_t*>(images.labels.data()),
                               values_.f32(),
                               std::ssize(set_.images(split).labels),
                               shape[0],
                               shape[1],
                               shape[2]};
    view_images_(device_, from, static_cast<const SampleView*>(views_.data()),
                 static_cast<int64_t>(indices.size()), batch.fields[0].f32(),
                 batch.fields[1].i32());
    device_.Record().Wait();
  }

 private:
  struct Images {
    Buffer pixels, labels;
  };

  template <class T>
  Buffer Copy(const std::vector<T>& from) const {
    Buffer copy(device_, BytesOf(from));
    if (!from.empty()) device_.queue->Upload(copy.data(), from.data(), BytesOf(from));
    return copy;
  }

  void Reserve(size_t samples) {
    const size_t bytes = samples * sizeof(SampleView);
    if (bytes <= views_.bytes()) return;
    views_ = Buffer(device_, bytes);
    host_views_ = Buffer(bytes);
    host_views_.PinFor(device_.queue);
  }

  const ImageSet& set_;
  const Device device_;
  const ViewImages view_images_;
  const Buffer values_;
  std::array<Images, 3> splits_;
  Buffer views_, host_views_;  // of the current batch
};

}  // namespace

bool AddViewImages(DeviceKind device, ViewImages view_images) {
  return Registered().emplace(device, view_images).second;
}

std::unique_ptr<ResidentSamples> KeepImages(const ImageSet& set, const Device& device) {
  const auto it = Registered().find(device.kind);
  if (it == Registered().end()) return nullptr;
  size_t bytes = 0;
  for (const Split split : kSplits) {
    bytes += BytesOf(set.images(split).images) + BytesOf(set.images(split).labels);
  }
  if (bytes > device.queue->FreeBytes() / 4) return nullptr;
  return std::make_unique<ResidentImages>(set, device, it->second);
}

}  // namespace dtrain
