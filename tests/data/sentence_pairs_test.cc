#include "framework/data/text/sentence_pairs.h"

#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "framework/data/batches.h"
#include "framework/data/text/parallel_text.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Returns sentences of 1 to `longest` words.
ParallelText Counting(int64_t pairs, int64_t longest) {
  ParallelText text;
  for (int64_t i = 0; i < pairs; ++i) {
    text.source.emplace_back(static_cast<size_t>(i * 7 % longest + 1), "ja");
    text.target.emplace_back(static_cast<size_t>(i * 5 % longest + 1), "yes");
  }
  return text;
}

SentencePairs SetOf(const ParallelText& train) {
  TextInfo info;
  info.source = Vocabulary::Of(train.source, 1);
  info.target = Vocabulary::Of(train.target, 1);
  return SentencePairs(std::move(info), {train, Counting(3, 2), Counting(5, 4)});
}

std::vector<int32_t> Row(const Tensor& field, int64_t row) {
  const int32_t* begin = field.i32() + row * field.shape[1];
  return {begin, begin + field.shape[1]};
}

TEST(SentencePairs, MarksAndPadding) {
  ParallelText train;
  train.source = {{"ein", "hund"}, {"hund"}};
  train.target = {{"a", "dog"}, {"a", "big", "old", "dog"}};
  const SentencePairs set = SetOf(train);
  Batch batch(set.fields(), 2);
  std::vector<Shape> shapes(3);
  const std::vector<int64_t> both = {0, 1};
  set.SampleShapes(Split::kTrain, both, shapes);
  EXPECT_THAT(shapes, ElementsAre(Shape{4}, Shape{8}, Shape{8}));
  batch.Resize(2, shapes);
  set.Fill(Split::kTrain, both, kNoEpoch, batch);
  // Words are numbered by frequency, then spelling: hund 4, ein 5; a 4, dog 5, big 6, old 7.
  EXPECT_THAT(Row(batch.fields[0], 0), ElementsAre(2, 5, 4, 3));
  EXPECT_THAT(Row(batch.fields[0], 1), ElementsAre(2, 4, 3, 1));
  EXPECT_THAT(Row(batch.fields[1], 0), ElementsAre(2, 4, 5, 1, 1, 1, 1, 1));
  EXPECT_THAT(Row(batch.fields[2], 0), ElementsAre(4, 5, 3, 1, 1, 1, 1, 1));
  EXPECT_THAT(Row(batch.fields[1], 1), ElementsAre(2, 4, 6, 7, 5, 1, 1, 1));
  EXPECT_THAT(Row(batch.fields[2], 1), ElementsAre(4, 6, 7, 5, 3, 1, 1, 1));
  EXPECT_EQ(set.Terms(Split::kTrain, 0), 3);
  EXPECT_EQ(set.TermsOf(Split::kTrain, both), 8);
  EXPECT_EQ(set.fields()[0].classes, 6);
  EXPECT_EQ(set.fields()[2].classes, 8);
}

// The longest sentence may be anywhere in a split.
TEST(SentencePairs, FieldsHoldTheLongestSentences) {
  const std::vector<std::string> one = {"a"}, nine(9, "b");
  for (const bool last : {false, true}) {
    ParallelText train;
    train.source = train.target = last ? std::vector{one, nine} : std::vector{nine, one};
    const std::vector<FieldSpec> fields = SetOf(train).fields();
    EXPECT_EQ(fields[0].sample_shape, Shape{12}) << last;
    EXPECT_EQ(fields[1].sample_shape, Shape{12}) << last;
  }
}

// The samples, shapes and terms (target words) of a step are the same for any number of workers.
TEST(SentencePairs, StepsDoNotDependOnTheNumberOfWorkers) {
  const SentencePairs set = SetOf(Counting(200, 23));
  const Sampler sampler(3, set, 16);
  for (const int workers : {1, 2, 3, 5}) {
    for (uint64_t step = 0; step < 13; ++step) {
      int64_t terms = 0;
      std::vector<std::vector<int32_t>> rows;
      Shape target;
      for (int w = 0; w < workers; ++w) {
        Batch batch(set.fields(), sampler.MaxShare(workers));
        ASSERT_TRUE(TrainingBatches(set, sampler, w, workers, step, step + 1)(0, batch));
        terms += batch.terms;
        target = batch.fields[1].shape.DropBatch();
        for (int64_t r = 0; r < batch.samples; ++r) rows.push_back(Row(batch.fields[2], r));
        if (w + 1 < workers) continue;
        EXPECT_EQ(terms, batch.global_terms);
      }
      Batch alone(set.fields(), sampler.MaxShare(1));
      ASSERT_TRUE(TrainingBatches(set, sampler, 0, 1, step, step + 1)(0, alone));
      EXPECT_EQ(alone.global_terms, terms);
      EXPECT_EQ(alone.fields[1].shape.DropBatch(), target);
      ASSERT_EQ(alone.samples, static_cast<int64_t>(rows.size()));
      for (int64_t r = 0; r < alone.samples; ++r) EXPECT_EQ(Row(alone.fields[2], r), rows[r]);
    }
  }
}

TEST(SentencePairs, LittlePaddingAndFewShapes) {
  const SentencePairs set = SetOf(Counting(4000, 31));
  const Sampler sampler(3, set, 32);
  Batch batch(set.fields(), 32);
  BatchFiller fill = TrainingBatches(set, sampler, 0, 1, 0, sampler.steps_per_epoch());
  int64_t terms = 0, padded = 0;
  std::set<std::pair<int64_t, int64_t>> shapes;
  for (uint64_t k = 0; fill(k, batch); ++k) {
    terms += batch.terms;
    padded += batch.fields[2].shape.count();
    shapes.insert({batch.fields[0].shape[1], batch.fields[1].shape[1]});
    EXPECT_EQ(batch.fields[0].shape[1] % SentencePairs::kLengthStep, 0);
  }
  EXPECT_LT(static_cast<double>(padded), 1.25 * static_cast<double>(terms));
  EXPECT_LE(shapes.size(), 72u);
}

TEST(SentencePairs, AWorkersOwnBatchesAreOfLikeLengthToo) {
  const SentencePairs set = SetOf(Counting(4000, 31));
  const Sampler sampler(3, set, 32);
  BatchFiller fill = OwnBatches(set, sampler, 1, 4, 0);
  Batch batch(set.fields(), sampler.MaxShare(4));
  int64_t terms = 0, padded = 0;
  for (uint64_t k = 0; k < 500 && fill(k, batch); ++k) {
    EXPECT_EQ(batch.terms, batch.global_terms);
    terms += batch.terms;
    padded += batch.fields[2].shape.count();
  }
  EXPECT_LT(static_cast<double>(padded), 1.5 * static_cast<double>(terms));
}

TEST(SourceBatch, RowsHaveTheLengthOfTheLongest) {
  const SourceBatch batch = MakeSourceBatch({{7}, {4, 5, 6}, {9, 8}});
  EXPECT_EQ(batch.length, 8);
  EXPECT_THAT(batch.tokens, ElementsAre(2, 7, 3, 1, 1, 1, 1, 1,  //
                                        2, 4, 5, 6, 3, 1, 1, 1,  //
                                        2, 9, 8, 3, 1, 1, 1, 1));
  EXPECT_EQ(MakeSourceBatch({{4, 5}}).length, 4);
}

TEST(TextInfo, ThereAndBackAgain) {
  const SentencePairs set = SetOf(Counting(10, 5));
  const TextInfo& info = set.info();
  EXPECT_THAT(info.ToText(), StartsWith("de\nen\nplain\n5\n<unk>\n"));
  const TextInfo again = TextInfoFromText(info.ToText(), "x");
  EXPECT_EQ(again.source, info.source);
  EXPECT_EQ(again.target, info.target);
  EXPECT_EQ(again.Hash(), info.Hash());
  EXPECT_THAT(MessageOf<DataError>([] { TextInfoFromText("xx\nen\nplain\n", "ck.h5"); }),
              HasSubstr("ck.h5: 'xx' is no language"));
}

class ParallelTextTest : public testing::Test {
 protected:
  ParallelText Read(const std::string& de, const std::string& en, int64_t max_length = 100,
                    LongSentences long_sentences = LongSentences::kSkip) {
    folder_.WriteGzip("a.de.gz", de);
    folder_.Write("a.en", en);
    return ReadParallelText({folder_ / "a.de.gz", Language::kGerman, false},
                            {folder_ / "a.en", Language::kEnglish, true}, max_length,
                            long_sentences);
  }
  std::string ErrorOf(const std::string& de, const std::string& en) {
    return MessageOf<DataError>([&] { Read(de, en); });
  }
  TempFolder folder_;
};

TEST_F(ParallelTextTest, LinesWithAnEmptySideAreLeftOut) {
  const ParallelText text =
      Read("Ein Hund.\r\n\nDrei\nVier", "a dog .\ntwo\n  \nfour words 's it\n");
  EXPECT_THAT(text.source, ElementsAre(ElementsAre("ein", "hund", "."), ElementsAre("vier")));
  EXPECT_THAT(text.target,
              ElementsAre(ElementsAre("a", "dog", "."), ElementsAre("four", "words", "'s", "it")));
}

TEST_F(ParallelTextTest, LongSentencesAreLeftOutOrCut) {
  std::string endless;
  for (int i = 0; i < 10000; ++i) endless += "wort ";
  EXPECT_EQ(Read(endless + "\nhund\n", "words\ndog\n").source.size(), 1u);
  const ParallelText cut = Read(endless + "\nhund\n", "words\ndog\n", 7, LongSentences::kCut);
  ASSERT_EQ(cut.source.size(), 2u);
  EXPECT_EQ(cut.source[0].size(), 7u);
}

// BLEU compares with the whole reference, not with the part that was kept.
TEST_F(ParallelTextTest, TheReferenceOfACutSentenceIsWhole) {
  const ParallelText text =
      Read("eins zwei drei\n\nvier\n", "one two three\n\nfour and five\n", 2, LongSentences::kCut);
  ASSERT_THAT(text.target, ElementsAre(ElementsAre("one", "two"), ElementsAre("four", "and")));
  const SentencePairs set = SetOf(text);
  EXPECT_EQ(set.Terms(Split::kTrain, 1), 3);
  EXPECT_THAT(set.Reference(Split::kTrain, 0), ElementsAre("one", "two", "three"));
  EXPECT_THAT(set.Reference(Split::kTrain, 1), ElementsAre("four", "and", "five"));
  EXPECT_EQ(SetOf(Read("eins\n", "one\n")).Reference(Split::kTrain, 0).size(), 1u);
}

TEST_F(ParallelTextTest, WhatIsHandledIsCounted) {
  testing::internal::CaptureStderr();
  const ParallelText text = Read("eins\n\nzwei\ndrei\nvier vier\n\n",
                                 "one <eos>\nx\n<pad> two\nthree\nfour four\nx\n", 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.source.size(), 1u);
  EXPECT_THAT(said,
              HasSubstr("a.de.gz: 2 pairs with an empty side left out (the first is line 2)"));
  EXPECT_THAT(said, HasSubstr("3 pairs longer than 1 word left out (the first is line 1)"));
}

TEST_F(ParallelTextTest, PlainTextIsSplitAndNotEscaped) {
  EXPECT_THAT(Read("Hans' Hund & Co\n", "a b\n").source,
              ElementsAre(ElementsAre("hans", "'", "hund", "&", "co")));
}

TEST_F(ParallelTextTest, OneIsSaidAndNoneIsNot) {
  testing::internal::CaptureStderr();
  Read("eins\nzwei\n", "one\ntwo\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  Read("eins\nzwei\n", "one\n\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a.de.gz: 1 pair with an empty side left out (the first is line 2)"));
}

TEST_F(ParallelTextTest, ASentenceOfTheGreatestLengthIsNotLong) {
  testing::internal::CaptureStderr();
  for (const LongSentences what : {LongSentences::kSkip, LongSentences::kCut}) {
    const ParallelText text = Read("a b c\n", "a b c\n", 3, what);
    EXPECT_THAT(text.target, ElementsAre(ElementsAre("a", "b", "c")));
    EXPECT_TRUE(text.whole_target.empty());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ParallelTextTest, MarksInTheTextAreUnknownWords) {
  testing::internal::CaptureStderr();
  const ParallelText text = Read("eins\nzwei\ndrei\n", "one\n<pad> two <eos>\n<sos>\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a.de.gz: 2 pairs with a word like '<pad>', read as an unknown word (the "
                        "first is line 2)"));
  const SentencePairs set = SetOf(text);
  Batch batch(set.fields(), 1);
  set.Fill(Split::kTrain, std::vector<int64_t>{1}, kNoEpoch, batch);
  EXPECT_THAT(Row(batch.fields[2], 0), ElementsAre(0, 5, 0, 3, 1, 1, 1, 1));
}

TEST_F(ParallelTextTest, BadFilesNameFileAndLine) {
  EXPECT_THAT(ErrorOf("eins\nzwei\n", "one\n"),
              AllOf(HasSubstr("a.de.gz has 2 lines"), HasSubstr("a.en has 1 line |")));
  EXPECT_THAT(ErrorOf("eins\nzw\xFFi\n", "one\ntwo\n"),
              HasSubstr("a.de.gz: line 2: byte 3 of it (0xff) is no UTF-8"));
  EXPECT_THAT(ErrorOf("eins\n", std::string("o\0e\n", 4)),
              HasSubstr("a.en: line 1: it has a zero byte"));
  EXPECT_THAT(ErrorOf("eins\n" + std::string(1100000, 'x'), "one\n"),
              HasSubstr("a.de.gz: line 2: it has more than 1000000 bytes"));
  EXPECT_THAT(ErrorOf("\n", "one\n"), HasSubstr("have no pair of sentences"));
}

TEST_F(ParallelTextTest, ABrokenArchiveIsAnErrorWithItsName) {
  folder_.WriteGzip("a.gz", std::string(100000, 'a'));
  std::filesystem::resize_file(folder_ / "a.gz", 60);
  EXPECT_THAT(MessageOf<DataError>([&] { ReadLines(folder_ / "a.gz"); }), HasSubstr("a.gz"));
  EXPECT_THAT(MessageOf<DataError>([&] { ReadLines(folder_ / "none.gz"); }), HasSubstr("none.gz"));
}

}  // namespace
}  // namespace dtrain
