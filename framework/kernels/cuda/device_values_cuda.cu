// The GPU's version of DeviceValues: the passes over values in its memory that top-k selections need
// (framework/compress/device_values.h).
//
// Results are copied to one block of pinned memory, so that each call costs one copy and one wait.  The file is
// compiled without fused multiply-add (tools/cmake/DtrainCuda.cmake), so that residuals are bitwise equal to the CPU's.
#include <algorithm>
#include <vector>

#include "framework/compress/device_values.h"
#include "framework/core/magnitude.h"
#include "framework/device/buffer.h"
#include "framework/kernels/cuda/compact.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/solver/elements.h"

namespace dtrain {
namespace {

constexpr int64_t kRow = 4096;  // values that one block adds up

struct Reaches {
  const float* values;
  uint32_t least;
  DT_DEVICE bool operator()(int32_t i) const { return Magnitude(values[i]) >= least; }
};

// The sums that Moments computes.
struct Sums {
  double sum, squares, magnitudes;
  uint32_t largest;
};

DT_DEVICE inline Sums Joined(const Sums& a, const Sums& b) {
  return {a.sum + b.sum, a.squares + b.squares, a.magnitudes + b.magnitudes,
          a.largest > b.largest ? a.largest : b.largest};
}

void AddUp(CudaQueue& queue, const float* values, int64_t n, Sums* rows, Sums* total) {
  const int64_t count = (n + kRow - 1) / kRow;
  const auto join = [=] DT_DEVICE(const Sums& a, const Sums& b) { return Joined(a, b); };
  ForEachRow(
      queue, {"moments of rows", {Reads(values, n), Writes(rows, count)}}, count, kRow, Sums{},
      [=] DT_DEVICE(int64_t row, int64_t column) {
        const int64_t i = row * kRow + column;
        if (i >= n) return Sums{};
        const double value = values[i];
        return Sums{value, value * value, value < 0 ? -value : value, Magnitude(values[i])};
      },
      join, [=] DT_DEVICE(int64_t row, const Sums& sums) { rows[row] = sums; });
  ForEachRow(
      queue, {"moments", {Reads(rows, count), Writes(total, 1)}}, 1, count, Sums{},
      [=] DT_DEVICE(int64_t, int64_t row) { return rows[row]; }, join,
      [=] DT_DEVICE(int64_t, const Sums& sums) { *total = sums; });
}

void LookForBad(CudaQueue& queue, const float* values, int64_t n, uint32_t* bad) {
  ForEach(queue, {"look for bad values", {Reads(values, n), Writes(bad, 1)}}, n,
          [=] DT_DEVICE(int64_t i) {
            if (NotFinite(values[i])) *bad = 1;  // all threads write the same value
          });
}

void TakeRuns(CudaQueue& queue, const float* values, int64_t n, const int64_t* begins, int64_t runs,
              int64_t run, float* taken) {
  const int64_t count = runs * run;
  ForEach(queue,
          {"take runs", {Reads(values, n).Only(count), Reads(begins, runs), Writes(taken, count)}},
          count, [=] DT_DEVICE(int64_t i) { taken[i] = values[begins[i / run] + i % run]; });
}

// Copies the places and values of the first `most` entries found, or of all if there are fewer.
void TakeFound(CudaQueue& queue, const float* values, int64_t n, const int32_t* found,
               const int32_t* found_count, int64_t most, int32_t* places, float* taken) {
  ForEach(queue,
          {"take found entries",
           {Reads(values, n).Only(most), Reads(found, most), Reads(found_count, 1),
            Writes(places, most), Writes(taken, most)}},
          most, [=] DT_DEVICE(int64_t i) {
            if (i >= *found_count) return;
            places[i] = found[i];
            taken[i] = values[found[i]];
          });
}

void AddTo(CudaQueue& queue, float* to, const float* added, int64_t n) {
  ForEach(queue, {"add to residual", {Reads(added, n), Updates(to, n)}}, n,
          [=] DT_DEVICE(int64_t i) { to[i] += added[i]; });
}

void AccelerateAll(CudaQueue& queue, float* velocity, float momentum, const float* gradient,
                   int64_t n) {
  ForEach(queue, {"accelerate", {Reads(gradient, n), Updates(velocity, n)}}, n,
          [=] DT_DEVICE(int64_t i) { velocity[i] = momentum * velocity[i] + gradient[i]; });
}

// All places are below n, also in AddEntries.
void MoveEntries(CudaQueue& queue, float* from, float* masked, int64_t n, const int32_t* places,
                 int64_t count, float* taken) {
  ForEach(queue,
          {"move entries",
           {Updates(from, n).Only(count), Writes(masked, n).Only(count), Reads(places, count),
            Writes(taken, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            taken[i] = from[places[i]];
            from[places[i]] = 0;
            if (masked != nullptr) masked[places[i]] = 0;
          });
}

void AddEntries(CudaQueue& queue, float* to, int64_t n, const int32_t* places, const float* values,
                int64_t count) {
  ForEach(queue,
          {"add entries", {Updates(to, n).Only(count), Reads(places, count), Reads(values, count)}},
          count, [=] DT_DEVICE(int64_t i) { to[places[i]] += values[i]; });
}

class CudaValues : public DeviceValues {
 public:
  explicit CudaValues(const Device& device) : device_(device), queue_(QueueOf(device)) {}

  void Begin(const float* values, int64_t n) override {
    values_ = values;
    n_ = n;
    have_all_ = false;
  }
  int64_t size() const override { return n_; }

  bool Finite() override {
    auto* const bad = Room<uint32_t>(answer_, 1);
    queue_.Zero(bad, sizeof(uint32_t));
    LookForBad(queue_, values_, n_, bad);
    return *Fetch(bad, 1) == 0;
  }

  const float* All() override {
    if (!have_all_) {
      all_.resize(static_cast<size_t>(n_));
      queue_.Download(all_.data(), values_, all_.size() * sizeof(float));
      queue_.Wait();
      have_all_ = true;
    }
    return all_.data();
  }

  std::span<const float> Runs(std::span<const int64_t> begins, int64_t run) override {
    const int64_t count = std::ssize(begins) * run;
    auto* const device_places = Room<int64_t>(places_, std::ssize(begins));
    queue_.Upload(device_places, begins.data(), begins.size_bytes());
    auto* const taken = Room<float>(answer_, count);
    TakeRuns(queue_, values_, n_, device_places, std::ssize(begins), run, taken);
    return {Fetch(taken, count), static_cast<size_t>(count)};
  }

  UnitMoments Moments() override {
    auto* const total = Room<Sums>(answer_, 1);
    AddUp(queue_, values_, n_, Room<Sums>(rows_, (n_ + kRow - 1) / kRow), total);
    const Sums sums = *Fetch(total, 1);
    UnitMoments moments;
    moments.sum[0] = sums.sum;
    moments.squares[0] = sums.squares;
    moments.magnitudes[0] = sums.magnitudes;
    moments.largest = sums.largest;
    return moments;
  }

  UnitEntries Reaching(uint32_t least, int64_t expected) override {
    const Reaches wanted{values_, least};
    const int n = static_cast<int>(n_);
    auto* const found = Room<int32_t>(found_, n_ + 1);
    int32_t* const found_count = found + n_;
    const size_t bytes = CompactScratchBytes(n, wanted);
    Compact(queue_, n, wanted, Reads(values_, n_), found, found_count, Room<char>(scratch_, bytes),
            bytes);
    int64_t most = std::min(n_, expected);
    const int32_t* answer = FetchFound(found, found_count, most);
    if (*answer > most) {
      most = *answer;
      answer = FetchFound(found, found_count, most);
    }
    const auto count = static_cast<size_t>(*answer);
    return {{answer + 1, count}, {reinterpret_cast<const float*>(answer + 1 + most), count}};
  }

  void Add(float* to, const float* added, int64_t n) override { AddTo(queue_, to, added, n); }
  void Accelerate(float* velocity, float momentum, const float* gradient, int64_t n) override {
    AccelerateAll(queue_, velocity, momentum, gradient, n);
  }
  void Zero(float* to, int64_t n) override {
    queue_.Zero(to, static_cast<size_t>(n) * sizeof(float));
  }

  std::span<const float> TakeOut(float* from, float* masked,
                                 std::span<const int32_t> places) override {
    if (places.empty()) return {};
    auto* const device_places = Room<int32_t>(places_, std::ssize(places));
    queue_.Upload(device_places, places.data(), places.size_bytes());
    auto* const taken = Room<float>(answer_, std::ssize(places));
    MoveEntries(queue_, from, masked, places.back() + 1, device_places, std::ssize(places), taken);
    return {Fetch(taken, std::ssize(places)), places.size()};
  }

  void AddAt(float* to, const UnitEntries& entries) override {
    const int64_t count = std::ssize(entries.places);
    if (count == 0) return;
    auto* const places = Room<int32_t>(places_, count);
    auto* const values = Room<float>(answer_, count);
    queue_.Upload(places, entries.places.data(), entries.places.size_bytes());
    queue_.Upload(values, entries.values.data(), entries.values.size_bytes());
    AddEntries(queue_, to, entries.places.back() + 1, places, values, count);
    queue_.Wait();
  }

 private:
  // Fetches one array: the number of entries found, then the places of the first `most`, then their values.
  const int32_t* FetchFound(const int32_t* found, const int32_t* found_count, int64_t most) {
    auto* const answer = Room<int32_t>(answer_, 1 + 2 * most);
    queue_.Copy(answer, found_count, sizeof(int32_t));
    TakeFound(queue_, values_, n_, found, found_count, most, answer + 1,
              reinterpret_cast<float*>(answer + 1 + most));
    return Fetch(answer, 1 + 2 * most);
  }

  template <class T>
  T* Room(Buffer& buffer, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    // Grow by at least half: an allocation stalls all queues, and counts vary a little from step to step.
    if (buffer.bytes() < bytes) {
      buffer = Buffer(device_, std::max(bytes, buffer.bytes() + buffer.bytes() / 2));
    }
    return static_cast<T*>(buffer.data());
  }

  template <class T>
  T* Pinned(int64_t count) {
    return static_cast<T*>(pinned_.Room(static_cast<size_t>(count) * sizeof(T)));
  }

  template <class T>
  const T* Fetch(const T* from, int64_t count) {
    T* const to = Pinned<T>(count);
    queue_.Download(to, from, static_cast<size_t>(count) * sizeof(T));
    queue_.Wait();
    return to;
  }

  const Device device_;
  CudaQueue& queue_;
  const float* values_ = nullptr;
  int64_t n_ = 0;
  bool have_all_ = false;
  std::vector<float> all_;
  PinnedMemory pinned_;
  Buffer answer_, rows_, places_, found_, scratch_;
};

std::unique_ptr<DeviceValues> MakeCudaValues(const Device& device) {
  return std::make_unique<CudaValues>(device);
}

DTRAIN_DEVICE_VALUES(DeviceKind::kCuda, MakeCudaValues);

}  // namespace
}  // namespace dtrain
