#include "framework/data/device_dataset.h"

#include <mutex>
#include <utility>
#include <vector>

namespace dtrain {
namespace {

class DeviceDataset : public WrappedDataset {
 public:
  DeviceDataset(std::shared_ptr<const Dataset> whole, const Device& device)
      : WrappedDataset(std::move(whole)), device_(device) {
    device_.queue = device.queue->Another();
    resident_ = this->whole().KeepOn(device_);
  }

  Batch MakeBatch(int64_t max_samples) const override {
    const std::lock_guard lock(mutex_);
    Batch batch(fields(), max_samples, device_);
    // Waits until the memory is zeroed.
    device_.Record().Wait();
    return batch;
  }

  // Synchronous, so that the net's queue need not wait for this one.
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    if (!batch.on_device) return whole().Fill(split, indices, epoch, batch);
    if (indices.empty()) return;
    const std::lock_guard lock(mutex_);
    if (resident_ != nullptr) return resident_->Fill(split, indices, epoch, batch);
    Stage(batch);
    whole().Fill(split, indices, epoch, staged_);
    batch.loss_unit = staged_.loss_unit;
    for (size_t f = 0; f < batch.fields.size(); ++f) {
      const Tensor& field = staged_.fields[f];
      device_.queue->Upload(batch.fields[f].data, field.data,
                            static_cast<size_t>(field.shape.count()) * SizeOf(field.dtype));
    }
    device_.Record().Wait();
  }

 private:
  // Gives `staged_` the shapes of `batch`.
  void Stage(const Batch& batch) const {
    staged_.samples = batch.samples;
    staged_.fields = batch.fields;
    staged_.memory.resize(batch.fields.size());
    for (size_t f = 0; f < batch.fields.size(); ++f) {
      Buffer& memory = staged_.memory[f];
      if (memory.bytes() < batch.memory[f].bytes()) {
        memory = Buffer(batch.memory[f].bytes());
        memory.PinFor(device_.queue);
      }
      staged_.fields[f].data = memory.data();
    }
  }

  Device device_;
  mutable std::mutex mutex_;  // one thread at a time may use the queue
  std::unique_ptr<ResidentSamples> resident_;
  mutable Batch staged_;  // pinned host memory
};

}  // namespace

std::shared_ptr<const Dataset> OnDevice(std::shared_ptr<const Dataset> whole,
                                        const Device& device) {
  if (device.queue == nullptr) return whole;
  return std::make_shared<DeviceDataset>(std::move(whole), device);
}

Batch OnDevice(const Batch& batch, const std::vector<FieldSpec>& fields, const Device& device) {
  Batch there(fields, batch.samples, device);
  static_cast<BatchCounts&>(there) = batch;
  for (size_t f = 0; f < batch.fields.size(); ++f) {
    device.queue->Upload(there.fields[f].data, batch.fields[f].data, there.memory[f].bytes());
  }
  device.Record().Wait();
  return there;
}

}  // namespace dtrain
