#include "framework/checkpoint/checkpoint_config.h"

namespace dtrain {

CheckpointConfig ReadCheckpointConfig(config::Reader reader) {
  CheckpointConfig config;
  config.every_epochs =
      reader.Int("every_epochs", 1).Min(0).Help("write a checkpoint every N epochs; 0: never");
  config.every_steps =
      reader.Int("every_steps", 0).Min(0).Help("write a checkpoint every N steps; 0: never");
  config.keep = reader.Int("keep", 2).Min(1).Help("number of newest checkpoints to keep");
  config.keep_best =
      reader.Bool("keep_best", false)
          .Help(
              "keep the weights of the best evaluation in checkpoints/best.h5: the test at the end "
              "is theirs, and predict, eval and export take them");
  const std::string other_data =
      reader.String("other_data", "refuse")
          .OneOf({"refuse", "take"})
          .Help(
              "on resume, data with other classes, columns, mean, deviation or samples than the "
              "checkpoint was trained on: refuse them, or take them with a warning");
  config.takes_other_data = other_data == "take";
  return config;
}

WeightsConfig ReadWeightsConfig(config::Reader reader) {
  WeightsConfig config;
  config.from =
      static_cast<std::string>(reader.String("from", "")
                                   .Help("a run folder, a checkpoint or a safetensors file; \"\": "
                                         "none; --weights goes first"));
  config.except = static_cast<std::vector<std::string>>(
      reader.Strings("except", {})
          .Help("layers that begin with drawn weights all the same, by name or pattern: [fc3, "
                "conv4*]"));
  config.freeze = static_cast<std::vector<std::string>>(
      reader.Strings("freeze", {})
          .Help("layers whose parameters and statistics stay as they are, by name or pattern"));
  return config;
}

}  // namespace dtrain
