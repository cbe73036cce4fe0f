// DT_DEVICE: before a function or a lambda that a GPU runs as well, where nvcc compiles it.
#pragma once

#ifdef __CUDACC__
#define DT_DEVICE __device__
#else
#define DT_DEVICE
#endif
