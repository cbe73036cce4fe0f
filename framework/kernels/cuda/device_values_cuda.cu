// The GPU's version of DeviceValues: the passes over values in its memory that top-k selections need
// (framework/compress/device_values.h).
//
// Results are copied to one block of pinned memory, so that each call costs one copy and one wait.  The file is
// compiled without fused multiply-add (tools/cmake/DtrainCuda.cmake), so that residuals are bitwise equal to the CPU's.
#include <algorithm>
#include <bit>
#include <vector>

#include "framework/compress/device_values.h"
#include "framework/core/magnitude.h"
#include "framework/device/buffer.h"
#include "framework/kernels/cuda/compact.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/sort.h"
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

// All places are below n.
void TakeAt(CudaQueue& queue, const float* values, int64_t n, const int32_t* places, int64_t count,
            float* taken) {
  ForEach(
      queue,
      {"take entries", {Reads(values, n).Only(count), Reads(places, count), Writes(taken, count)}},
      count, [=] DT_DEVICE(int64_t i) { taken[i] = values[places[i]]; });
}

// The sort is ascending, and what is wanted are the largest.
DT_DEVICE inline uint32_t KeyOf(float value) { return 0x7fffffffu - Magnitude(value); }
uint32_t OfKey(uint32_t key) { return 0x7fffffffu - key; }
constexpr int kKeyBits = 31;

void TakeSampleKeys(CudaQueue& queue, const float* values, int64_t n, const SpreadSample& sample,
                    uint32_t* keys, int32_t* places) {
  const int64_t count = sample.values();
  ForEach(queue,
          {"keys of a sample",
           {Reads(values, n).Only(count), Writes(keys, count), Writes(places, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const int64_t place = sample.PlaceOf(i);
            keys[i] = KeyOf(values[place]);
            places[i] = static_cast<int32_t>(place);
          });
}

void TakeKeys(CudaQueue& queue, const float* values, int64_t n, const int32_t* places,
              int64_t count, uint32_t* keys) {
  ForEach(queue,
          {"keys of entries",
           {Reads(values, n).Only(count), Reads(places, count), Writes(keys, count)}},
          count, [=] DT_DEVICE(int64_t i) { keys[i] = KeyOf(values[places[i]]); });
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

  std::span<const float> At(std::span<const int32_t> places) override {
    const int64_t count = std::ssize(places);
    if (count == 0) return {};
    auto* const device_places = Room<int32_t>(places_, count);
    queue_.Upload(device_places, places.data(), places.size_bytes());
    auto* const taken = Room<float>(answer_, count);
    TakeAt(queue_, values_, n_, device_places, count, taken);
    return {Fetch(taken, count), places.size()};
  }

  uint32_t Ranked(const SpreadSample& sample, int64_t nth) override {
    const int64_t count = sample.values();
    if (nth > count) return 1;
    auto* const keys = Room<uint32_t>(keys_, 2 * count);
    auto* const places = Room<int32_t>(sorted_, 2 * count);
    TakeSampleKeys(queue_, values_, n_, sample, keys, places);
    Sort(keys, places, count, kKeyBits, keys + count, places + count);
    return std::max(OfKey(*Fetch(keys + count + nth - 1, 1)), 1u);
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

  // The host keeps the largest of few entries faster than a sort does.
  ReachingEntries Reaching(uint32_t least, int64_t most) override {
    const Reaches wanted{values_, least};
    const int n = static_cast<int>(n_);
    auto* const found = Room<int32_t>(found_, n_ + 1);
    int32_t* const found_count = found + n_;
    const size_t bytes = CompactScratchBytes(n, wanted);
    Compact(queue_, n, wanted, Reads(values_, n_), found, found_count, Room<char>(scratch_, bytes),
            bytes);
    const int64_t few = std::min(n_, most <= kFew ? FewOf(most) : 0);
    const int32_t* const answer = FetchFound(found, found_count, few);
    const int64_t count = *answer;
    if (count <= few) return {count, EntriesOf(answer + 1, few, count)};
    const int32_t* places = found;
    if (count > most) places = PlacesOfLargest(found, count, most);
    return {count, FetchAt(places, std::min(count, most))};
  }

  void Add(float* to, const float* added, int64_t n) override { AddTo(queue_, to, added, n); }
  void Accelerate(float* velocity, float momentum, const float* gradient, int64_t n) override {
    AccelerateAll(queue_, velocity, momentum, gradient, n);
  }
  void Zero(float* to, int64_t n) override {
    queue_.Zero(to, static_cast<size_t>(n) * sizeof(float));
  }
  void Copy(float* to, const float* from, int64_t n) override {
    queue_.Copy(to, from, static_cast<size_t>(n) * sizeof(float));
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
  static constexpr int64_t kFew = 4096;

  // Fetches one array: the number of entries found, then the places of the first `most`, then their values.
  const int32_t* FetchFound(const int32_t* found, const int32_t* found_count, int64_t most) {
    auto* const answer = Room<int32_t>(answer_, 1 + 2 * most);
    queue_.Copy(answer, found_count, sizeof(int32_t));
    if (most > 0) {
      TakeFound(queue_, values_, n_, found, found_count, most, answer + 1,
                reinterpret_cast<float*>(answer + 1 + most));
    }
    return Fetch(answer, 1 + 2 * most);
  }
  // Returns `count` entries of an array that has room for `most` places and as many values.
  static UnitEntries EntriesOf(const int32_t* array, int64_t most, int64_t count) {
    return {{array, static_cast<size_t>(count)},
            {reinterpret_cast<const float*>(array + most), static_cast<size_t>(count)}};
  }
  UnitEntries FetchAt(const int32_t* places, int64_t count) {
    auto* const answer = Room<int32_t>(answer_, 2 * count);
    queue_.Copy(answer, places, static_cast<size_t>(count) * sizeof(int32_t));
    TakeAt(queue_, values_, n_, places, count, reinterpret_cast<float*>(answer + count));
    return EntriesOf(Fetch(answer, 2 * count), count, count);
  }

  // Returns the places of the `most` largest of `count` entries, ascending, in the device's memory.  `found` ascends and
  // both sorts are stable, so of equal ones the lowest places remain.
  const int32_t* PlacesOfLargest(const int32_t* found, int64_t count, int64_t most) {
    auto* const keys = Room<uint32_t>(keys_, 2 * count);
    auto* const places = Room<int32_t>(sorted_, count + most);
    TakeKeys(queue_, values_, n_, found, count, keys);
    Sort(keys, found, count, kKeyBits, keys + count, places);
    Sort(reinterpret_cast<const uint32_t*>(places), places, most,
         std::bit_width(static_cast<uint64_t>(n_)), keys, places + count);
    return places + count;
  }

  void Sort(const uint32_t* keys, const int32_t* values, int64_t count, int bits,
            uint32_t* sorted_keys, int32_t* sorted_values) {
    const size_t bytes = SortScratchBytes(static_cast<int>(count), bits);
    SortPairs(queue_, {static_cast<int>(count), bits, keys, values, sorted_keys, sorted_values},
              Room<char>(scratch_, static_cast<int64_t>(bytes)), bytes);
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
  Buffer answer_, rows_, places_, found_, scratch_, keys_, sorted_;
};

std::unique_ptr<DeviceValues> MakeCudaValues(const Device& device) {
  return std::make_unique<CudaValues>(device);
}

DTRAIN_DEVICE_VALUES(DeviceKind::kCuda, MakeCudaValues);

}  // namespace
}  // namespace dtrain
