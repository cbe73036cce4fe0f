// Includes <immintrin.h> for the _isa.cc sources, without the warnings of g++ 12 about its own "undefined" vectors,
// which it repeats in every function that an AVX-512 intrinsic is inlined into (GCC bug 105593).  Warnings about our
// own uninitialised values stay.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
