// VectorOps: the arithmetic on vectors that an exchange needs, as a device offers it.
//
// Pointers are the device's.  Vectors are worked on in slices, so that whoever asks can look at the
// network between two of them.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/core/short_float.h"
#include "framework/device/device.h"
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

  // Elements of a slice: as many as take about as long as a look at the network may wait.
  virtual int64_t slice_elements() const = 0;

  virtual void Copy(float* to, const float* from, int64_t n) = 0;
  // to = a + b; `to` may be one of them.
  virtual void Sum(float* to, const float* a, const float* b, int64_t n) = 0;
  // to = keep * old + factor * added.  A null pointer stands for zeros.
  virtual void Combine(float* to, float keep, const float* old, float factor, const float* added,
                       int64_t n) = 0;
  virtual void Scale(float* values, float factor, int64_t n) = 0;
  virtual double SumOfSquares(const float* values, int64_t n) = 0;
  virtual void Zero(float* to, int64_t n) = 0;
  // No NaN or infinity among them.
  virtual bool Finite(const float* values, int64_t n) = 0;

  // to[i] = from[i] rounded to 16 bits, and from[i] what is left of it (core/short_float.h).
  virtual void SplitRounded(Wire wire, float* to, float* from, int64_t n) = 0;

  // --- sparse vectors.  `first`: the arena's element that to[0] is.
  // to[positions - first] = values; the others stay.
  virtual void Scatter(float* to, int64_t first, const SparseView& from) = 0;
  // to[positions - first] += factor * values
  virtual void ScatterAdd(float* to, int64_t first, float factor, const SparseView& from) = 0;
  // The entries of a + factor * b, in room for those of both; returns how many there are.
  virtual int64_t AddSparse(int32_t* positions, float* values, const SparseView& a, float factor,
                            const SparseView& b) = 0;
  // values[i] = from[positions[i] - first], which becomes +0.
  virtual void MoveOut(float* from, int64_t first, const int32_t* positions, float* values,
                       int64_t count) = 0;

  // One solver update of a slice (Solver::Apply).
  virtual bool Update(const Solver& solver, const ArenaLayout& layout, Range slice,
                      const UpdateArgs& args) = 0;
};

// Of the CPU, in the thread that calls.
std::unique_ptr<VectorOps> MakeCpuVectorOps();

// For vectors in a device's memory: Update and SumOfSquares of it, without slices.  They have
// computed when they return.  The others would read what the CPU cannot: vectors that anything
// else happens to are not there (InlineExchange).
std::unique_ptr<VectorOps> MakeDeviceVectorOps(const Device& device);

}  // namespace dtrain
