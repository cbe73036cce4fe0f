// A transcript: events, one a line, and below each the effects that it had, indented.
//
//   # comment
//   run 3 workers, 10 parameters, strategy {name: ps_ssp, staleness: 1}
//                            or ... {name: ps_ssp}, compress {name: topk, density: 0.25}
//   begin w0
//     w0: start step
//   end w0 samples=4 loss=1.5
//     w0 > s0 push: clock 1, ...
//   deliver w0 s0                the oldest message from w0 to s0
//   quiet w0 steps=20 epochs=1   or "last": the end of the run
//   steps w0 6 samples=4 compute=100    whole steps, each with all messages; effects are not shown
//   describe w0    report    reload    (reload: every actor saved, created again and loaded)
//
// "at=50" after any event sets the time from there on, in ns.
#pragma once

#include <string>

namespace dtrain {

// Returns the transcript with the current effects of its events.
std::string Replay(const std::string& transcript);

}  // namespace dtrain
