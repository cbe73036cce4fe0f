// DeviceResidual: a worker's residual in the memory of the device that computes its gradients, so
// that only the entries that a compressor selects are copied to host memory.
//
// The net writes the gradient into gradient().  The driver's gradient vector then only receives the
// sums; it is in host memory or, where all vectors stay on the device, in its memory, and the
// operations on it are in the same queue.  Each worker has a DeviceResidual, with a device queue that
// only the exchange thread uses.  The net has finished writing a range before the exchange asks for
// it (GradientSink).
#pragma once

#include <cstdint>
#include <memory>

#include "framework/compress/device_values.h"
#include "framework/core/layout.h"
#include "framework/device/buffer.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/vector_ops.h"
#include "framework/exchange/vectors.h"

namespace dtrain {

class DeviceResidual {
 public:
  // Returns false if workers keep their residuals in host memory: the device has no memory of its
  // own, no selected entries are all-reduced (parameter servers, casts), or the whole gradient is
  // needed in host memory (gradient statistics, clipping at the worker).
  static bool Serves(const ExchangeSpec& spec, const Device& device);
  // Returns null if it does not serve.  `there`: the device with the exchange's queue, if all vectors
  // are in its memory; else the residual makes a queue of its own.
  static std::unique_ptr<DeviceResidual> For(const ExchangeSpec& spec, const Device& device,
                                             const Device& there = {});

  DeviceResidual(const ExchangeSpec& spec, const Device& device, const Device& there);

  // Returns the device memory that the net writes the gradient into.
  Arena gradient() const { return {gradient_.f32(), net_queue_}; }

  // Adds the gradient to the residual; with momentum, updates the velocity and adds that.
  void Add(Range range);
  // The same, then moves the whole residual of the range to `to`, where the driver's vectors are.
  void TakeAll(Range range, float* to);
  // True if the driver's vectors are in the device's memory.
  bool vectors_are_there() const { return there_; }
  // Sets `to`, `n` elements of such a vector, to the sum of the entries of all parts, added in their order.  `first`: the
  // position of to[0].
  void SetToEntries(float* to, int64_t n, int64_t first, std::span<const SparseView> parts);

  // Returns the residual of a unit, for a selection.
  DeviceValues& ValuesOf(Range unit);
  // Moves the entries at these places of the unit to `to` and, with `mask`, sets their velocity to zero.
  void TakeOut(Range unit, std::span<const int32_t> places, float* to, bool mask);
  // Sets the velocity of these entries to zero.  Positions are relative to `first`.
  void Mask(int64_t first, std::span<const int32_t> positions);
  // Adds entries that a sum has returned to the residual.  Positions are relative to `first`.
  void PutBack(int64_t first, const SparseView& entries);

  // Bring copies residual and velocity into the actor's vectors, TakeFrom copies them back and
  // clears those.  Call them only at a boundary.
  void Bring(ActorVectors& vectors) const;
  void TakeFrom(ActorVectors& vectors);

 private:
  const float momentum_;
  const int64_t size_;
  DeviceQueue* const net_queue_;
  const bool there_;
  const Device device_;  // with the exchange's queue if there_, else with one of its own
  const std::unique_ptr<DeviceValues> values_;
  Buffer gradient_, residual_, velocity_;
};

}  // namespace dtrain
