// DT_DEVICE marks a function or lambda that also runs on a GPU; it is empty unless nvcc compiles it.
#pragma once

#ifdef __CUDACC__
#define DT_DEVICE __device__
#else
#define DT_DEVICE
#endif
