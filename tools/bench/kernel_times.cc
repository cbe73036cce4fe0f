// Prints the kernels of one training step on a GPU with their times on the device, as CUPTI's activities have them: no
// counter is read, which many machines do not permit.  CUDA loads it into any program of dtrain:
//
//   CUDA_INJECTION64_PATH=libkernel_times.so dtrain bench step --device cuda --model resnet18
//
// The step is the last whole one; the kernel that writes a step's results ends it (kernels/cuda/step_kernels_cuda.cu).
// The table goes to standard error: microseconds from the step's beginning, microseconds, name.
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Activity {
  uint64_t start, end;  // nanoseconds
  std::string name;
};

std::mutex mutex;  // CUPTI has threads of its own
std::vector<Activity> activities;

std::string Demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string demangled = status == 0 ? text : name;
  std::free(text);
  return demangled;
}

void Note(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    activities.push_back({kernel->start, kernel->end, kernel->name});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
    activities.push_back(
        {copy->start, copy->end, "copy of " + std::to_string(copy->bytes) + " bytes"});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    activities.push_back({set->start, set->end, "zeros, " + std::to_string(set->bytes) + " bytes"});
  }
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  constexpr size_t kBytes = size_t{4} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, kBytes));
  *bytes = *buffer == nullptr ? 0 : kBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) Note(record);
  std::free(buffer);
}

bool EndsAStep(const Activity& activity) {
  return activity.name.find("EndStep") != std::string::npos;
}

void Print() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(mutex);
  std::ranges::sort(activities, {}, &Activity::start);
  const auto last = std::find_if(activities.rbegin(), activities.rend(), EndsAStep);
  if (last == activities.rend()) {
    std::fprintf(stderr, "no training step was seen\n");
    return;
  }
  const auto before = std::find_if(last + 1, activities.rend(), EndsAStep);
  const std::vector<Activity> step(before.base(), last.base());
  std::map<std::string, std::pair<int, uint64_t>> by_name;
  uint64_t busy = 0;
  std::fprintf(stderr, "%10s %10s  kernel\n", "begins us", "takes us");
  for (const Activity& activity : step) {
    const uint64_t nanos = activity.end - activity.start;
    const std::string name = Demangled(activity.name.c_str());
    auto& [count, sum] = by_name[name];
    ++count;
    sum += nanos;
    busy += nanos;
    std::fprintf(stderr, "%10.1f %10.1f  %s\n", (activity.start - step[0].start) / 1e3, nanos / 1e3,
                 name.c_str());
  }
  std::vector<std::pair<std::string, std::pair<int, uint64_t>>> names(by_name.begin(),
                                                                      by_name.end());
  std::ranges::sort(names, std::greater<>(), [](const auto& row) { return row.second.second; });
  std::fprintf(stderr, "\n%10s %10s  all of a name\n", "calls", "take us");
  for (const auto& [name, sums] : names) {
    std::fprintf(stderr, "%10d %10.1f  %s\n", sums.first, sums.second / 1e3, name.c_str());
  }
  std::fprintf(stderr,
               "\n%zu kernels and copies, %.1f us at work in %.1f us from the first to the last\n",
               step.size(), busy / 1e3, (step.back().end - step[0].start) / 1e3);
}

}  // namespace

// CUDA calls it before the program's first call; 0 would leave the library out.
extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) return 0;
  }
  std::atexit(Print);
  return 1;
}
