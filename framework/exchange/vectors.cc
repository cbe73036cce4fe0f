#include "framework/exchange/vectors.h"

#include <algorithm>

#include "framework/core/check.h"

namespace dtrain {

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

Blob ActorVectors::NewBlob(VectorId vector) {
  const VectorSpec& spec = specs_[vector];
  const int64_t tail = spec.role == VectorRole::kGradient ? gradient_tail_ : 0;
  return pools_->New(spec.range.size() + tail);
}

Piece ActorVectors::Get(VectorId vector, Range range) {
  Commit(vector);
  Entry& entry = entries_[vector];
  if (!entry.blob && pools_ != nullptr) {
    entry.blob = NewBlob(vector);
    std::fill_n(entry.blob.MutableF32(), specs_[vector].range.size(), 0.0f);
  }
  const Piece all{entries_[vector].blob, 0, specs_[vector].range};
  return range.empty() ? all : all.Part(range);
}

float* ActorVectors::Overwrite(VectorId vector) {
  Entry& entry = entries_[vector];
  if (pools_ == nullptr) return nullptr;
  if (!entry.blob || entry.blob.shared()) entry.blob = NewBlob(vector);
  return entry.blob.MutableF32();
}

void ActorVectors::Clear(VectorId vector) { entries_[vector] = Entry(); }

void ActorVectors::Replace(VectorId vector, Piece piece) {
  DT_CHECK(piece.range == specs_[vector].range && piece.offset == 0) << specs_[vector].name;
  entries_[vector] = Entry{std::move(piece.blob), {}, {}};
}

ActorVectors::SliceMemory ActorVectors::Slice(VectorId vector, Range slice) {
  Entry& entry = entries_[vector];
  const bool again =
      std::any_of(entry.written.begin(), entry.written.end(), [slice](const Range& written) {
        return written.begin < slice.end && slice.begin < written.end;
      });
  if (again) Commit(vector);  // what is there now is what the first writing left
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

// Makes the next version the current one; what was not written stays as it was.
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

void ActorVectors::Visit(StateVisitor& visitor) {
  for (size_t v = 0; v < specs_.size(); ++v) {
    const VectorId vector = static_cast<VectorId>(v);
    Commit(vector);
    int64_t present = entries_[v].blob ? 1 : 0;
    visitor.Int(specs_[v].name + " present", present);
    if (present == 0) {
      Clear(vector);
      continue;
    }
    const bool fresh = !entries_[v].blob || entries_[v].blob.shared();
    Blob values = fresh ? NewBlob(vector) : std::move(entries_[v].blob);
    const size_t size = static_cast<size_t>(specs_[v].range.size());
    if (fresh && entries_[v].blob) std::copy_n(entries_[v].blob.f32(), size, values.MutableF32());
    visitor.Floats(specs_[v].name, {values.MutableF32(), size});
    entries_[v].blob = std::move(values);
  }
}

}  // namespace dtrain
