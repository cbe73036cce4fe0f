// UTF-8, tokeniser, vocabulary, BLEU.
#include <gmock/gmock.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/data/text/bleu.h"
#include "framework/data/text/tokenizer.h"
#include "framework/data/text/utf8.h"
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
  EXPECT_THAT(English("A dog's blond-haired owner won't pay 1,000.50, or 5%"),
              ElementsAre("a", "dog", "'s", "blond-haired", "owner", "won", "'t", "pay", "1,000.50",
                          ",", "or", "5", "%"));
  EXPECT_THAT(German("Hans' Hund's"), ElementsAre("hans", "'", "hund", "'", "s"));
  EXPECT_THAT(English("'quoted'"), ElementsAre("'", "quoted", "'"));
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

// A text that has "<eos>" in it means no end of a sentence.
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

Words Split(const std::string& text) { return Tokenizer(Language::kGerman, false).Split(text); }

// Papineni et al., section 2: clipped counts ("the" 2 of 7).
TEST(Bleu, CountsAreClipped) {
  BleuCounts counts;
  counts.Add(Split("the the the the the the the"), Split("the cat is on the mat"));
  EXPECT_THAT(counts.matches, ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(counts.totals, ElementsAre(7, 6, 5, 4));
  EXPECT_EQ(counts.Score(), 0);
}

TEST(Bleu, ByHand) {
  BleuCounts counts;
  // 1-grams 5 of 6, 2-grams 3 of 5, 3-grams 2 of 4, 4-grams 1 of 3; as long as the reference.
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
  EXPECT_NEAR(counts.Score(), 100 * std::exp(1 - 20.0 / 15), 1e-12);
  EXPECT_EQ(BleuCounts().Score(), 0);
}

// The penalty is for brevity alone: what is too long pays by its precisions, and no more.
TEST(Bleu, LongTranslationsPayByPrecisionOnly) {
  BleuCounts counts;
  counts.Add(Split("the cat sat on the mat all day"), Split("the cat sat on the mat"));
  EXPECT_THAT(counts.matches, ElementsAre(6, 5, 4, 3));
  EXPECT_THAT(counts.totals, ElementsAre(8, 7, 6, 5));
  const double precisions = std::pow(6.0 / 8 * 5 / 7 * 4 / 6 * 3 / 5, 0.25);
  EXPECT_NEAR(counts.Score(), 100 * precisions, 1e-12);
  // A short one beside it: what counts is the length of all together, 14 for 14.
  counts.Add(Split("a b c d e f"), Split("a b c d e f g h"));
  EXPECT_NEAR(counts.Score(), 100 * std::pow(12.0 / 14 * 10 / 12 * 8 / 10 * 6 / 8, 0.25), 1e-12);
}

}  // namespace
}  // namespace dtrain
