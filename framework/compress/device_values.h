// DeviceValues: what selections ask of vectors that lie in a device's memory.
//
// A selection decides on the CPU (Selection::LookOn); only its passes over all values are the device's,
// and what comes back is about as much as it chooses.  So a compressor that is made of ScanSelection
// (scan_selection.h) selects on any device that has these few passes.  A device registers its own, with the
// kernels of layers (nn/kernel.h):
//
//   DTRAIN_DEVICE_VALUES(DeviceKind::kCuda, MakeCudaValues);    // framework/kernels/<device>/
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "framework/compress/scan.h"
#include "framework/device/device.h"

namespace dtrain {

// Entries of a unit: values[i] is the one at place places[i]; ascending.
struct UnitEntries {
  std::span<const int32_t> places;
  std::span<const float> values;
};

// Every answer is there when a call returns, in the machine's memory, until the next call.
class DeviceValues {
 public:
  virtual ~DeviceValues() = default;

  // From now on it is about values[0..n), in the device's memory, n < 2^31; they stay as they are.
  virtual void Begin(const float* values, int64_t n) = 0;
  virtual int64_t size() const = 0;

  // No NaN or infinity among them.
  virtual bool Finite() = 0;
  // All of them: for selections that have no pass of their own here.
  virtual const float* All() = 0;
  // Those in runs of equal length that begin at these places, one run behind the other.
  virtual std::span<const float> Runs(std::span<const int64_t> begins, int64_t run) = 0;
  // As AddMoments finds them, added in an order of the device's, which is fixed.
  virtual UnitMoments Moments() = 0;
  // Those of a magnitude of at least `least`, which is above 0.  More than `expected` cost another
  // round trip.
  virtual UnitEntries Reaching(uint32_t least, int64_t expected) = 0;

  // --- what a residual is made of: other vectors in the device's memory.  Asked for in the order of these
  // calls; waited for where something comes back, or is read from the machine's memory.
  // to[i] += added[i]
  virtual void Add(float* to, const float* added, int64_t n) = 0;
  // velocity[i] = momentum velocity[i] + gradient[i]
  virtual void Accelerate(float* velocity, float momentum, const float* gradient, int64_t n) = 0;
  virtual void Zero(float* to, int64_t n) = 0;
  // from[places], which become +0 there and, unless it is null, in `masked`.
  virtual std::span<const float> TakeOut(float* from, float* masked,
                                         std::span<const int32_t> places) = 0;
  // to[place] += value
  virtual void AddAt(float* to, const UnitEntries& entries) = 0;
};

// Throws ConfigError for a device that has none; the CPU has none, and needs none.
std::unique_ptr<DeviceValues> MakeDeviceValues(const Device& device);

using DeviceValuesMaker = std::function<std::unique_ptr<DeviceValues>(const Device&)>;
bool AddDeviceValues(DeviceKind device, DeviceValuesMaker make);

}  // namespace dtrain

#define DTRAIN_DEVICE_VALUES(device, make) \
  [[maybe_unused]] static const bool make##_registered = ::dtrain::AddDeviceValues(device, make)
