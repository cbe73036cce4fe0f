#include "framework/setup/evaluate_config.h"

namespace dtrain {

EvaluateConfig ReadEvaluateConfig(config::Reader reader) {
  EvaluateConfig config;
  config.every_epochs = reader.Int("every_epochs", 1)
                            .Min(0)
                            .Help("evaluate every N epochs, and at the end; 0: not by epochs");
  config.every_steps =
      reader.Int("every_steps", 0).Min(0).Help("evaluate every N steps as well; 0: not by steps");
  config.statistics = reader.String("statistics", "auto")
                          .OneOf({"auto", "mean", "estimate"})
                          .Help(
                              "batch-norm statistics of the weights that are evaluated and saved; "
                              "mean: that of the workers' own; "
                              "estimate: anew, from training samples; auto: estimate where these "
                              "weights are a mean of replicas "
                              "(gssp, local_sgd)");
  config.statistics_samples =
      reader.Int("statistics_samples", 2000)
          .Min(2)
          .Help("training samples of such an estimate, not augmented; all if there are fewer");
  return config;
}

// The model decides whether a target is an accuracy, a perplexity or a loss (ReadModel).
StopConfig ReadStopConfig(config::Reader reader, const EvaluateConfig& when,
                          config::Reader evaluate) {
  StopConfig config;
  config.target =
      reader.Number("target", 0)
          .Min(0)
          .Help(
              "end at the first evaluation with this accuracy (0.98); of sentences with this "
              "perplexity, of a model without an accuracy with this loss, or a lower one; 0: none");
  config.patience = reader.Int("patience", 0)
                        .Min(0)
                        .Help(
                            "end when N evaluations in a row had neither a better accuracy "
                            "(perplexity) nor a lower loss than any before; 0: never");
  if (config.any() && when.every_epochs == 0 && when.every_steps == 0) {
    reader.AddError(config.target > 0 ? "target" : "patience",
                    "nothing is evaluated before the end, so nothing can end the run early",
                    "set evaluate.every_epochs or evaluate.every_steps",
                    {evaluate.At("every_epochs"), evaluate.At("every_steps")});
  }
  return config;
}

}  // namespace dtrain
