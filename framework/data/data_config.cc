#include "framework/data/data_config.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {

DataConfig ReadDataConfig(config::Reader reader, const DataConfig* before) {
  DataConfig data;
  data.name =
      static_cast<std::string>(reader.String("name", "")
                                   .Required()
                                   .OneOf(DatasetRegistry::Names())
                                   .Help("name of a data set; dtrain data list shows them"));
  data.where = reader.Where("name");
  data.root = static_cast<std::string>(
      reader.String("root", "")
          .Help("folder that holds the data set's folder; \"\": $DTRAIN_DATA, then the cache"));
  const int64_t limit =
      reader.Int("limit", 0).Min(0).Help("use only the first N samples of each split; 0: use all");
  const double validation =
      reader.Number("validation", 0)
          .Min(0)
          .Max(0.5)
          .Help("share of the training samples that is set aside for validation; 0: none");
  if (data.name.empty()) return data;
  std::shared_ptr<DatasetSource> source = DatasetRegistry::Get("data set", data.name).make();
  if (before != nullptr) {
    source->ConfigureKeys(reader);
    return *before;
  }
  if (limit > 0) source->KeepFirst(limit);
  try {
    source->Configure(reader);
  } catch (const DataError&) {
    // An error in a data file is reported after the errors of the keys.
    data.problem = std::current_exception();
    return data;
  }
  if (source->is_own() && !data.root.empty()) {
    reader.AddError("root", fmt::format("'{}' names its files itself", data.name),
                    "leave root out; paths are as they are, or begin where dtrain is started",
                    {"name"});
  }
  // Errors in its files have already been reported.
  if (source->is_own() && source->size(Split::kTrain) == 0) return data;
  data.source = std::move(source);
  if (limit > 0) data.source = LimitSource(data.source, limit);
  if (validation > 0 && data.source->has_validation()) {
    reader.AddError("validation",
                    fmt::format("data set '{}' has a validation split of its own", data.name),
                    "leave the key out", {"name"});
  }
  data.source = HoldOut(data.source, validation);
  return data;
}

}  // namespace dtrain
