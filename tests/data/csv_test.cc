// Tests the data set csv: the user's own tables.
#include "framework/data/tables/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/data/images/image_set.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CsvFormat Labelled(const std::string& label) {
  CsvFormat format;
  format.label = label;
  return format;
}

CsvFormat WithHeader() {
  CsvFormat format;
  format.header = CsvFormat::Header::kYes;
  return format;
}

class Csv : public testing::Test {
 protected:
  CsvTable Read(const std::string& text, const CsvFormat& format = {}) {
    folder_.Write("t.csv", text);
    return ReadCsv(folder_ / "t.csv", format);
  }
  std::string Refusal(const std::string& text, const CsvFormat& format = {}) {
    return WhatOf<DataError>([&] { Read(text, format); });
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  TempFolder folder_;
};

TEST_F(Csv, HeaderSeparatorAndLabelAreFound) {
  const CsvTable plain = Read("1,2,0\n3,4.5,1\r\n");
  EXPECT_THAT(plain.names, IsEmpty());
  EXPECT_THAT(InDouble(plain.table.read().numbers), ElementsAre(1, 2, 3, 4.5f));
  EXPECT_THAT(plain.table.labels.numbers, ElementsAre(0, 1));
  const CsvTable named = Read("kind;\"a; b\";c\n x ; 1e-2;+3\ny;4;-5\n\n", Labelled("kind"));
  EXPECT_THAT(named.names, ElementsAre("kind", "a; b", "c"));
  EXPECT_THAT(InDouble(named.table.read().numbers), ElementsAre(0.01, 3, 4, -5));
  EXPECT_THAT(named.table.labels.words, ElementsAre("x", "y"));
  EXPECT_EQ(named.table.where(1), Path("t.csv") + ": line 3");
  EXPECT_THAT(Read("1\t2\n3\t4\n", Labelled("1")).table.labels.numbers, ElementsAre(1, 3));
  EXPECT_THAT(Read("1,2\n3,4\n", WithHeader()).names, ElementsAre("1", "2"));
}

TEST_F(Csv, WhatIsNoTableIsRefusedWithItsLineAndColumn) {
  EXPECT_THAT(Refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(Refusal("a,b\n"), HasSubstr("a header and no samples"));
  EXPECT_THAT(Refusal("1\n2\n"), HasSubstr("one field"));
  EXPECT_THAT(Refusal("a,b,c\n1,2,3\n1,2\n"),
              HasSubstr("line 3 has 2 fields; the first line has 3"));
  EXPECT_THAT(Refusal("1,2,3\n\n1,2,3\n"), HasSubstr("line 2 has 1 field"));
  EXPECT_THAT(Refusal("a,b\n1,2\nnan,2\n"), HasSubstr("line 3: column 1 ('a') is 'nan'"));
  EXPECT_THAT(Refusal("1,2\n,2\n"), HasSubstr("line 2: column 1 is empty"));
  EXPECT_THAT(Refusal("1,2\n1x,2\n"), HasSubstr("column 1 is '1x', not a number"));
  EXPECT_THAT(Refusal("1,2\n1e99,2\n"), HasSubstr("column 1 is '1e99'"));
  EXPECT_THAT(Refusal("1,2\n1,\n"), HasSubstr("line 2: column 2 is empty"));
  EXPECT_THAT(Refusal("1,2\n1,inf\n"), HasSubstr("column 2 is 'inf'"));
  EXPECT_THAT(Refusal("1,\"2\n"), HasSubstr("line 1: its quotes are not closed"));
  EXPECT_THAT(Refusal("a,b\n1,2\n", Labelled("z")), HasSubstr("no column is called 'z'"));
  EXPECT_THAT(Refusal("a,b\n1,\xff\n"), HasSubstr("line 2: byte 3"));
}

TEST_F(Csv, AFirstLineIsAHeaderWhereItHasNoNumber) {
  EXPECT_THAT(Read("a,1,kind\n1,2,x\n", Labelled("kind")).names, ElementsAre("a", "1", "kind"))
      << "the label's name tells that it is one";
  EXPECT_THAT(Refusal("1,oops,0\n1,2,0\n"), HasSubstr("line 1: column 2 is 'oops'"));
  EXPECT_THAT(Refusal("oops,1\n2,1\n"), HasSubstr("line 1: column 1 is 'oops'"));
  folder_.Write("new.csv", "a,b\n1,2\n");
  EXPECT_THAT(ReadCsvNumbers(Path("new.csv"), 2).numbers, ElementsAre(1, 2));
  folder_.Write("new.csv", "1,oops\n3,4\n");
  EXPECT_THAT(WhatOf<DataError>([&] { ReadCsvNumbers(Path("new.csv"), 2); }),
              HasSubstr("line 1: column 2 is 'oops'"));
}

TEST_F(Csv, ColumnsAreTakenByTheNamesThatTheTrainingFileGave) {
  folder_.Write("train.csv", "a,kind,b\n1,x,2\n3,y,4\n");
  const auto set = [&](const std::string& test) {
    folder_.Write("test.csv", test);
    return SourceOf("csv", fmt::format("train: {}, test: {}, label: 2", Path("train.csv"),
                                       Path("test.csv")))
        ->Load("", 1);
  };
  const auto info = *set("b,a,kind\n6,5,y\n")->image_info();
  EXPECT_THAT(info.columns, ElementsAre("a", "b"));
  EXPECT_EQ(info.label_column, "kind");
  EXPECT_EQ(SampleOf(*set("b,a,kind\n6,5,y\n"), Split::kTest, 0),
            SampleOf(*set("a,kind,b\n5,y,6\n"), Split::kTest, 0));
  const auto refusal = [&](const std::string& test) {
    return WhatOf<DataError>([&] { set(test); });
  };
  EXPECT_THAT(refusal("b,c,kind\n1,2,x\n"), HasSubstr("test.csv: no column is called 'a'"));
  EXPECT_THAT(refusal("b,id,a,kind\n1,2,3,x\n"),
              HasSubstr("test.csv: the training file has no column 'id'"));
  EXPECT_THAT(refusal("a,b\n1,2\n"), HasSubstr("no column is called 'kind'"));
  EXPECT_THAT(refusal("5,y,6\n"), HasSubstr("test.csv: line 1: the columns have no names"));
  folder_.Write("train.csv", "a,kind,a\n1,x,2\n3,y,4\n");
  EXPECT_THAT(set("a,kind,a\n1,x,2\n")->image_info()->columns, IsEmpty()) << "no names to go by";
}

TEST_F(Csv, RowsForAModelAreTakenByName) {
  const auto read = [&](const std::string& text, const std::vector<std::string>& columns) {
    folder_.Write("new.csv", text);
    return ReadCsvNumbers(Path("new.csv"), 2, columns);
  };
  const CsvNumbers mixed = read("id,b,kind,a\nx7,2,x,1\nx8,4,y,3\n", {"a", "b"});
  EXPECT_THAT(mixed.numbers, ElementsAre(1, 2, 3, 4)) << "in the order of the model";
  EXPECT_THAT(mixed.ignored, ElementsAre("id", "kind"));
  EXPECT_THAT(read("1,2\n", {"a", "b"}).numbers, ElementsAre(1, 2)) << "no header";
  EXPECT_THAT(read("z,y\n1,2\n", {}).numbers, ElementsAre(1, 2)) << "no names are known";
  EXPECT_THAT(read("2019,2018\n1,2\n", {"2018", "2019"}).numbers, ElementsAre(2, 1));
  EXPECT_THAT(read("2018,b\n1,2\n", {"b", "2018"}).numbers, ElementsAre(2, 1));
  try {
    read("width,lenght,kind\n1,2,x\n", {"length", "width"});
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("new.csv: no column is called 'length'"));
    EXPECT_EQ(error.hint(), "did you mean 'lenght'?  its columns are 'width', 'lenght', 'kind'");
  }
  EXPECT_THAT(WhatOf<DataError>([&] {
                read("1,2,3\n", {"a", "b"});
              }),
              HasSubstr("3 fields a line, the model takes 2"));
}

TEST_F(Csv, TheLabelsNameIsLookedForInAHeaderOnly) {
  const CsvTable plain = Read("5,7,1\n6,8,2\n", Labelled("1"));
  EXPECT_THAT(plain.table.labels.numbers, ElementsAre(5, 6));
  EXPECT_THAT(InDouble(plain.table.read().numbers), ElementsAre(7, 1, 8, 2));
  CsvFormat format = Labelled("1");
  format.header = CsvFormat::Header::kYes;
  EXPECT_THAT(Read("5,7,1\n6,8,2\n", format).table.labels.numbers, ElementsAre(2));
  EXPECT_THAT(Refusal("5,7,1\n", Labelled("7")), HasSubstr("no column is called '7'"));
}

TEST_F(Csv, QuotesAreAroundAWholeField) {
  EXPECT_THAT(Read("1, \"a \"\"b\"\"\" \n2,c\n").table.labels.words, ElementsAre("a \"b\"", "c"));
  for (const char* line : {"\"0.2\"5,1", "5\"0.2\",1", "\"1\" 2,1", "\"1\" \"2\",1"}) {
    EXPECT_THAT(Refusal(fmt::format("1,1\n{}\n", line)), HasSubstr("line 2: its quotes"));
  }
}

std::vector<double> NumbersIn(const CsvTable& csv) { return InDouble(csv.table.read().numbers); }

// Returns all notes of a table, a line each.
std::string NotesOf(const CsvTable& csv) {
  std::string text = csv.table.notes.read_as + "\n";
  for (const std::string& left_out : csv.table.notes.left_out)
    text += "left out " + left_out + "\n";
  for (const std::string& warning : csv.table.notes.warnings) text += "warning " + warning + "\n";
  return text;
}

TEST_F(Csv, BlanksAndBarsSeparateFields) {
  const CsvTable blanks = Read("a b  label\n 1   2.5 0 \n3\t4 1\n5 6 0\n");
  EXPECT_THAT(blanks.names, ElementsAre("a", "b", "label"));
  EXPECT_THAT(NumbersIn(blanks), ElementsAre(1, 2.5, 3, 4, 5, 6));
  EXPECT_THAT(NotesOf(blanks), HasSubstr("a header (guessed), fields separated by blanks"));
  EXPECT_THAT(NumbersIn(Read("7 1\n8 2\n")), ElementsAre(7, 8));
  EXPECT_THAT(Read("\"a b\" c\n1 2\n").names, ElementsAre("a b", "c"));
  EXPECT_THAT(NumbersIn(Read("a|b|c\n1|2|0\n3|4|1\n")), ElementsAre(1, 2, 3, 4));
  CsvFormat format;
  format.separator = ' ';
  EXPECT_THAT(NumbersIn(Read("1  2\n3 4\n", format)), ElementsAre(1, 3));
}

// The other way round a column of numbers with a decimal comma would become a number and a text.
TEST_F(Csv, ACommaIsTheSeparatorOnlyWhereItIsTheMostFrequentAlone) {
  EXPECT_THAT(Refusal("1,5;0\n2,5;1\n"), HasSubstr("column 1 is '1,5', not a number"));
  EXPECT_THAT(Refusal("1,5\t0\n2,5\t1\n"), HasSubstr("column 1 is '1,5', not a number"));
  const auto message = [&](const std::string& text) {
    return MessageOf<DataError>([&] { Read(text); });
  };
  EXPECT_THAT(message("1,5;0\n2,5;1\n"), HasSubstr("data.decimal: \",\""));
  EXPECT_THAT(message("a;b\n1,5;0\n2,5;1\n"), HasSubstr("data.decimal: \",\""));
  EXPECT_THAT(message("1,5,0;0\n2,5;1\n"), Not(HasSubstr("data.decimal")));
  const CsvTable quoted = Read("\"a; b; c\",d\n1,0\n2,1\n");
  EXPECT_THAT(quoted.names, ElementsAre("a; b; c", "d")) << "separators in quotes are none";
}

TEST_F(Csv, LabelsWithADecimalCommaAreWarnedOf) {
  const auto notes = [&](const std::string& labels, const CsvFormat& format = {}) {
    return NotesOf(Read("a;b;y\n1;2;" + labels + "\n3;4;2,5\n", format));
  };
  EXPECT_THAT(notes("1,5"), HasSubstr("numbers with a decimal comma; data.decimal: \",\""));
  EXPECT_THAT(notes("3"), HasSubstr("numbers with a decimal comma"));
  EXPECT_THAT(notes("1,5,0"), Not(HasSubstr("decimal comma")));
  EXPECT_THAT(notes("x"), Not(HasSubstr("decimal comma")));
  CsvFormat format;
  format.decimal_comma = true;
  EXPECT_THAT(notes("1,5", format), Not(HasSubstr("read as texts")));
}

TEST_F(Csv, APlusIsFollowedByANumber) {
  EXPECT_THAT(NumbersIn(Read("+1,0\n+.5,1\n")), ElementsAre(1, 0.5));
  EXPECT_THAT(Refusal("+-1,0\n1,1\n"), HasSubstr("is '+-1', not a number"));
}

TEST_F(Csv, AHeaderOfNumbersAndTheLabelsNameIsNoSample) {
  const CsvTable counted = Read("0,1,2,kind\n7,8,9,x\n4,5,6,y\n");
  EXPECT_THAT(counted.names, ElementsAre("0", "1", "2", "kind"));
  EXPECT_THAT(NotesOf(counted), HasSubstr("counts the columns and is taken for their names"));
  EXPECT_THAT(Refusal("2020,2021,label\n1,2,0\n3,4,1\n"),
              HasSubstr("t.csv: line 1: the label is 'label', not a number, and all other lines "
                        "have numbers"));
  EXPECT_THAT(Read("2020,2021,label\n1,2,0\n3,4,1\n", WithHeader()).names,
              ElementsAre("2020", "2021", "label"));
  const std::string texts = "2020,2021,label\n1,2,x\n3,4,y\n5,6,x\n";
  EXPECT_THAT(NotesOf(Read(texts)), HasSubstr("no other line has its label 'label'"));
  EXPECT_THAT(NotesOf(Read(texts, WithHeader())), Not(HasSubstr("no other line")));
  EXPECT_THAT(NotesOf(Read("1,x\n2,x\n3,y\n4,y\n")), Not(HasSubstr("no other line")));
}

TEST_F(Csv, ADecimalCommaIsAPoint) {
  CsvFormat format;
  format.decimal_comma = true;
  EXPECT_THAT(NumbersIn(Read("a;b;label\n1,5;-2;0\n3;4,25;1\n", format)),
              ElementsAre(1.5, -2, 3, 4.25));
  EXPECT_THAT(Read("1,5;0,5\n2;1\n", format).table.labels.numbers, ElementsAre(0.5, 1));
  EXPECT_THAT(Refusal("1.234,5;0\n2;1\n", format), HasSubstr("is '1.234,5', not a number"));
  EXPECT_THAT(Refusal("a;label\n1,5;0\n2;1\n"), HasSubstr("is '1,5', not a number"));
  folder_.Write("new.csv", "1,5;2\n");
  EXPECT_THAT(ReadCsvNumbers(Path("new.csv"), 2, {}, true).numbers, ElementsAre(1.5, 2));
}

TEST_F(Csv, IgnoredColumnsAreNotRead) {
  CsvFormat format;
  format.ignore = {"name", "4"};
  const CsvTable named = Read("a,name,b,c,label\n1,x,2,9,0\n3,y,4,9,1\n", format);
  EXPECT_THAT(NumbersIn(named), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(named.table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(NotesOf(named), AllOf(HasSubstr("left out column 'name'"), HasSubstr("'4'")));
  format.ignore = {"1"};
  EXPECT_THAT(NumbersIn(Read("x,2,0\ny,4,1\n", format)), ElementsAre(2, 4)) << "no header";
  format.ignore = {"nmae"};
  EXPECT_THAT(Refusal("name,b,label\n1,2,0\n", format), HasSubstr("no column is called 'nmae'"));
  format.ignore = {"label"};
  EXPECT_THAT(Refusal("name,b,label\n1,2,0\n", format), HasSubstr("data.ignore names the label"));
  format.ignore = {"1", "2"};
  EXPECT_THAT(Refusal("name,b,label\n1,2,0\n", format), HasSubstr("every column but the label"));
}

// Either file may have columns that the other lacks, if they are ignored.
TEST_F(Csv, IgnoredColumnsMayBeInOneFileOnly) {
  const auto test_sample = [&](const std::string& train, const std::string& test,
                               const std::string& ignore) {
    folder_.Write("train.csv", train);
    folder_.Write("test.csv", test);
    const auto set =
        SourceOf("csv", fmt::format("train: {}, test: {}, ignore: [{}], mean: [0], deviation: [1]",
                                    Path("train.csv"), Path("test.csv"), ignore))
            ->Load("", 1);
    return SampleOf(*set, Split::kTest, 0).first;
  };
  const std::string train = "id,a,b,label\n1,2,3,0\n2,4,5,1\n";
  EXPECT_EQ(test_sample(train, "a,b,seen,label\n6,7,x,1\n", "id, seen"),
            (std::vector<float>{6, 7}));
  EXPECT_EQ(test_sample(train, "a,b,label\n6,7,1\n", "1"), (std::vector<float>{6, 7}))
      << "a number counts the columns of the training file";
  EXPECT_EQ(test_sample(train, "b,a,id,label\n7,6,1,1\n", "1"), (std::vector<float>{6, 7}));
  EXPECT_EQ(test_sample("1,2,0\n3,4,1\n", "5,6,1\n", "1"), std::vector<float>{6}) << "no header";
  EXPECT_THAT(WhatOf<DataError>([&] { test_sample(train, "a,b,label\n6,7,1\n", "id, sene"); }),
              AllOf(HasSubstr("no column of "), HasSubstr("is called 'sene'")));
}

// pandas writes its index as a first column without a name.
TEST_F(Csv, AnIndexIsLeftOutAndOtherCountsAreWarnedOf) {
  const CsvTable index = Read(",a,label\n0,7,0\n1,5,1\n2,9,0\n");
  EXPECT_THAT(index.indices, ElementsAre(""));
  EXPECT_THAT(NumbersIn(index), ElementsAre(7, 5, 9));
  EXPECT_THAT(index.table.columns, ElementsAre("a"));
  EXPECT_EQ(index.table.sample_shape, Shape{1});
  EXPECT_THAT(NotesOf(index),
              HasSubstr("left out column '', which has no name and counts the lines"));
  EXPECT_THAT(Read("Unnamed: 0,a,label\n5,7,0\n6,5,1\n7,9,0\n").indices, ElementsAre("Unnamed: 0"));
  const CsvTable counted = Read("id,a,label\n1,7,0\n2,5,1\n3,9,0\n");
  EXPECT_THAT(NumbersIn(counted), ElementsAre(1, 7, 2, 5, 3, 9));
  EXPECT_THAT(NotesOf(counted), HasSubstr("column 1 ('id') counts the lines; data.ignore: ['id']"));
  EXPECT_THAT(NotesOf(Read("1,7,0\n2,5,1\n3,9,0\n")), HasSubstr("data.ignore: [1]"));
  EXPECT_THAT(NotesOf(Read(",a,label\n0,7,0\n2,5,1\n1,9,0\n")), HasSubstr("column 1 has no name"));
  EXPECT_THAT(NotesOf(Read("b,a,label\n0,7,0\n2,5,1\n1,9,0\n")), Not(HasSubstr("warning")));
  CsvFormat format;
  format.keep = 2;
  EXPECT_THAT(NumbersIn(Read(",a,label\n0,7,0\n1,5,1\n2,9,0\n", format)), ElementsAre(7, 5));
}

// The test file may have the index, or lack it.
TEST_F(Csv, ATestFileMayHaveTheIndexToo) {
  folder_.Write("train.csv", ",a,label\n0,7,0\n1,5,1\n2,9,0\n");
  for (const char* test : {",a,label\n3,4,1\n4,6,0\n", "a,label\n4,1\n6,0\n"}) {
    folder_.Write("test.csv", test);
    const auto set = SourceOf("csv", fmt::format("train: {}, test: {}, mean: [0], deviation: [1]",
                                                 Path("train.csv"), Path("test.csv")))
                         ->Load("", 1);
    EXPECT_EQ(SampleOf(*set, Split::kTest, 1).first, std::vector<float>{6});
  }
}

TEST_F(Csv, NumbersThatCountTheColumnsAreTheirNames) {
  const CsvTable csv = Read("0,1,2\n5,7,0\n6,8,1\n");
  EXPECT_THAT(csv.names, ElementsAre("0", "1", "2"));
  EXPECT_THAT(NumbersIn(csv), ElementsAre(5, 7, 6, 8));
  EXPECT_THAT(NotesOf(csv), HasSubstr("counts the columns and is taken for their names"));
  CsvFormat format;
  format.header = CsvFormat::Header::kNo;
  EXPECT_THAT(NumbersIn(Read("0,1,2\n5,7,0\n6,8,1\n", format)), ElementsAre(0, 1, 5, 7, 6, 8));
}

// pandas.DataFrame.to_csv writes its index, too, unless index=False.
TEST_F(Csv, ColumnsThatAreCountedMayStandBehindAnIndex) {
  const CsvTable csv = Read(",0,1,2\n0,5,7,0\n1,6,8,1\n2,9,4,1\n");
  EXPECT_THAT(NotesOf(csv), HasSubstr("counts the columns and is taken for their names"));
  EXPECT_THAT(NumbersIn(csv), ElementsAre(5, 7, 6, 8, 9, 4));
}

// A float has no digit left for a second.
TEST_F(Csv, TimesKeepTheirSeconds) {
  std::string text = "when,label\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("{},{}\n", 1'700'000'000 + 7 * i % 100, i % 2);
  folder_.Write("train.csv", text);
  const auto set = SourceOf("csv", "train: " + Path("train.csv"))->Load("", 1);
  const double deviation = std::sqrt((100.0 * 100 - 1) / 12);
  for (const int i : {0, 1, 50, 99}) {
    EXPECT_NEAR(SampleOf(*set, Split::kTrain, i).first[0], (7 * i % 100 - 49.5) / deviation, 1e-6);
  }
}

TEST_F(Csv, TextsAmongLabelsThatAreNumbersAreNamed) {
  folder_.Write("train.csv", "1,0\n2,1\n3,2\n");
  folder_.Write("test.csv", "1,2\n2,x\n3,0\n");
  const std::string both = fmt::format("train: {}, test: {}", Path("train.csv"), Path("test.csv"));
  for (const char* task : {"auto", "classification", "regression"}) {
    EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("csv", both + ", task: " + task); }),
                AllOf(HasSubstr("test.csv: line 2: the label 'x' is a text"),
                      HasSubstr("train.csv are numbers")));
  }
  const auto hint = [&](const std::string& text) {
    folder_.Write("train.csv", text);
    try {
      SourceOf("csv", "task: regression, train: " + Path("train.csv"));
    } catch (const DataError& error) {
      return fmt::format("{}; {}", error.what(), error.hint());
    }
    return std::string();
  };
  EXPECT_THAT(hint("1,5\n2,6\n3,x\n"),
              AllOf(HasSubstr("line 3: the label 'x'"), Not(HasSubstr("classification"))));
  EXPECT_THAT(hint("1,y\n3,x\n"),
              AllOf(HasSubstr("line 1: the label 'y'"), HasSubstr("classification")));
}

TEST_F(Csv, TextsAreClassesAndNumbersAreWhatTheyLookLike) {
  folder_.Write("train.csv", "a,kind\n1,dog\n2,cat\n3,dog\n");
  folder_.Write("test.csv", "a,kind\n5,cat\n");
  const std::string both = fmt::format("train: {}, test: {}", Path("train.csv"), Path("test.csv"));
  const auto set = SourceOf("csv", both)->Load("", 1);
  EXPECT_THAT(set->image_info()->class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(SampleOf(*set, Split::kTrain, 0).second, 1);
  EXPECT_EQ(SampleOf(*set, Split::kTest, 0).second, 0);
  EXPECT_EQ(SourceOf("csv", both + ", class_names: [dog, cat]")->Load("", 1)->classes(), 2);
  folder_.Write("test.csv", "a,kind\n5,cat\n6,emu\n");
  EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("csv", both); }),
              AllOf(HasSubstr("test.csv: line 3"), HasSubstr("'emu', which is no class")));
  folder_.Write("test.csv", "b,kind\n5,cat\n");
  EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("csv", both); }),
              HasSubstr("test.csv: no column is called 'a'"));
  folder_.Write("train.csv", "1,dog\n2,cat\n");
  EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("csv", both); }), HasSubstr("different columns"));

  folder_.Write("numbers.csv", "1,0\n2,3\n3,1\n");
  const std::string numbers = "train: " + Path("numbers.csv");
  EXPECT_EQ(SourceOf("csv", numbers)->classes(), 4);
  const auto regression = SourceOf("csv", numbers + ", task: regression");
  EXPECT_EQ(regression->classes(), 0);
  const auto as_given = regression->Load("", 1);
  as_given->KeepTargets();
  EXPECT_EQ(SampleOf(*as_given, Split::kTrain, 1).second, 3);
  folder_.Write("numbers.csv", "1,0\n2,-3\n3,1\n");
  EXPECT_EQ(SourceOf("csv", numbers)->fields()[1].dtype, DType::kF32);
}

}  // namespace
}  // namespace dtrain
