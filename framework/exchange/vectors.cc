#include "framework/exchange/vectors.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/exchange/vector_ops.h"

namespace dtrain {

void VisitArena(StateVisitor& visitor, const std::string& name, Arena values, int64_t n) {
  if (values.queue == nullptr) {
    return visitor.Floats(name, {values.data, static_cast<size_t>(n)});
  }
  std::vector<float> copy = FloatsOf(values, n);
  visitor.Floats(name, copy);
  CopyIn(values, copy.data(), n);
}

ActorVectors::ActorVectors(std::vector<VectorSpec> specs, int gradient_tail, BlobPools* pools)
    : specs_(std::move(specs)),
      entries_(specs_.size()),
      gradient_tail_(gradient_tail),
      pools_(pools) {
  if (pools == nullptr) return;
  for (size_t v = 0; v < specs_.size(); ++v) {
    if (specs_[v].role == VectorRole::kGradient) {
      entries_[v].blob = NewBlob(static_cast<VectorId>(v));
    }
  }
}

VectorId ActorVectors::Find(VectorRole role) const {
  const auto it = std::find_if(specs_.begin(), specs_.end(),
                               [role](const VectorSpec& spec) { return spec.role == role; });
  return it == specs_.end() ? kNoVector : static_cast<VectorId>(it - specs_.begin());
}

// Memory of vectors that are sent comes from NewToSend, which may put it into the shared window.
Blob ActorVectors::NewBlob(VectorId vector) {
  const VectorSpec& spec = specs_[vector];
  const bool gradient = spec.role == VectorRole::kGradient;
  const int64_t elements = spec.range.size() + (gradient ? gradient_tail_ : 0);
  const bool sent = gradient || spec.role == VectorRole::kMaster || spec.handed_on;
  return sent ? pools_->NewToSend(elements) : pools_->New(elements);
}

VectorSlice ActorVectors::Get(VectorId vector, Range range) {
  Commit(vector);
  Entry& entry = entries_[vector];
  entry.ghost_content = true;
  if (!entry.blob && pools_ != nullptr && entry.entries == kDense) {
    entry.blob = NewBlob(vector);
    std::fill_n(entry.blob.MutableF32(), specs_[vector].range.size(), 0.0f);
  }
  const VectorSlice all{entry.blob,    entry.offset, specs_[vector].range,
                        entry.entries, entry.stride, entry.wire};
  return range.empty() ? all : all.Part(range);
}

float* ActorVectors::Overwrite(VectorId vector) {
  Entry& entry = entries_[vector];
  if (pools_ == nullptr) return nullptr;
  if (Sparse(vector)) Clear(vector);
  entry.wire = Wire::kFp32;
  if (!entry.blob || entry.blob.shared()) entry.blob = NewBlob(vector);
  return entry.blob.MutableF32();
}

void ActorVectors::Clear(VectorId vector) { entries_[vector] = Entry(); }

bool ActorVectors::CanReplace(VectorId vector, const VectorSlice& slice) const {
  const VectorSpec& spec = specs_[vector];
  if (slice.range != spec.range) return false;
  return slice.sparse() ? spec.role == VectorRole::kPlain : slice.offset == 0;
}

void ActorVectors::Replace(VectorId vector, VectorSlice slice) {
  DT_CHECK(CanReplace(vector, slice)) << specs_[vector].name;
  entries_[vector] = Entry{.blob = std::move(slice.blob),
                           .offset = slice.offset,
                           .entries = slice.entries,
                           .stride = slice.stride,
                           .wire = slice.wire,
                           .ghost_content = true};
}

bool ActorVectors::Empty(VectorId vector) const {
  const Entry& entry = entries_[vector];
  if (pools_ == nullptr) return entry.entries == kDense && !entry.ghost_content;
  return !entry.blob && !entry.next && entry.entries == kDense;
}

void ActorVectors::MakeDense(VectorId vector) {
  Entry& entry = entries_[vector];
  if (pools_ == nullptr) entry.ghost_content = true;
  if (!Sparse(vector)) return;
  const VectorSlice slice = Get(vector);
  entry = Entry{.ghost_content = entry.ghost_content};
  if (pools_ == nullptr) return;
  entry.blob = NewBlob(vector);
  float* const values = entry.blob.MutableF32();
  std::fill_n(values, slice.range.size(), 0.0f);
  for (int64_t i = 0; i < slice.entries; ++i) {
    values[slice.positions()[i] - slice.range.begin] = slice.values()[i];
  }
}

Blob ActorVectors::NewSparse(int64_t entries) {
  return pools_ == nullptr ? Blob() : pools_->NewRoom(2 * entries);
}

ActorVectors::SliceMemory ActorVectors::Slice(VectorId vector, Range slice) {
  Entry& entry = entries_[vector];
  DT_CHECK(!Sparse(vector)) << specs_[vector].name;
  entry.wire = Wire::kFp32;
  const bool again =
      std::any_of(entry.written.begin(), entry.written.end(), [slice](const Range& written) {
        return written.begin < slice.end && slice.begin < written.end;
      });
  if (again) Commit(vector);  // the result of the first write becomes the old values
  if (!entry.next && (!entry.blob || entry.blob.shared())) entry.next = NewBlob(vector);
  const int64_t at = slice.begin - specs_[vector].range.begin;
  if (!entry.next) {
    float* const values = entry.blob.MutableF32() + at;
    return {values, values};
  }
  if (!entry.written.empty() && entry.written.back().end == slice.begin) {
    entry.written.back().end = slice.end;
  } else {
    entry.written.push_back(slice);
  }
  return {entry.blob ? entry.blob.f32() + at : nullptr, entry.next.MutableF32() + at};
}

float* ActorVectors::SliceWithValues(VectorId vector, Range slice, VectorOps& ops) {
  const SliceMemory memory = Slice(vector, slice);
  if (memory.old_values == nullptr) {
    ops.Zero(memory.new_values, slice.size());
  } else if (memory.old_values != memory.new_values) {
    ops.Copy(memory.new_values, memory.old_values, slice.size());
  }
  return memory.new_values;
}

// Makes the next version the current one.  Parts of it that were not written are copied.
void ActorVectors::Commit(VectorId vector) {
  Entry& entry = entries_[vector];
  if (!entry.next) return;
  const Range all = specs_[vector].range;
  std::sort(entry.written.begin(), entry.written.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  entry.written.push_back({all.end, all.end});
  int64_t done = all.begin;
  for (const Range& range : entry.written) {
    if (range.begin > done) {
      float* const to = entry.next.MutableF32() + (done - all.begin);
      if (entry.blob) {
        std::copy_n(entry.blob.f32() + (done - all.begin), range.begin - done, to);
      } else {
        std::fill_n(to, range.begin - done, 0.0f);
      }
    }
    done = std::max(done, range.end);
  }
  entry.blob = std::move(entry.next);
  entry.next = Blob();
  entry.written.clear();
}

Blob ActorVectors::NewDense(int64_t elements) {
  return pools_ == nullptr ? Blob() : pools_->New(elements);
}

void ActorVectors::Visit(StateVisitor& visitor) {
  for (size_t v = 0; v < specs_.size(); ++v) {
    const VectorId vector = static_cast<VectorId>(v);
    if (specs_[v].role == VectorRole::kGradient) continue;
    Commit(vector);
    constexpr int64_t kNone = 0, kAll = 1, kSome = 2;
    int64_t present = Sparse(vector) ? kSome : entries_[v].blob ? kAll : kNone;
    visitor.Int(specs_[v].name + " present", present);
    if (present == kNone && (pools_ != nullptr || Sparse(vector))) Clear(vector);
    if (present == kAll) VisitDense(vector, visitor);
    if (present == kSome) VisitSparse(vector, visitor);
  }
}

void ActorVectors::VisitDense(VectorId vector, StateVisitor& visitor) {
  if (Sparse(vector)) Clear(vector);  // the loaded vector is dense
  Entry& entry = entries_[vector];
  const VectorSpec& spec = specs_[vector];
  const bool fresh = !entry.blob || entry.blob.shared();
  Blob values = fresh ? NewBlob(vector) : std::move(entry.blob);
  const Arena to = ArenaAt(values.MutableF32());
  if (fresh && entry.blob) CopyArena(to, entry.blob.arena(), spec.range.size());
  VisitArena(visitor, spec.name, to, spec.range.size());
  entry.blob = std::move(values);
}

// The vector is saved and loaded as a sparse one, so that later sums have the same bits and
// messages the same size.  In a ghost run only the number of its entries is saved.
void ActorVectors::VisitSparse(VectorId vector, StateVisitor& visitor) {
  const VectorSpec& spec = specs_[vector];
  const VectorSlice saved = Sparse(vector) ? Get(vector) : VectorSlice{.entries = 0};
  int64_t entries = saved.entries;
  visitor.Int(spec.name + " entries", entries);
  if (pools_ == nullptr) return Replace(vector, {.range = spec.range, .entries = entries});
  std::vector<int64_t> positions(saved.positions(), saved.positions() + saved.entries);
  std::vector<float> values(saved.values(), saved.values() + saved.entries);
  visitor.Ints(spec.name + " positions", positions);
  values.resize(positions.size());
  visitor.Floats(spec.name, values);
  VectorSlice loaded{NewSparse(entries), 0, spec.range, entries, entries};
  int32_t* const to = reinterpret_cast<int32_t*>(loaded.blob.MutableF32());
  std::copy(positions.begin(), positions.end(), to);
  std::copy(values.begin(), values.end(), loaded.blob.MutableF32() + entries);
  Replace(vector, std::move(loaded));
}

}  // namespace dtrain
