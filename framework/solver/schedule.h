// Learning-rate schedules are pure functions of the run's progress, so that a resumed run, a run with other workers and
// a simulated one follow the same curve.
//
//   constant                              1
//   step       {every: N, factor}         x factor every N epochs
//              {at: [..], factor}         x factor at these epochs
//   multistep  {at: [..], factor}         x factor at these epochs
//   cosine     {to}                       from 1 down half a cosine to `to`
//   polynomial {power, to}                to + (1 - to) (1 - progress)^power
//   one_cycle  {rise, start_divisor, end_divisor}
//              PyTorch's OneCycleLR with cosine annealing: lr is the peak; up from
//              lr / start_divisor during the share `rise`, then down to
//              lr / start_divisor / end_divisor.  Momentum stays as it is.
//
// "Epochs done" counts the samples applied before the step, over the samples of an epoch: 0 at the
// first step, 6.0 exactly at the first step of the seventh epoch.
#pragma once

#include <functional>
#include <string>

#include "framework/config/reader.h"
#include "framework/core/registry.h"

namespace dtrain {

struct RunProgress {
  double epochs_done = 0;
  double epochs_total = 1;
  double share() const;  // epochs_done / epochs_total, clamped to [0, 1]
};

// Returns the factor of the base learning rate.
using Schedule = std::function<double(const RunProgress&)>;

struct ScheduleEntry {
  std::function<Schedule(config::Reader&)> read;  // reads its keys besides `name`
  std::string help;
};

using ScheduleRegistry = Registry<ScheduleEntry>;

// Reads a section {name: ..., keys}.  After an error, which is added to the document, it returns a constant schedule.
Schedule ReadSchedule(config::Reader reader);

}  // namespace dtrain

// `read` is a function with the signature of ScheduleEntry::read.
#define DTRAIN_SCHEDULE(name, read, help_text)                    \
  [[maybe_unused]] static const bool read##_schedule_registered = \
      ::dtrain::ScheduleRegistry::Add(name, {read, help_text})
