// The kernels that begin and end a step on the GPU (device/step_graph.h).
#include <algorithm>
#include <array>
#include <cmath>

#include "framework/device/step_graph.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/solver/elements.h"

namespace dtrain {
namespace {

// The rings are memory of the host, which a launch does not name.
void BeginStep(const Device& device, const StepState* state, const std::byte* ring,
               std::byte* values, size_t bytes, const float* scaled) {
  const auto words = static_cast<int64_t>((bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
  auto* const to = reinterpret_cast<uint32_t*>(values);
  ForEach(QueueOf(device), {"step values", {Reads(state, 1), Writes(to, words)}}, words,
          [=] DT_DEVICE(int64_t i) {
            const std::byte* const slot =
                ring + state->step % StepGraph::kSteps * StepGraph::kValueBytes;
            auto* const number = reinterpret_cast<float*>(to + i);
            if (number == scaled) {
              *number = reinterpret_cast<const float*>(slot)[i] * state->scale.factor;
            } else {
              to[i] = reinterpret_cast<const uint32_t*>(slot)[i];
            }
          });
}

void EndStep(const Device& device, std::span<const double* const> sums, StepResults* ring,
             StepState* state) {
  std::array<const double*, StepResults::kSums> from = {};
  std::ranges::copy(sums, from.begin());
  const size_t count = sums.size();
  ForEach(QueueOf(device),
          {"step results",
           {Reads(from[0], 1), Reads(from[1], 1), Reads(from[2], 1), Reads(from[3], 1),
            Updates(state, 1)}},
          1, [=] DT_DEVICE(int64_t) {
            StepResults& results = ring[state->step % StepGraph::kSteps];
            results.count = count;
            for (size_t k = 0; k < StepResults::kSums; ++k) {
              results.sums[k] = k < count ? *from[k] : 0;
            }
            const bool first = state->non_finite.step == NonFinitePlace::kNone;
            // The host reads the loss as a float (Reducer::OutcomeAlone).
            if (first && count > 0 && !std::isfinite(static_cast<float>(results.sums[0]))) {
              state->non_finite.step = state->step;
            }
            if (state->scale.factor > 0 && !state->Ended()) {
              const bool overflowed = state->overflow != NonFinitePlace::kNone;
              if (overflowed && state->scale.factor <= 1) {
                state->non_finite.step = state->step;
                state->non_finite.gradient = state->overflow;
              }
              state->scale = state->scale.Next(overflowed);
            }
            state->overflow = NonFinitePlace::kNone;
            results.non_finite = state->non_finite;
            results.scale = state->scale;
            ++state->step;
          });
}

void UnscaleGradients(const Device& device, StepState* state, float* gradients, int64_t count) {
  ForEach(QueueOf(device), {"unscale gradients", {Updates(state, 1), Updates(gradients, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const float scaled = gradients[i];
            gradients[i] = scaled / state->scale.factor;
            if (NotFinite(scaled)) {
              AtomicMin(&state->overflow, static_cast<unsigned long long>(i));
            }
          });
}

constexpr StepKernels kStepKernels = {BeginStep, EndStep, UnscaleGradients};

DTRAIN_STEP_KERNELS(DeviceKind::kCuda, kStepKernels);

}  // namespace
}  // namespace dtrain
