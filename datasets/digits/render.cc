#include "datasets/digits/render.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/random.h"

namespace dtrain::digits {
namespace {

// These are the ranges of the random distortions.  They are chosen so that LeNet-5 (lr 0.01, momentum 0.9, batch 64)
// reaches an accuracy near 99 %.
constexpr float kPointJitter = 0.05f;  // shift of each point of a stroke, in glyph heights
constexpr float kBend = 0.095f;        // shift of each node of the elastic grid, in glyph heights
constexpr float kTurn = 0.18f;         // tangent of half the rotation: about 20 degrees
constexpr float kSlant = 0.35f;        // horizontal shear
constexpr float kShift = 2.5f;         // pixels
constexpr float kHeightMin = 15.0f;    // pixels
constexpr float kHeightMax = 21.0f;
constexpr float kNarrow = 0.75f;  // width scale, against the height
constexpr float kWide = 1.2f;
constexpr float kPenMin = 0.75f;  // radius of the pen in pixels
constexpr float kPenMax = 1.9f;
constexpr float kInkMin = 0.65f;  // darkness of the ink
constexpr float kNoise = 0.24f;   // largest change of a pixel
constexpr int kPartsPerSpan = 5;  // straight parts between two points of a stroke

// Draws the random numbers of one sample.
class Draws {
 public:
  Draws(uint64_t seed, Split split, int64_t index)
      : random_(seed, Purpose::kDigits, split == Split::kTrain ? 0 : 1, index) {}

  float Between(float low, float high) { return low + (high - low) * Fraction(); }
  float Around(float spread) { return Between(-spread, spread); }
  uint64_t Below(uint64_t bound) { return (uint64_t{Word()} * bound) >> 32; }

  std::array<uint32_t, 4> Block() {
    word_ = 4;
    return random_.Block(next_block_++);
  }

 private:
  uint32_t Word() {
    if (word_ == 4) {
      words_ = Block();
      word_ = 0;
    }
    return words_[word_++];
  }
  float Fraction() { return static_cast<float>(Word() >> 8) * 0x1p-24f; }

  Random random_;
  uint64_t next_block_ = 0;
  std::array<uint32_t, 4> words_{};
  int word_ = 4;
};

struct Vec {
  float x = 0;
  float y = 0;
};
Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
Vec operator*(float s, Vec a) { return {s * a.x, s * a.y}; }
float Dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y; }

// Elastic distorts by random displacements on a 4 x 4 grid over the glyph, which are interpolated smoothly.
class Elastic {
 public:
  explicit Elastic(Draws& draws) {
    for (Vec& node : nodes_) node = {draws.Around(kBend), draws.Around(kBend)};
  }

  Vec Apply(Vec p) const {
    const auto [column, fx] = Place(p.x);
    const auto [row, fy] = Place(p.y);
    const Vec* node = &nodes_[row * kNodes + column];
    const Vec top = node[0] + fx * (node[1] - node[0]);
    const Vec bottom = node[kNodes] + fx * (node[kNodes + 1] - node[kNodes]);
    return p + top + fy * (bottom - top);
  }

 private:
  static constexpr int kNodes = 4;

  struct Cell {
    int index;
    float fraction;
  };
  static Cell Place(float coordinate) {
    const float scaled = std::clamp((coordinate + 0.6f) * ((kNodes - 1) / 1.2f), 0.0f,
                                    static_cast<float>(kNodes - 1) - 1e-3f);
    const int index = static_cast<int>(scaled);
    const float f = scaled - static_cast<float>(index);
    return {index, f * f * (3 - 2 * f)};
  }

  std::array<Vec, kNodes * kNodes> nodes_;
};

// Transforms glyph coordinates to pixels by a random scale, slant, rotation and shift.
class Affine {
 public:
  explicit Affine(Draws& draws) {
    const float height = draws.Between(kHeightMin, kHeightMax);
    const float width = height * draws.Between(kNarrow, kWide);
    const float slant = draws.Around(kSlant) * width;
    const float t = draws.Around(kTurn);
    const float cosine = (1 - t * t) / (1 + t * t);
    const float sine = 2 * t / (1 + t * t);
    column_x_ = {cosine * width, sine * width};
    column_y_ = {-cosine * slant - sine * height, -sine * slant + cosine * height};
    constexpr float kMiddle = (kSide - 1) / 2.0f;
    origin_ = {kMiddle + draws.Around(kShift), kMiddle + draws.Around(kShift)};
  }

  Vec Apply(Vec p) const { return origin_ + p.x * column_x_ + p.y * column_y_; }

 private:
  Vec column_x_, column_y_, origin_;
};

// Holds the coverage of each pixel by the pen, from 0 to 1.
class Paper {
 public:
  // Draws a straight part of a stroke with a round pen; `radius` is in pixels.
  void Line(Vec from, Vec to, float radius) {
    const Vec along = to - from;
    const float inverse = 1 / std::max(Dot(along, along), 1e-6f);
    const float reach = radius + 0.5f;
    const auto [left, right] = Span(from.x, to.x, reach);
    const auto [top, bottom] = Span(from.y, to.y, reach);
    for (int y = top; y < bottom; ++y) {
      float* row = &cover_[y * kSide];
      for (int x = left; x < right; ++x) {
        const Vec offset = Vec{static_cast<float>(x), static_cast<float>(y)} - from;
        const float t = std::clamp(Dot(offset, along) * inverse, 0.0f, 1.0f);
        const Vec away = offset - t * along;
        row[x] = std::max(row[x], std::min(reach - std::sqrt(Dot(away, away)), 1.0f));
      }
    }
  }

  float cover(int pixel) const { return cover_[pixel]; }

 private:
  struct Pixels {
    int begin;
    int end;
  };
  static Pixels Span(float a, float b, float reach) {
    const int begin = static_cast<int>(std::floor(std::min(a, b) - reach));
    const int end = static_cast<int>(std::ceil(std::max(a, b) + reach)) + 1;
    return {std::max(begin, 0), std::min(end, kSide)};
  }

  std::array<float, kPixels> cover_{};
};

constexpr size_t kMaxPoints = 16;

// Returns the point at t in [0, 1] between p1 and p2 on the Catmull-Rom spline through four consecutive points.
Vec Spline(Vec p0, Vec p1, Vec p2, Vec p3, float t) {
  const Vec a = 2 * p1;
  const Vec b = p2 - p0;
  const Vec c = 2 * p0 - 5 * p1 + 4 * p2 - p3;
  const Vec d = 3 * (p1 - p2) + p3 - p0;
  return 0.5f * (a + t * (b + t * (c + t * d)));
}

void DrawStroke(Stroke stroke, const Elastic& elastic, const Affine& affine, Draws& draws,
                Paper& paper) {
  std::array<Vec, kMaxPoints> points;
  for (size_t i = 0; i < stroke.size(); ++i) {
    points[i] = {stroke[i].x + draws.Around(kPointJitter),
                 stroke[i].y + draws.Around(kPointJitter)};
  }
  const float pen_begin = draws.Between(kPenMin, kPenMax);
  const float pen_end = std::clamp(pen_begin + draws.Around(0.5f), kPenMin, kPenMax);
  const size_t last = stroke.size() - 1;
  Vec from = affine.Apply(elastic.Apply(points[0]));
  for (size_t i = 0; i < last; ++i) {
    const Vec before = i == 0 || stroke[i].corner ? points[i] : points[i - 1];
    const Vec after = i + 1 == last || stroke[i + 1].corner ? points[i + 1] : points[i + 2];
    for (int part = 1; part <= kPartsPerSpan; ++part) {
      const float t = static_cast<float>(part) / kPartsPerSpan;
      const Vec to =
          affine.Apply(elastic.Apply(Spline(before, points[i], points[i + 1], after, t)));
      const float progress = (static_cast<float>(i) + t) / static_cast<float>(last);
      paper.Line(from, to, pen_begin + progress * (pen_end - pen_begin));
      from = to;
    }
  }
}

// Converts the coverage to grey values with a random ink darkness, and adds noise of triangular distribution (the sum
// of two bytes) to every pixel.
void Develop(const Paper& paper, Draws& draws, uint8_t* pixels) {
  const float ink = draws.Between(kInkMin, 1);
  const float noise = draws.Between(0, kNoise);
  for (int block = 0; block < kPixels / 8; ++block) {
    const std::array<uint32_t, 4> words = draws.Block();
    for (int i = 0; i < 8; ++i) {
      const uint32_t half = words[i / 2] >> (i % 2 * 16);
      const int sum = static_cast<int>((half & 255) + (half >> 8 & 255));
      const float value =
          ink * paper.cover(block * 8 + i) + noise * static_cast<float>(sum - 255) / 255;
      pixels[block * 8 + i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255 + 0.5f);
    }
  }
}

}  // namespace

uint8_t Draw(uint64_t seed, Split split, int64_t index, uint8_t* pixels) {
  Draws draws(seed, split, index);
  const auto digit = static_cast<uint8_t>(draws.Below(10));
  const std::span<const Glyph> styles = Styles(digit);
  const Glyph glyph = styles[draws.Below(styles.size())];
  const Elastic elastic(draws);
  const Affine affine(draws);
  Paper paper;
  for (const Stroke& stroke : glyph) DrawStroke(stroke, elastic, affine, draws, paper);
  Develop(paper, draws, pixels);
  return digit;
}

}  // namespace dtrain::digits
