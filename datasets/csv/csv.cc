// The data set `csv`: the user's own tables, with numbers and a label in each line (framework/data/tables/csv.h).
#include "framework/data/tables/csv.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/data/tables/table_source.h"

namespace dtrain {
namespace {

class OwnCsv : public TableSource {
 public:
  OwnCsv() : TableSource(/*images=*/false, /*whole_are_classes=*/true) {}

 private:
  Files ReadKeys(config::Reader& reader) override {
    train_ = static_cast<std::string>(reader.String("train", "")
                                          .Required()
                                          .Help("CSV file of the training samples, plain or .gz"));
    test_ = static_cast<std::string>(
        reader.String("test", "")
            .Help("CSV file of the test samples; \"\": test_share of the training samples"));
    format_.label = static_cast<std::string>(
        reader.String("label", "")
            .NumbersToo()
            .Help("column of the label, by its name or by its number from 1 on; \"\": the last "
                  "one"));
    format_.ignore = static_cast<std::vector<std::string>>(
        reader.Strings("ignore", {})
            .NumbersToo()
            .Help("columns that are not read, by name or by number from 1 on"));
    const std::string header = reader.String("header", "auto")
                                   .OneOf({"auto", "yes", "no"})
                                   .Help(
                                       "whether the first line has the names of the columns; auto: "
                                       "yes if it has no number, has the label's name, or is 0, 1, "
                                       "2, ...");
    format_.header = header == "yes"  ? CsvFormat::Header::kYes
                     : header == "no" ? CsvFormat::Header::kNo
                                      : CsvFormat::Header::kAuto;
    const std::string separator =
        reader.String("separator", "auto")
            .OneOf({"auto", "comma", "semicolon", "tab", "space", "|"})
            .Help(
                "separator of the fields; space: any number of blanks; auto: the one that is most "
                "frequent in the first line");
    format_.separator = separator == "comma"       ? ','
                        : separator == "semicolon" ? ';'
                        : separator == "tab"       ? '\t'
                        : separator == "space"     ? ' '
                        : separator == "|"         ? '|'
                                                   : '\0';
    const std::string decimal =
        reader.String("decimal", ".").OneOf({".", ","}).Help("decimal point of the numbers");
    format_.decimal_comma = decimal == ",";
    if (format_.decimal_comma && format_.separator == ',') {
      reader.AddError("decimal", "the comma cannot be both the separator and the decimal point",
                      "choose another separator", {"separator"});
    }
    format_.keep = keep();
    test_format_ = format_;
    format_.ignore_unknown = !test_.empty();  // the test file may have the column
    Files files;
    if (!train_.empty()) files.train = {{"train", train_}};
    if (!test_.empty()) files.test = {{"test", test_}};
    return files;
  }

  Table Open(Split split, const std::vector<std::string>& words) override {
    if (split == Split::kTrain) {
      // `words` are the names of numeric labels, or the classes of text labels in their order.
      CsvTable table = ReadCsv(train_, format_, words, NumberLabels::kKept);
      words_ = table.table.labels.words;
      names_ = std::move(table.names);
      if (!table.table.columns.empty()) {
        test_format_.columns = table.table.columns;
        test_format_.label = table.table.label_column;
        // A number counts the columns of the training file alone.
        test_format_.ignore = table.ignored;
        unknown_ = table.unknown;
        std::ranges::copy(unknown_, std::back_inserter(test_format_.ignore));
        test_format_.ignore_unknown = true;
      }
      // The test file may have the index, too.
      test_format_.ignore.insert(test_format_.ignore.end(), table.indices.begin(),
                                 table.indices.end());
      return std::move(table.table);
    }
    CsvTable table = ReadCsv(test_, test_format_, words_);
    for (const std::string& name : unknown_) {
      if (std::ranges::find(table.unknown, name) == table.unknown.end()) continue;
      throw DataError(
          fmt::format("no column of {} or {} is called '{}' (data.ignore)", train_, test_, name),
          DidYouMean(NearestName(name, names_)) + "columns are " + Join(names_));
    }
    if (test_format_.columns.empty() && table.names != names_) {
      throw DataError(fmt::format("{} and {} have different columns", test_, train_),
                      "both need the same header, or none");
    }
    return std::move(table.table);
  }

  std::string train_, test_;
  CsvFormat format_, test_format_;          // test_format_ selects the test file's columns by name
  std::vector<std::string> words_, names_;  // of the training file
  std::vector<std::string> unknown_;        // of data.ignore that the training file does not have
};

DTRAIN_DATASET("csv", OwnCsv, "your own tables: numbers and a label in each line");

}  // namespace
}  // namespace dtrain
