// The counted random numbers for dropout and teacher forcing, implemented again from their specifications, without the
// product's code: an independent check of their keys.
//
// The generator is Philox4x32-10 of section 3.3 of its paper (core/random.h names it): the counter is two pairs; each
// round multiplies one word of each pair into 64 bits, swaps the halves between the pairs, and xors in the other word
// and the round's key.
//
// A number's counter is (index / 4, b), its key the mix of (seed, purpose, a), its word index % 4.
#pragma once

#include <array>
#include <cstdint>

namespace dtrain::counted_random {

// The numbers of these purposes in core/random.h.
inline constexpr uint32_t kDropoutPurpose = 3, kTeacherForcingPurpose = 9;

using Counter = std::array<uint32_t, 4>;

// The round keys are the given ones plus `round` times the Weyl constants.
inline Counter Philox(Counter counter, uint32_t key0, uint32_t key1) {
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{3528531795u} * counter[0];
    const uint64_t second = uint64_t{3449720151u} * counter[2];
    const auto high = [](uint64_t product) { return static_cast<uint32_t>(product >> 32); };
    const auto low = [](uint64_t product) { return static_cast<uint32_t>(product); };
    counter = {high(second) ^ counter[1] ^ (key0 + round * 2654435769u), low(second),
               high(first) ^ counter[3] ^ (key1 + round * 3144134277u), low(first)};
  }
  return counter;
}

// MurmurHash3's 64-bit finaliser.
inline uint64_t Finalise(uint64_t value) {
  value = (value ^ (value >> 33)) * 18397679294719823053u;
  value = (value ^ (value >> 33)) * 14181476777654086739u;
  return value ^ (value >> 33);
}

inline uint32_t Word(uint64_t seed, uint32_t purpose, uint64_t a, uint64_t b, uint64_t index) {
  const uint64_t key = Finalise(Finalise(Finalise(seed) + purpose) + a);
  const uint64_t block = index / 4;
  const Counter words = Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32)},
                               static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return words[index % 4];
}

// Returns whether a dropout layer drops element `index` of the sample at `position` of the global batch.
inline bool Dropped(double ratio, uint64_t seed, uint64_t layer, uint64_t step, int64_t position,
                    int64_t index) {
  const uint64_t sample = step * 1048576 + static_cast<uint64_t>(position);
  return Word(seed, kDropoutPurpose, layer, sample, static_cast<uint64_t>(index)) <
         ratio * 4294967296.0;
}

// Returns the same for the vector of a decoder's token at its step t.
inline bool DecoderDropped(double ratio, uint64_t seed, uint64_t layer, uint64_t step,
                           int64_t position, int64_t t, int64_t index) {
  return Dropped(ratio, seed, layer + static_cast<uint64_t>(t + 1) * 65536, step, position, index);
}

// Returns whether step t > 0 of a decoder gets the true token.
inline bool Forced(double probability, uint64_t seed, uint64_t layer, uint64_t step, int64_t t) {
  const uint32_t bits =
      Word(seed, kTeacherForcingPurpose, layer, step, static_cast<uint64_t>(t)) >> 8;
  return bits / 16777216.0 < probability;
}

}  // namespace dtrain::counted_random
