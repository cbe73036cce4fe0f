// The numbers of runs as CSV (RFC 4180), all of them: one value a line, which spreadsheets pivot and pandas
// takes as it is.
//
//   run,kind,split,rank,epoch,step,training_seconds,name,value
//   digits,step,,,0,20,0.31,loss,2.1
//   digits,evaluation,test,,1,938,14.2,accuracy,0.984
//   digits,rank,,3,,938,14.2,wait_seconds,0.0021      (a step's mean over a window of steps)
//   digits,rank,,3,,938,14.2,own_steps,8              (in that window)
//   digits,summary,,,,,,samples_per_second,5210.4
//   digits,summary,,3,,,,workers_detail.steps,234.5    (of a list whose entries are of ranks)
//   digits,summary,,,,,,staleness.histogram[2],17      (of another list)
//
// A value that is no finite number is empty.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// Throws UsageError for a folder that holds no run.
std::string ReportCsv(const std::vector<std::filesystem::path>& runs);

}  // namespace dtrain
