#include "framework/report/report_csv.h"

#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "tests/report/report_folder.h"

namespace dtrain {
namespace {

using testing::HasSubstr;

class ReportCsvTest : public ReportFolder {
 protected:
  std::string Csv(const std::string& run) const {
    std::string csv = ReportCsv({folder_ / run});
    const std::string prefix = (folder_ / "").string();
    for (size_t at = csv.find(prefix); at != std::string::npos; at = csv.find(prefix, at)) {
      csv.erase(at, prefix.size());
    }
    return csv;
  }
};

TEST_F(ReportCsvTest, OneValueALine) {
  Put("a", "metrics.jsonl",
      "{\"kind\":\"step\",\"epoch\":0,\"step\":20,\"training_seconds\":0.5,\"loss\":2.5,\"lr\":"
      "null}\n"
      "{\"kind\":\"evaluation\",\"epoch\":1,\"step\":40,\"split\":\"test\",\"accuracy\":0.75}\n");
  Put("a", "ranks.jsonl",
      "{\"step\":40,\"rank\":1,\"seconds\":[0.5,1],\"own_steps\":[2,4],\"compute_seconds\":[0.5,2],"
      "\"wait_seconds\":[0.25,1],\"bytes_sent\":8}\n");
  Put("a", "summary.json", "{\"status\":\"completed\",\"steps\":40,\"test\":{\"loss\":0.5}}");
  EXPECT_EQ(Csv("a"),
            "run,kind,split,rank,epoch,step,training_seconds,name,value\n"
            "a,step,,,0,20,0.5,loss,2.5\n"
            "a,step,,,0,20,0.5,lr,\n"
            "a,evaluation,test,,1,40,,accuracy,0.75\n"
            "a,rank,,1,,40,0.5,compute_seconds,0.25\n"
            "a,rank,,1,,40,1,compute_seconds,0.5\n"
            "a,rank,,1,,40,0.5,wait_seconds,0.125\n"
            "a,rank,,1,,40,1,wait_seconds,0.25\n"
            "a,rank,,1,,40,1,bytes_sent,8\n"
            "a,rank,,1,,40,1,bytes_received,\n"
            "a,rank,,1,,40,1,messages,\n"
            "a,summary,,,,,,steps,40\n"
            "a,summary,,,,,,test.loss,0.5\n");
}

TEST_F(ReportCsvTest, ListsAreInItByRankOrNumber) {
  Put("a", "ranks.jsonl",
      R"({"schema":1,"step":40,"rank":1,"seconds":[0.5],"own_steps":[2],"longest_seconds":[0.25]})"
      "\n");
  Put("a", "summary.json",
      R"({"workers_detail":[{"rank":0,"node":"a","steps":1.5},{"rank":1,"steps":2,"own_steps":4}],)"
      R"("staleness":{"histogram":[7,0]},"deaths":[{"worker":2}],"schema":2})");
  EXPECT_EQ(Csv("a"),
            "run,kind,split,rank,epoch,step,training_seconds,name,value\n"
            "a,rank,,1,,40,0.5,own_steps,2\n"
            "a,rank,,1,,40,0.5,longest_seconds,0.25\n"
            "a,rank,,1,,40,0.5,bytes_sent,\n"
            "a,rank,,1,,40,0.5,bytes_received,\n"
            "a,rank,,1,,40,0.5,messages,\n"
            "a,summary,,,,,,deaths[0].worker,2\n"
            "a,summary,,,,,,schema,2\n"
            "a,summary,,,,,,staleness.histogram[0],7\n"
            "a,summary,,,,,,staleness.histogram[1],0\n"
            "a,summary,,0,,,,workers_detail.rank,0\n"
            "a,summary,,0,,,,workers_detail.steps,1.5\n"
            "a,summary,,1,,,,workers_detail.own_steps,4\n"
            "a,summary,,1,,,,workers_detail.rank,1\n"
            "a,summary,,1,,,,workers_detail.steps,2\n");
}

TEST_F(ReportCsvTest, QuotesWhatNeedsIt) {
  Put("b,\"c\"", "summary.json", "{\"steps\":1}");
  const std::string csv = ReportCsv({folder_ / "b,\"c\""});
  EXPECT_THAT(csv, HasSubstr("/b,\"\"c\"\"\",summary,,,,,,steps,1\n"));
}

TEST_F(ReportCsvTest, AFolderThatIsNoRun) {
  EXPECT_THROW(ReportCsv({folder_ / "none"}), UsageError);
}

}  // namespace
}  // namespace dtrain
