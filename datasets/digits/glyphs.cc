#include "datasets/digits/render.h"

#include <array>

namespace dtrain::digits {
namespace {

constexpr bool kCorner = true;

constexpr Point kZeroAStroke[] = {{0, -0.5f},      {-0.24f, -0.36f}, {-0.32f, 0},
                                  {-0.23f, 0.38f}, {0, 0.5f},        {0.24f, 0.37f},
                                  {0.32f, 0},      {0.25f, -0.36f},  {0.02f, -0.5f}};
constexpr Stroke kZeroA[] = {kZeroAStroke};
constexpr Point kZeroBStroke[] = {
    {0.12f, -0.46f}, {-0.1f, -0.42f}, {-0.27f, -0.1f}, {-0.25f, 0.28f}, {-0.05f, 0.48f},
    {0.18f, 0.36f},  {0.29f, 0.02f},  {0.22f, -0.32f}, {0.02f, -0.48f}, {-0.1f, -0.38f}};
constexpr Stroke kZeroB[] = {kZeroBStroke};
constexpr Glyph kZero[] = {kZeroA, kZeroB};

constexpr Point kOneAStroke[] = {{0.02f, -0.5f}, {0, 0}, {-0.02f, 0.5f}};
constexpr Stroke kOneA[] = {kOneAStroke};
constexpr Point kOneBStroke[] = {
    {-0.2f, -0.28f}, {0.04f, -0.5f, kCorner}, {0.02f, 0}, {0.02f, 0.5f}};
constexpr Stroke kOneB[] = {kOneBStroke};
constexpr Point kOneC1[] = {{-0.18f, -0.3f}, {0.03f, -0.5f, kCorner}, {0.02f, 0}, {0.02f, 0.48f}};
constexpr Point kOneC2[] = {{-0.22f, 0.5f}, {0.24f, 0.49f}};
constexpr Stroke kOneC[] = {kOneC1, kOneC2};
constexpr Glyph kOne[] = {kOneA, kOneB, kOneC};

constexpr Point kTwoAStroke[] = {{-0.28f, -0.28f},        {-0.12f, -0.47f}, {0.12f, -0.47f},
                                 {0.27f, -0.28f},         {0.2f, -0.02f},   {-0.05f, 0.26f},
                                 {-0.3f, 0.48f, kCorner}, {0, 0.47f},       {0.33f, 0.46f}};
constexpr Stroke kTwoA[] = {kTwoAStroke};
constexpr Point kTwoBStroke[] = {{-0.27f, -0.3f}, {-0.08f, -0.49f}, {0.18f, -0.42f},
                                 {0.25f, -0.18f}, {0.08f, 0.15f},   {-0.18f, 0.42f},
                                 {-0.32f, 0.42f}, {-0.26f, 0.28f},  {-0.08f, 0.34f},
                                 {0.12f, 0.47f},  {0.34f, 0.42f}};
constexpr Stroke kTwoB[] = {kTwoBStroke};
constexpr Glyph kTwo[] = {kTwoA, kTwoB};

constexpr Point kThreeAStroke[] = {{-0.26f, -0.38f}, {-0.05f, -0.5f}, {0.2f, -0.42f},
                                   {0.23f, -0.2f},   {0.06f, -0.04f}, {-0.08f, -0.02f, kCorner},
                                   {0.12f, 0},       {0.29f, 0.2f},   {0.2f, 0.43f},
                                   {-0.05f, 0.5f},   {-0.29f, 0.38f}};
constexpr Stroke kThreeA[] = {kThreeAStroke};
constexpr Point kThreeBStroke[] = {{-0.26f, -0.48f},
                                   {0.26f, -0.48f, kCorner},
                                   {-0.02f, -0.08f, kCorner},
                                   {0.2f, 0},
                                   {0.29f, 0.22f},
                                   {0.14f, 0.45f},
                                   {-0.1f, 0.5f},
                                   {-0.3f, 0.38f}};
constexpr Stroke kThreeB[] = {kThreeBStroke};
constexpr Glyph kThree[] = {kThreeA, kThreeB};

constexpr Point kFourA1[] = {
    {-0.22f, -0.48f}, {-0.28f, -0.1f}, {-0.27f, 0.06f, kCorner}, {0, 0.07f}, {0.32f, 0.04f}};
constexpr Point kFourA2[] = {{0.18f, -0.46f}, {0.16f, 0}, {0.13f, 0.5f}};
constexpr Stroke kFourA[] = {kFourA1, kFourA2};
constexpr Point kFourBStroke[] = {{0.14f, 0.5f},
                                  {0.14f, 0},
                                  {0.16f, -0.5f, kCorner},
                                  {-0.1f, -0.16f},
                                  {-0.32f, 0.14f, kCorner},
                                  {0, 0.15f},
                                  {0.33f, 0.14f}};
constexpr Stroke kFourB[] = {kFourBStroke};
constexpr Glyph kFour[] = {kFourA, kFourB};

constexpr Point kFiveAStroke[] = {
    {0.26f, -0.48f}, {-0.2f, -0.48f, kCorner}, {-0.24f, -0.06f, kCorner}, {0, -0.16f},   {0.24f, 0},
    {0.27f, 0.26f},  {0.08f, 0.47f},           {-0.15f, 0.49f},           {-0.3f, 0.37f}};
constexpr Stroke kFiveA[] = {kFiveAStroke};
constexpr Point kFiveB1[] = {{-0.16f, -0.46f}, {-0.22f, -0.06f, kCorner},
                             {0.02f, -0.12f},  {0.24f, 0.08f},
                             {0.22f, 0.34f},   {0, 0.5f},
                             {-0.26f, 0.42f}};
constexpr Point kFiveB2[] = {{-0.17f, -0.46f}, {0.3f, -0.5f}};
constexpr Stroke kFiveB[] = {kFiveB1, kFiveB2};
constexpr Glyph kFive[] = {kFiveA, kFiveB};

constexpr Point kSixAStroke[] = {{0.18f, -0.5f}, {-0.08f, -0.32f}, {-0.26f, 0.02f}, {-0.27f, 0.3f},
                                 {-0.08f, 0.5f}, {0.17f, 0.44f},   {0.27f, 0.2f},   {0.12f, 0.02f},
                                 {-0.1f, 0.06f}, {-0.26f, 0.24f}};
constexpr Stroke kSixA[] = {kSixAStroke};
constexpr Point kSixBStroke[] = {{0.02f, -0.5f},  {-0.17f, -0.15f}, {-0.24f, 0.2f},
                                 {-0.13f, 0.46f}, {0.12f, 0.47f},   {0.25f, 0.26f},
                                 {0.13f, 0.05f},  {-0.08f, 0.09f},  {-0.23f, 0.27f}};
constexpr Stroke kSixB[] = {kSixBStroke};
constexpr Glyph kSix[] = {kSixA, kSixB};

constexpr Point kSevenAStroke[] = {
    {-0.28f, -0.46f}, {0.28f, -0.48f, kCorner}, {0.1f, -0.05f}, {-0.08f, 0.5f}};
constexpr Stroke kSevenA[] = {kSevenAStroke};
constexpr Point kSevenBStroke[] = {{-0.3f, -0.34f},
                                   {-0.27f, -0.47f, kCorner},
                                   {0.28f, -0.46f, kCorner},
                                   {0.12f, -0.1f},
                                   {0, 0.5f}};
constexpr Stroke kSevenB[] = {kSevenBStroke};
constexpr Point kSevenC1[] = {
    {-0.28f, -0.46f}, {0.29f, -0.47f, kCorner}, {0.1f, -0.02f}, {-0.06f, 0.5f}};
constexpr Point kSevenC2[] = {{-0.16f, 0.02f}, {0.28f, 0}};
constexpr Stroke kSevenC[] = {kSevenC1, kSevenC2};
constexpr Glyph kSeven[] = {kSevenA, kSevenB, kSevenC};

constexpr Point kEightAStroke[] = {
    {0.18f, -0.36f}, {0, -0.5f},      {-0.2f, -0.38f}, {-0.16f, -0.16f}, {0.05f, 0},
    {0.26f, 0.2f},   {0.2f, 0.43f},   {0, 0.5f},       {-0.22f, 0.42f},  {-0.25f, 0.2f},
    {-0.04f, 0},     {0.16f, -0.16f}, {0.2f, -0.36f}};
constexpr Stroke kEightA[] = {kEightAStroke};
constexpr Point kEightB1[] = {{0, -0.5f},      {-0.2f, -0.36f}, {-0.18f, -0.14f}, {0, -0.03f},
                              {0.19f, -0.15f}, {0.2f, -0.37f},  {0, -0.5f}};
constexpr Point kEightB2[] = {{0, -0.03f},    {-0.24f, 0.12f}, {-0.25f, 0.36f}, {0, 0.5f},
                              {0.25f, 0.36f}, {0.24f, 0.1f},   {0, -0.03f}};
constexpr Stroke kEightB[] = {kEightB1, kEightB2};
constexpr Glyph kEight[] = {kEightA, kEightB};

constexpr Point kNineAStroke[] = {{0.23f, -0.26f},          {0.08f, -0.48f},  {-0.16f, -0.43f},
                                  {-0.26f, -0.2f},          {-0.12f, -0.02f}, {0.12f, -0.06f},
                                  {0.24f, -0.28f, kCorner}, {0.22f, 0.05f},   {0.16f, 0.5f}};
constexpr Stroke kNineA[] = {kNineAStroke};
constexpr Point kNineBStroke[] = {{0.22f, -0.34f},          {0.02f, -0.5f}, {-0.2f, -0.4f},
                                  {-0.26f, -0.16f},         {-0.08f, 0},    {0.14f, -0.08f},
                                  {0.25f, -0.32f, kCorner}, {0.25f, 0.08f}, {0.14f, 0.4f},
                                  {-0.06f, 0.5f},           {-0.24f, 0.42f}};
constexpr Stroke kNineB[] = {kNineBStroke};
constexpr Glyph kNine[] = {kNineA, kNineB};

constexpr std::array<std::span<const Glyph>, 10> kDigits = {kZero, kOne, kTwo,   kThree, kFour,
                                                            kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const Glyph> Styles(int digit) { return kDigits[digit]; }

}  // namespace dtrain::digits
