// The thread budget of a rank: set here and nowhere else.
#pragma once

namespace dtrain {

// Threads a rank's compute team gets when the config says 0 ("auto"): the cores this process may use
// divided by the ranks on this node, at least 1.
int ThreadsByRule(int ranks_on_node);

// Sizes the OpenMP team of the calling thread (oneDNN's and our own loops share it) and flushes
// denormals on it and on every thread it starts later.  Call it at the start of a thread that
// computes.
void ApplyThreadBudget(int threads);

// Waiting OpenMP threads spin for milliseconds by default, which makes a team of two twenty times
// slower as soon as another process holds one of its cores.  libgomp reads its settings while it is
// loaded, so this starts the program again (execv of itself) with a short spin, once; it does nothing
// when the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY.  Call it before anything is begun.
void LimitSpinning(char** argv);

// Denormal inputs and results become zero on this thread and those it starts: a fading gradient must
// not make the arithmetic a hundred times slower.
void FlushDenormals();

}  // namespace dtrain
