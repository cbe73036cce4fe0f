// VectorOps: the arithmetic on vectors that an exchange needs, implemented for the CPU and for
// devices.
//
// Pointers are to the memory of the device.  Callers work on vectors in slices, so that they can
// poll the network between two of them.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/core/short_float.h"
#include "framework/device/device.h"
#include "framework/device/step_graph.h"
#include "framework/solver/solver.h"

namespace dtrain {

// Entries of a sparse vector: values[i] is element positions[i] of the arena; ascending.
struct SparseView {
  const int32_t* positions = nullptr;
  const float* values = nullptr;
  int64_t count = 0;
};

class VectorOps {
 public:
  virtual ~VectorOps() = default;

  // Elements of a slice, chosen so that the work on it takes about as long as the network may wait
  // to be polled.
  virtual int64_t slice_elements() const = 0;

  virtual void Copy(float* to, const float* from, int64_t n) = 0;
  // to = a + b.  `to` may be the same as `a` or `b`.
  virtual void Sum(float* to, const float* a, const float* b, int64_t n) = 0;
  // to = keep * old + factor * added.  A null pointer stands for zeros.
  virtual void Combine(float* to, float keep, const float* old, float factor, const float* added,
                       int64_t n) = 0;
  virtual void Scale(float* values, float factor, int64_t n) = 0;
  virtual double SumOfSquares(const float* values, int64_t n) = 0;
  // Returns the factor that clips factor * values.
  virtual ClipFactor Clip(double clip_norm, double factor, const float* values, int64_t n) = 0;
  virtual void Zero(float* to, int64_t n) = 0;
  // True if no value is NaN or infinity.
  virtual bool Finite(const float* values, int64_t n) = 0;

  // to[i] = from[i] rounded to 16 bits; from[i] -= to[i] (core/short_float.h).
  virtual void SplitRounded(Wire wire, float* to, float* from, int64_t n) = 0;

  // --- sparse vectors.  `first`: index in the arena of to[0] or from[0].
  // to[positions - first] = values; other elements do not change.
  virtual void Scatter(float* to, int64_t first, const SparseView& from) = 0;
  // to[positions - first] += factor * values
  virtual void ScatterAdd(float* to, int64_t first, float factor, const SparseView& from) = 0;
  // Writes the entries of a + factor * b, and returns their number.  The output has room for
  // a.count + b.count entries.
  virtual int64_t AddSparse(int32_t* positions, float* values, const SparseView& a, float factor,
                            const SparseView& b) = 0;
  // values[i] = from[positions[i] - first]; the latter is set to +0.
  virtual void MoveOut(float* from, int64_t first, const int32_t* positions, float* values,
                       int64_t count) = 0;

  // Makes one solver update of a slice (Solver::Apply).  Returns false if it wrote a NaN or
  // infinity.
  virtual bool Update(const Solver& solver, const ArenaLayout& layout, Range slice,
                      const UpdateArgs& args) = 0;
};

// Makes operations that run on the CPU, in the caller's thread.
std::unique_ptr<VectorOps> MakeCpuVectorOps();

// Makes operations for vectors in a device's memory.  Only Update and Clip work there; they take
// the whole vector as one slice and are part of a step of `steps`.  The other operations would read
// the memory with the CPU; vectors that need them are kept in host memory (InlineExchange).
std::unique_ptr<VectorOps> MakeDeviceVectorOps(const Device& device, StepGraph* steps);

}  // namespace dtrain
