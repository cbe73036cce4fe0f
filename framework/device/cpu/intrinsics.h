// <immintrin.h> for the _isa.cc sources, without the warnings of g++ 12 about its own "undefined" vectors,
// which it gives again in every function that an AVX-512 intrinsic is inlined into (GCC bug 105593).
// What we leave uninitialised ourselves is still warned of.
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
