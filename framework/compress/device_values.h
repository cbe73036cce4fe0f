// DeviceValues provides the operations that selections need on vectors in a device's memory.
//
// A selection decides on the CPU (Selection::LookOn); its passes over all values run on the device, and so does all that
// takes time for many entries: the device returns hardly more than are chosen.  So a compressor based on ScanSelection
// (scan_selection.h) works on any device with these few passes.  A device registers its own, like the kernels of layers
// (nn/kernel.h):
//
//   DTRAIN_DEVICE_VALUES(DeviceKind::kCuda, MakeCudaValues);    // framework/kernels/<device>/
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "framework/compress/scan.h"
#include "framework/compress/spread_sample.h"
#include "framework/device/device.h"

namespace dtrain {

// Entries of a unit: values[i] is at place places[i]; places ascend.
struct UnitEntries {
  std::span<const int32_t> places;
  std::span<const float> values;
};

// Answers DeviceValues::Reaching.
struct ReachingEntries {
  int64_t count = 0;    // of all that reach the threshold
  UnitEntries entries;  // all of them, or fewer
};

// All calls are synchronous; results are in host memory, valid until the next call.
class DeviceValues {
 public:
  virtual ~DeviceValues() = default;

  // Sets the values of the following calls: values[0..n) in the device's memory, n < 2^31, which must not change.
  virtual void Begin(const float* values, int64_t n) = 0;
  virtual int64_t size() const = 0;

  // True if no value is NaN or infinite.
  virtual bool Finite() = 0;
  // Returns all values, for selections without a pass here.
  virtual const float* All() = 0;
  // Returns the values at these places.
  virtual std::span<const float> At(std::span<const int32_t> places) = 0;
  // Returns the nth largest magnitude of a sample's values; 1 if fewer are not zero.
  virtual uint32_t Ranked(const SpreadSample& sample, int64_t nth) = 0;
  // Returns the sums of AddMoments, added in an order that is fixed for the device.
  virtual UnitMoments Moments() = 0;
  // Returns the entries with a magnitude of at least `least`, which is above 0.  If there are more than `most`, it may
  // return only the `most` largest; of equal ones those at the lowest places remain.
  virtual ReachingEntries Reaching(uint32_t least, int64_t most) = 0;
  // Returns how many entries Reaching returns at most.
  static constexpr int64_t FewOf(int64_t most) { return most < 512 ? 1024 : 2 * most; }

  // --- Operations on residuals: other vectors in the device's memory.  They are submitted in the order of the calls; a
  // call waits only if it returns data, or reads host memory.
  virtual void Add(float* to, const float* added, int64_t n) = 0;
  // Computes velocity[i] = momentum velocity[i] + gradient[i].
  virtual void Accelerate(float* velocity, float momentum, const float* gradient, int64_t n) = 0;
  virtual void Zero(float* to, int64_t n) = 0;
  virtual void Copy(float* to, const float* from, int64_t n) = 0;
  // Returns from[places], and sets these to +0 in `from` and, unless it is null, in `masked`.
  virtual std::span<const float> TakeOut(float* from, float* masked,
                                         std::span<const int32_t> places) = 0;
  // Computes to[place] += value for each entry.
  virtual void AddAt(float* to, const UnitEntries& entries) = 0;
};

// Throws ConfigError for a device that has none registered; the CPU needs none.
std::unique_ptr<DeviceValues> MakeDeviceValues(const Device& device);

using DeviceValuesMaker = std::function<std::unique_ptr<DeviceValues>(const Device&)>;
bool AddDeviceValues(DeviceKind device, DeviceValuesMaker make);

}  // namespace dtrain

#define DTRAIN_DEVICE_VALUES(device, make) \
  [[maybe_unused]] static const bool make##_registered = ::dtrain::AddDeviceValues(device, make)
