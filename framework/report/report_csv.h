// The numbers of runs as CSV (RFC 4180), one value a line, a form that spreadsheets can pivot and pandas reads
// directly.
//
//   run,kind,split,rank,epoch,step,training_seconds,name,value
//   digits,step,,,0,20,0.31,loss,2.1
//   digits,evaluation,test,,1,938,14.2,accuracy,0.984
//   digits,rank,,3,,938,14.2,wait_seconds,0.0021      (mean per step over a window of steps)
//   digits,rank,,3,,938,14.2,own_steps,8              (number of steps in that window)
//   digits,summary,,,,,,samples_per_second,5210.4
//   digits,summary,,3,,,,workers_detail.steps,234.5    (a list with one entry for each rank)
//   digits,summary,,,,,,staleness.histogram[2],17      (any other list)
//
// NaN and infinity become an empty value.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// Throws UsageError if a folder contains no run.
std::string ReportCsv(const std::vector<std::filesystem::path>& runs);

}  // namespace dtrain
