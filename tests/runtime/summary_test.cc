#include "framework/results/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Summary Full() {
  Summary s;
  s.status = "completed";
  s.strategy = "gssp";
  s.compressor = "gdtopk";
  s.collective = "ordered";
  s.model = "lenet5";
  s.dataset = "mnist";
  s.device = "cpu";
  s.precision = "fp32";
  s.compute = "real";
  s.workers = 4;
  s.servers = 2;
  s.global_batch = 64;
  s.epochs = 1.5;
  s.steps = 1407;
  s.seed = 18446744073709551615U;
  s.seconds = 12.5;
  s.samples_per_second = 8000;
  s.step_seconds = {0.01, 0.02, 0.03};
  s.train_loss = 0.02;
  s.train_mean_loss = 0.03;
  s.train_accuracy = 0.98;
  s.test = TestResult{.loss = 0.05, .accuracy = 0.99, .others = {{"top5", 0.998}}};
  s.best = BestResult{.epoch = 1, .accuracy = 0.991, .others = {{"top5", 0.997}}};
  s.communication = CommunicationSummary{1000, 2000, 30, 0.5, 0.25, 0.01};
  s.workers_detail = {{0, "node1", 1, 700, 1400, 3.5, 0.5},
                      {1, "node2", std::nullopt, 706.5, 1413, 3.4, 0.6}};
  s.staleness = StalenessSummary{3, 1.5, {1, 2, 3}, 4};
  s.plan = PlanSummary{2, 0.011};
  s.weights_sha256 = "aa";
  s.config_sha256 = "bb";
  return s;
}

TEST(Summary, HasALineAKeyForReaders) {
  EXPECT_THAT(ToJson(Full()), StartsWith("{\n  \"status\": \"completed\",\n  \"exit_code\": 0,\n"));
}

TEST(Summary, HasTheKeysThatOthersRelyOn) {
  EXPECT_EQ(json::parse(ToJson(Full())), json::parse(R"({
    "status": "completed", "exit_code": 0, "schema": 2, "strategy": "gssp", "compressor": "gdtopk",
    "collective": "ordered", "model": "lenet5", "dataset": "mnist", "device": "cpu",
    "precision": "fp32", "compute": "real", "workers": 4, "servers": 2, "global_batch": 64,
    "epochs": 1.5, "steps": 1407, "seed": 18446744073709551615, "seconds": 12.5,
    "samples_per_second": 8000.0, "step_seconds": {"p50": 0.01, "p90": 0.02, "max": 0.03},
    "train": {"loss": 0.02, "mean_loss": 0.03, "accuracy": 0.98}, "test": {"loss": 0.05, "accuracy": 0.99, "top5": 0.998},
    "best": {"epoch": 1, "accuracy": 0.991, "top5": 0.997},
    "communication": {"bytes_sent": 1000, "bytes_received": 2000, "messages": 30,
                      "exposed_seconds": 0.5, "compress_seconds": 0.25, "density": 0.01},
    "workers_detail": [
      {"rank": 0, "node": "node1", "group": 1, "steps": 700, "own_steps": 1400,
       "compute_seconds": 3.5, "wait_seconds": 0.5},
      {"rank": 1, "node": "node2", "steps": 706.5, "own_steps": 1413,
       "compute_seconds": 3.4, "wait_seconds": 0.6}],
    "staleness": {"max": 3, "mean": 1.5, "histogram": [1, 2, 3], "clock_lead_max": 4},
    "plan": {"buckets": 2, "predicted_seconds": 0.011},
    "weights_sha256": "aa", "config_sha256": "bb"})"));
}

TEST(Summary, ServersOfGroupsThatAreIdleAreNamed) {
  ProtocolReport report{.counts = StrategyCounts({kUpTransfers})};
  report.Count(kUpTransfers.name, 1);
  Summary s = Full();
  DescribeProtocol(report, s);
  EXPECT_FALSE(json::parse(ToJson(s))["protocol"].contains("idle_servers"));
  for (const int64_t server : {1, 3}) {
    ProtocolReport of_server;
    of_server.idle_servers = {server};
    report.Add(of_server);
  }
  DescribeProtocol(report, s);
  EXPECT_EQ(json::parse(ToJson(s))["protocol"]["idle_servers"], json::parse("[1, 3]"));
  testing::internal::CaptureStderr();
  NameIdleServers(s);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("idle, since no group is left for them: servers 1, 3"));
}

TEST(Summary, ATargetSaysWhetherAndWhenItWasReached) {
  Summary s = Full();
  s.best->step = 938;
  s.target = TargetResult{.value = 0.99};
  EXPECT_EQ(json::parse(ToJson(s))["target"], json::parse(R"({"value": 0.99, "reached": false})"));
  EXPECT_EQ(json::parse(ToJson(s))["best"]["step"], 938);
  EXPECT_EQ(TargetText(s), "did not reach the target accuracy of 99.00 % (best: 99.10 %)");
  s.target = TargetResult{0.99, true, 12.5, 1.25, 1172.5};
  EXPECT_EQ(json::parse(ToJson(s))["target"],
            json::parse(R"({"value": 0.99, "reached": true, "seconds": 12.5, "epochs": 1.25,
                            "steps": 1172.5})"));
  EXPECT_EQ(TargetText(s),
            "reached the target accuracy of 99.00 % after 12.500 s of training (1.25 epochs, 1172 "
            "steps)");
  s.best = BestResult{.epoch = 1, .perplexity = 31.5};
  s.target = TargetResult{.value = 30};
  EXPECT_EQ(TargetText(s), "did not reach the target perplexity of 30.00 (best: 31.50)");
  s.best.reset();
  EXPECT_EQ(TargetText(s), "did not reach the target: nothing was evaluated");
  s.status = "stopped";
  EXPECT_EQ(TargetText(s), "has not yet reached the target: nothing was evaluated");
  s.target.reset();
  EXPECT_EQ(TargetText(s), "");
}

TEST(Summary, WhatMakesNoSenseIsAbsent) {
  Summary s;
  s.status = "failed";
  s.exit_code = 5;
  s.workers = 1;
  const json read = json::parse(ToJson(s));
  for (const char* key :
       {"strategy", "compressor", "servers", "step_seconds", "train", "test", "best", "target",
        "communication", "workers_detail", "staleness", "plan", "weights_sha256"}) {
    EXPECT_FALSE(read.contains(key)) << key;
  }
  EXPECT_EQ(read["exit_code"], 5);
}

TEST(Summary, WholeStepsPrintAsIntegers) {
  Summary s;
  s.steps = 9380;
  s.epochs = 10;
  EXPECT_THAT(ToJson(s), testing::HasSubstr("\"steps\": 9380,"));
  EXPECT_THAT(ToJson(s), testing::HasSubstr("\"epochs\": 10,"));
}

TEST(Summary, QuantilesOfStepSeconds) {
  std::vector<double> seconds;
  for (int i = 100; i >= 0; --i) seconds.push_back(i);
  const StepSeconds s = StepSecondsOf(seconds);
  EXPECT_THAT((std::vector<double>{s.p50, s.p90, s.max}), ElementsAre(50, 90, 100));
  EXPECT_EQ(StepSecondsOf({7}).p50, 7);
  EXPECT_EQ(StepSecondsOf({}).max, 0);
}

TEST(DeathsText, SaysWhoDiedAndWhatWasLost) {
  Summary summary;
  EXPECT_EQ(DeathsText(summary), "");
  summary.deaths = {{.worker = 2, .node = 1, .seconds = 1.25, .own_steps = 20}};
  const std::string who = "worker 2 of node 1 died at 1.250 s, after 20 steps\n";
  const std::string what = " lost, that had been handed in and not applied\n";
  EXPECT_EQ(DeathsText(summary), who + "0 gradients are" + what) << "nobody counted";
  for (const auto& [lost, text] : {std::pair{0, "0 gradients are"}, std::pair{1, "1 gradient is"},
                                   std::pair{2, "2 gradients are"}}) {
    summary.protocol = ProtocolSummary{.counts = StrategyCounts({kLostGradients})};
    summary.protocol->counts.Count(kLostGradients.name, lost);
    EXPECT_EQ(DeathsText(summary), who + text + what);
  }
}

}  // namespace
}  // namespace dtrain
