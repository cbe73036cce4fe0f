#include "framework/exchange/hosted_actor.h"

#include "framework/core/check.h"

namespace dtrain {

void HostedActor::BeginWith(const ExchangeSpec& spec, const VectorSlice& model) {
  if (spec.ghost) return;
  DT_CHECK(model.range == (Range{0, spec.size()}));
  for (size_t v = 0; v < vectors.specs().size(); ++v) {
    const VectorSpec& vector = vectors.specs()[v];
    if (vector.role != VectorRole::kWeights && vector.role != VectorRole::kMaster) continue;
    const VectorId to = static_cast<VectorId>(v);
    if (vector.range == model.range) {
      vectors.Replace(to, model);
    } else {
      std::copy_n(model.At(vector.range.begin), vector.range.size(), vectors.Overwrite(to));
    }
  }
  if (id == 0 && spec.start.kept != nullptr) Keep(*spec.start.kept);
  if (spec.start.solver == nullptr) return;
  const std::vector<std::string> names = spec.solver.solver->StateNames();
  for (size_t i = 0; i < solver_memory.size(); ++i) {
    const auto it = spec.start.solver->find(names[i]);
    if (it == spec.start.solver->end()) continue;
    const Range range = vectors.RangeOf(master);
    CopyIn(solver_memory[i].arena(), it->second.data() + range.begin, range.size());
  }
}

void HostedActor::Keep(const KeptVectors& kept) {
  for (const auto& [role, from] : {std::pair(VectorRole::kResidual, &kept.residual),
                                   std::pair(VectorRole::kVelocity, &kept.velocity)}) {
    const VectorId to = vectors.Find(role);
    if (to == kNoVector || from->empty()) continue;
    CopyIn(vectors.ArenaAt(vectors.Overwrite(to)), from->data(), std::ssize(*from));
  }
  if (device_residual != nullptr) device_residual->TakeFrom(vectors);
}

void HostedActor::TakeFrozen(const ArenaLayout& layout, const VectorSlice& model) {
  if (!model.blob) return;  // a ghost run simulates sizes only
  for (size_t v = 0; v < vectors.specs().size(); ++v) {
    const VectorSpec& spec = vectors.specs()[v];
    if (spec.role != VectorRole::kWeights && spec.role != VectorRole::kMaster) continue;
    ForEachFactor(layout, spec.range, [&](Range part, double factor) {
      if (factor != 0) return;
      const Arena to = vectors.ArenaAt(vectors.Slice(static_cast<VectorId>(v), part).new_values);
      CopyArena(to, {model.At(part.begin), to.queue}, part.size());
    });
  }
}

void HostedActor::Visit(StateVisitor& visitor, bool compresses) {
  actor->Visit(visitor);
  if (device_residual != nullptr) device_residual->Bring(vectors);
  vectors.Visit(visitor);
  if (device_residual != nullptr) device_residual->TakeFrom(vectors);
  visitor.Int("samples_applied", samples_applied);
  visitor.Int("updates", updates);
  if (compresses) {
    visitor.Int("compressions", compressions);
    VisitThresholds(visitor);
  }
  for (const Buffer& buffer : solver_memory) {
    VisitArena(visitor, "solver", buffer.arena(),
               static_cast<int64_t>(buffer.bytes() / sizeof(float)));
  }
}

void HostedActor::VisitThresholds(StateVisitor& visitor) {
  std::vector<int64_t> units;
  std::vector<float> values;
  for (const auto& [unit, threshold] : thresholds) {
    units.push_back(unit);
    values.push_back(threshold);
  }
  visitor.Ints("threshold_units", units);
  values.resize(units.size());
  visitor.Floats("thresholds", values);
  thresholds.clear();
  for (size_t i = 0; i < units.size(); ++i) thresholds[units[i]] = values[i];
}

}  // namespace dtrain
