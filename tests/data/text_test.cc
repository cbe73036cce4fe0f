// Tests UTF-8, the tokeniser, the vocabulary, text files and BLEU.
#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/utf8.h"
#include "framework/data/text/bleu.h"
#include "framework/data/text/characters.h"
#include "framework/data/text/parallel_text.h"
#include "framework/data/text/tokenizer.h"
#include "framework/data/text/vocabulary.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(Utf8, ThereAndBackAgain) {
  const std::string text = "aß€😀ÄЯ";
  EXPECT_EQ(DecodeUtf8(text), U"aß€😀ÄЯ");
  EXPECT_EQ(EncodeUtf8(DecodeUtf8(text)), text);
  EXPECT_FALSE(FindInvalidUtf8(text));
}

TEST(Utf8, WhatIsNoUtf8IsFound) {
  for (const std::string bad :
       {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF8\x88\x80\x80\x80", "\xC3", "\xE2\x82", "\xC3(", "\xFF"}) {
    EXPECT_EQ(FindInvalidUtf8("ab" + bad), 2u) << testing::PrintToString(bad);
  }
}

TEST(Utf8, LowerCaseOfEuropeanLetters) {
  const auto lower = [](std::u32string text) {
    for (char32_t& code : text) code = LowerCase(code);
    return text;
  };
  EXPECT_EQ(lower(U"AZ ÄÖÜẞ ÀÞ× ŁŹŽŸ ŠČ ΑΩ АЯЁ 7."), U"az äöüß àþ× łźžÿ šč αω аяё 7.");
  EXPECT_EQ(lower(U"az äöüß łźžÿ"), U"az äöüß łźžÿ");
}

// The capitals of Latin-1, Latin Extended-A, Greek and Cyrillic (except for a dotted I and accented
// Greek letters), and below them their small letters.  No other character below U+0500 changes.
constexpr std::u32string_view kCapitals =
    U"ABCDEFGHIJKLMNOPQRSTUVWXYZÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞĀĂĄĆ"
    U"ĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮĲĴĶĹĻĽĿŁŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽΑΒ"
    U"ΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХ"
    U"ЦЧШЩЪЫЬЭЮЯ";
constexpr std::u32string_view kSmall =
    U"abcdefghijklmnopqrstuvwxyzàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþāăąć"
    U"ĉċčďđēĕėęěĝğġģĥħĩīĭįĳĵķĺļľŀłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷÿźżžαβ"
    U"γδεζηθικλμνξοπρστυφχψωѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфх"
    U"цчшщъыьэюя";

TEST(Utf8, LowerCaseOfAllLettersThatAreKnown) {
  for (char32_t code = 0; code < 0x500; ++code) {
    if (code == 0x3A2) continue;  // an unassigned code point
    const size_t place = kCapitals.find(code);
    EXPECT_EQ(LowerCase(code), place == kCapitals.npos ? code : kSmall.at(place)) << uint32_t{code};
  }
}

TEST(Utf8, SequencesEndWhereTheirLengthsDo) {
  const std::pair<char32_t, std::string> kBounds[] = {{0, std::string(1, '\0')},
                                                      {0x7F, "\x7F"},
                                                      {0x80, "\xC2\x80"},
                                                      {0x7FF, "\xDF\xBF"},
                                                      {0x800, "\xE0\xA0\x80"},
                                                      {0xD7FF, "\xED\x9F\xBF"},
                                                      {0xE000, "\xEE\x80\x80"},
                                                      {0xFFFF, "\xEF\xBF\xBF"},
                                                      {0x10000, "\xF0\x90\x80\x80"},
                                                      {0x10001, "\xF0\x90\x80\x81"},
                                                      {0x1003F, "\xF0\x90\x80\xBF"},
                                                      {0x10FC0, "\xF0\x90\xBF\x80"},
                                                      {0x10FFFF, "\xF4\x8F\xBF\xBF"}};
  for (const auto& [code, bytes] : kBounds) {
    const std::u32string one(1, code);
    EXPECT_EQ(EncodeUtf8(one), bytes) << uint32_t{code};
    EXPECT_EQ(FindInvalidUtf8(bytes), std::nullopt) << uint32_t{code};
    EXPECT_EQ(DecodeUtf8(bytes), one) << uint32_t{code};
  }
  for (const std::string bad :
       {"\xC1\xBF", "\xE0\x9F\xBF", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF5\x80\x80\x80",
        "\xF7\xBF\xBF\xBF", "\xF8\x90\x80\x80", "\xC2\xC0", "\xC2\x7F"}) {
    EXPECT_EQ(FindInvalidUtf8(bad), 0u) << testing::PrintToString(bad);
  }
}

// Tests the first and the last character of each range, and their neighbours.
TEST(Utf8, KindsOfCharactersHaveBounds) {
  const std::u32string words =
      U"09azAZ\u00AA\u00B5\u00BA\u00C0\u00D6\u00D8\u00F6\u00F8\u1FFF\u2C00\u2FFF\u3040\uFE2F\uFE50"
      U"\U0001EFFF\U0001FB00";
  const std::u32string symbols =
      U"/:`{@[\u00A9\u00AB\u00B4\u00B6\u00B9\u00BB\u00BF\u00D7\u00F7\u200C\u2BFF\u3001\u303F\uFE30"
      U"\uFE4F\U0001F000\U0001FAFF";
  for (const char32_t code : words) EXPECT_TRUE(IsWordCharacter(code)) << uint32_t{code};
  for (const char32_t code : symbols) EXPECT_FALSE(IsWordCharacter(code)) << uint32_t{code};
  const std::u32string spaces = U" \t\r\u0085\u00A0\u2000\u200B\u2028\u2029\u202F\u3000\uFEFF";
  const std::u32string others =
      U"\u0008\u000E!"
      U"\u0084\u0086\u009F\u00A1\u1FFF\u200C\u2027\u202A\u202E\u2030\u2FFF\u3001\uFEFE";
  for (const char32_t code : spaces) {
    EXPECT_TRUE(IsWhiteSpace(code)) << uint32_t{code};
    EXPECT_FALSE(IsWordCharacter(code)) << uint32_t{code};
  }
  for (const char32_t code : others) EXPECT_FALSE(IsWhiteSpace(code)) << uint32_t{code};
}

TEST(Utf8, AccentsAreComposed) {
  EXPECT_EQ(Compose(U"u\u0308ber a\u0301 x\u0308"), U"über á x\u0308");
  EXPECT_EQ(Compose(U"\u0308a"), U"\u0308a");
}

Words English(const std::string& line) { return Tokenizer(Language::kEnglish, false).Split(line); }
Words German(const std::string& line) { return Tokenizer(Language::kGerman, false).Split(line); }

TEST(Tokenizer, SplitsWordsAndPunctuation) {
  EXPECT_THAT(English("Two young, White males are outside."),
              ElementsAre("two", "young", ",", "white", "males", "are", "outside", "."));
  EXPECT_THAT(German("Ein Mädchen – GRÖSSER als „Rom“?!"),
              ElementsAre("ein", "mädchen", "-", "grösser", "als", "\"", "rom", "\"", "?", "!"));
  EXPECT_THAT(English("  \t "), ElementsAre());
  EXPECT_THAT(English("(a)"), ElementsAre("(", "a", ")"));
}

TEST(Tokenizer, HyphensNumbersAndApostrophes) {
  EXPECT_THAT(English("A dog's blond-haired owner won't pay 1,000.50, or 5%, 1,x5 x,15"),
              ElementsAre("a", "dog", "'s", "blond-haired", "owner", "won", "'t", "pay", "1,000.50",
                          ",", "or", "5", "%", ",", "1", ",", "x5", "x", ",", "15"));
  EXPECT_THAT(German("Hans' Hund's"), ElementsAre("hans", "'", "hund", "'", "s"));
  EXPECT_THAT(English("'quoted'"), ElementsAre("'", "quoted", "'"));
  EXPECT_THAT(English("I'm x'5 \"'so"), ElementsAre("i", "'m", "x", "'", "5", "\"", "'", "so"));
}

TEST(Tokenizer, QuotesDashesAndTheEllipsisBecomePlain) {
  EXPECT_THAT(English("\u2018a\u2019 \u201Ab\u201B `c\u00B4"),
              ElementsAre("'", "a", "'", "'", "b", "'", "'", "c", "'"));
  EXPECT_THAT(English("\u201Ca\u201D \u201Eb\u00AB \u00BB"),
              ElementsAre("\"", "a", "\"", "\"", "b", "\"", "\""));
  EXPECT_THAT(English("a\u2010b\u2011c\u2013d"), ElementsAre("a-b-c-d"));
  EXPECT_THAT(English("a\u2014b c\u2026d"), ElementsAre("a", "-", "b", "c", "...", "d"));
}

TEST(Tokenizer, Dots) {
  EXPECT_THAT(English("well... no."), ElementsAre("well", "...", "no", "."));
  EXPECT_THAT(English("In the U.S. they run."),
              ElementsAre("in", "the", "u.s.", "they", "run", "."));
  EXPECT_THAT(English("He left. \"Now\""), ElementsAre("he", "left", ".", "\"", "now", "\""));
  EXPECT_THAT(English(". ."), ElementsAre(".", "."));
}

TEST(Tokenizer, EscapesAsMosesDoesAndTwiceIsOnce) {
  const Tokenizer escaping(Language::kEnglish, true);
  const Words words = escaping.Split("A man's \"T&T\" [sign] <here>|");
  EXPECT_THAT(words, ElementsAre("a", "man", "&apos;s", "&quot;", "t", "&amp;", "t", "&quot;",
                                 "&#91;", "sign", "&#93;", "&lt;", "here", "&gt;", "&#124;"));
  std::string line;
  for (const std::string& word : words) line += word + " ";
  EXPECT_EQ(escaping.Split(line), words);
  EXPECT_EQ(JoinWords({"a", "man", "&apos;s", "hat", ",", "red", "."}), "a man's hat, red.");
}

TEST(Vocabulary, ByFrequencyThenSpelling) {
  const Vocabulary vocabulary = Vocabulary::Of({{"b", "a", "c", "b"}, {"a", "b", "d", "c"}}, 2);
  EXPECT_EQ(vocabulary.ToText(), "<unk>\n<pad>\n<sos>\n<eos>\nb\na\nc\n");
  EXPECT_EQ(vocabulary.NumberOf("b"), token::kFirstWord);
  EXPECT_EQ(vocabulary.NumberOf("d"), token::kUnknown);
  EXPECT_THAT(vocabulary.WordsOf({2, 4, 0, 1, 5, 3, 4}), ElementsAre("b", "<unk>", "a"));
  EXPECT_EQ(Vocabulary::FromText(vocabulary.ToText(), "x"), vocabulary);
}

// The word "<eos>" in a text does not end the sentence.
TEST(Vocabulary, WordsSpelledLikeMarksAreUnknown) {
  const Words words = {"<pad>", "<eos>", "<sos>", "<unk>", "a"};
  const Vocabulary vocabulary = Vocabulary::Of({words, words}, 1);
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_THAT(vocabulary.NumbersOf(words), ElementsAre(0, 0, 0, 0, 4));
  EXPECT_EQ(Vocabulary::FromText(vocabulary.ToText(), "x").NumbersOf(words),
            vocabulary.NumbersOf(words));
}

TEST(Vocabulary, DamagedTextNamesTheLine) {
  const auto message = [](const std::string& text) {
    return MessageOf<DataError>([&] { Vocabulary::FromText(text, "here"); });
  };
  EXPECT_THAT(message("<unk>\n<sos>\n"),
              HasSubstr("here: line 2 of the vocabulary is '<sos>', it should be '<pad>'"));
  EXPECT_THAT(message("<unk>\n<pad>\n<sos>\n<eos>\na\na\n"),
              HasSubstr("here: line 6 of the vocabulary is 'a', which is empty or there already"));
}

class TextFileTest : public testing::Test {
 protected:
  std::string ErrorOf(const std::string& content) {
    return MessageOf<DataError>([&] { ReadLines(folder_.Write("a.txt", content)); });
  }
  Words LinesOf(const std::string& content) { return ReadLines(folder_.Write("a.txt", content)); }

  TempFolder folder_;
};

TEST_F(TextFileTest, LinesMayEndAsOnAnySystem) {
  EXPECT_THAT(LinesOf(""), ElementsAre());
  EXPECT_THAT(LinesOf("\n"), ElementsAre(""));
  EXPECT_THAT(LinesOf("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(LinesOf("a\r\n\nb\n"), ElementsAre("a", "", "b"));
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(LinesOf(mark + "a\n" + mark + "b"), ElementsAre("a", mark + "b"));
}

TEST_F(TextFileTest, DamageIsNamedByLineAndByte) {
  EXPECT_THAT(ErrorOf("a\nbc\xFF\n"), HasSubstr("a.txt: line 2: byte 3 of it (0xff) is no UTF-8"));
  EXPECT_THAT(ErrorOf("a\nb\xFF"), HasSubstr("a.txt: line 2: byte 2 of it (0xff) is no UTF-8"));
  EXPECT_THAT(ErrorOf(std::string("a\0", 2)), HasSubstr("a.txt: line 1: it has a zero byte"));
}

// The reader reads blocks of 64 KB; a line may be a million bytes long.
TEST_F(TextFileTest, LongLines) {
  const std::string longest(1'000'000, 'x');
  EXPECT_THAT(LinesOf("a\n" + longest + "\nb"), ElementsAre("a", longest, "b"));
  EXPECT_THAT(LinesOf(longest), ElementsAre(longest));
  EXPECT_THAT(ErrorOf("a\n" + longest + "y"),
              HasSubstr("a.txt: line 2: it has more than 1000000 bytes"));
}

Words Split(const std::string& text) { return Tokenizer(Language::kGerman, false).Split(text); }

// The example of Papineni et al., section 2: counts are clipped ("the" counts 2 of 7).
TEST(Bleu, CountsAreClipped) {
  BleuCounts counts;
  counts.Add(Split("the the the the the the the"), Split("the cat is on the mat"));
  EXPECT_THAT(counts.matches, ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(counts.totals, ElementsAre(7, 6, 5, 4));
  EXPECT_EQ(counts.Score(), 0);
}

TEST(Bleu, ByHand) {
  BleuCounts counts;
  // Matches are 5 of 6 1-grams, 3 of 5 2-grams, 2 of 4 3-grams and 1 of 3 4-grams; the length
  // equals the reference's.
  counts.Add(Split("the cat sat on the mat"), Split("the cat sat on a mat"));
  EXPECT_THAT(counts.matches, ElementsAre(5, 3, 2, 1));
  EXPECT_NEAR(counts.Score(), 100 * std::pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25), 1e-12);
}

// sacrebleu 2.6 (tokenize none, smooth_method none) and nltk's corpus_bleu agree on these to 1e-13.
TEST(Bleu, AgreesWithSacrebleu) {
  BleuCounts two;
  two.Add(Split("the cat sat on the mat"), Split("the cat sat on a mat"));
  two.Add(Split("a b c d e f"), Split("a b c d e g h i"));
  EXPECT_NEAR(two.Score(), 55.31071724704493, 1e-10);
  BleuCounts three;
  three.Add(Split("a man in a blue shirt is standing on a ladder cleaning a window ."),
            Split("a man in a blue shirt is standing on a ladder cleaning a window ."));
  three.Add(Split("two men are at the stove"), Split("two men are at the stove preparing food ."));
  three.Add(Split("a little girl is climbing into a wooden house house ."),
            Split("a little girl climbing into a wooden playhouse ."));
  EXPECT_NEAR(three.Score(), 77.14464979651139, 1e-10);
}

TEST(Bleu, ShortTranslationsPayAndOrdersAddUp) {
  const Words reference = Split("a b c d e f g h i j"), half = Split("a b c d e");
  BleuCounts counts, whole;
  counts.Add(half, reference);
  EXPECT_NEAR(counts.Score(), 100 * std::exp(1 - 10.0 / 5), 1e-12);
  whole.Add(reference, reference);
  EXPECT_NEAR(whole.Score(), 100, 1e-12);
  counts.Add(whole);
  EXPECT_EQ(counts.length, 15);
  EXPECT_EQ(counts.reference_length, 20);
  EXPECT_THAT(counts.matches, ElementsAre(5 + 10, 4 + 9, 3 + 8, 2 + 7));
  EXPECT_THAT(counts.totals, ElementsAre(5 + 10, 4 + 9, 3 + 8, 2 + 7));
  EXPECT_NEAR(counts.Score(), 100 * std::exp(1 - 20.0 / 15), 1e-12);
  EXPECT_EQ(BleuCounts().Score(), 0);
}

// Only short translations get the penalty; a long one just has lower precisions.
TEST(Bleu, LongTranslationsPayByPrecisionOnly) {
  BleuCounts counts;
  counts.Add(Split("the cat sat on the mat all day"), Split("the cat sat on the mat"));
  EXPECT_THAT(counts.matches, ElementsAre(6, 5, 4, 3));
  EXPECT_THAT(counts.totals, ElementsAre(8, 7, 6, 5));
  const double precisions = std::pow(6.0 / 8 * 5 / 7 * 4 / 6 * 3 / 5, 0.25);
  EXPECT_NEAR(counts.Score(), 100 * precisions, 1e-12);
  // Together with a short sentence the total length counts: 14 words for 14.
  counts.Add(Split("a b c d e f"), Split("a b c d e f g h"));
  EXPECT_NEAR(counts.Score(), 100 * std::pow(12.0 / 14 * 10 / 12 * 8 / 10 * 6 / 8, 0.25), 1e-12);
}

}  // namespace
}  // namespace dtrain
