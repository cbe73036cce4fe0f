#include "tests/strategies/transcript.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/strategies/effect_writer.h"
#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

class Replayer {
 public:
  // Returns one event with its effects as indented lines.
  std::string Line(const std::string& line);

 private:
  using Words = std::vector<std::string>;

  void Run(const std::string& line);
  void Deliver(const Words& words);
  void End(const Words& words);
  void Steps(const Words& words);
  void DeliverAll();
  void NotifyQuiescent(const Words& words);
  void Reload();
  void Report();
  ActorId Id(const std::string& name) const;
  EffectWriter Effects(ActorId id);

  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::map<std::pair<ActorId, ActorId>, std::deque<Message>> queues_;
  std::set<ActorId> dead_;
  std::string text_;
  Nanos now_ = 0;
};

std::string Replayer::Line(const std::string& line) {
  text_.clear();
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  const std::string& what = words.at(0);
  for (const std::string& word : words) {
    if (word.starts_with("at=")) now_ = std::stoll(word.substr(3));
  }
  if (what == "run") {
    Run(line);
  } else if (what == "begin") {
    EffectWriter effects = Effects(Id(words.at(1)));
    actors_[Id(words[1])]->OnBegin(effects);
  } else if (what == "end") {
    End(words);
  } else if (what == "deliver") {
    Deliver(words);
  } else if (what == "quiet") {
    NotifyQuiescent(words);
  } else if (what == "steps") {
    Steps(words);
  } else if (what == "timer") {
    EffectWriter effects = Effects(Id(words.at(1)));
    actors_[Id(words[1])]->OnTimer(std::stoi(words.at(2)), effects);
  } else if (what == "die") {
    dead_.insert(Id(words.at(1)));
    actors_[Id(words[1])]->OnDeath();
  } else if (what == "gone") {
    EffectWriter effects = Effects(Id(words.at(2)));
    actors_[Id(words[2])]->OnGone(Id(words[1]), effects);
  } else if (what == "describe") {
    text_ = "  " + actors_[Id(words.at(1))]->Describe() + "\n";
  } else if (what == "report") {
    Report();
  } else if (what == "reload") {
    Reload();
  } else {
    throw std::runtime_error("no such event: " + line);
  }
  return text_;
}

void Replayer::Run(const std::string& line) {
  static const std::regex pattern(
      R"(run (\d+) workers?(?: in nodes of (\d+))?, (\d+) parameters, strategy (.*?)(, compress (.*?))?(, may_fail)?)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) throw std::runtime_error("cannot read: " + line);
  strategy_ = MakeStrategy(match[4]);
  setup_ = SetupFor(*strategy_, std::stoi(match[1]), std::stoll(match[3]), match[6]);
  if (match[2].matched) {
    for (int& node : setup_.placement.node_of) node /= std::stoi(match[2]);
  }
  setup_.may_fail = match[7].matched;
  actors_ = MakeActors(*strategy_, setup_);
  dead_.clear();
  queues_.clear();
}

ActorId Replayer::Id(const std::string& name) const {
  for (ActorId id = 0; id < setup_.placement.actors(); ++id) {
    if (ActorName(setup_.placement, id) == name) return id;
  }
  throw std::runtime_error("no actor " + name);
}

EffectWriter Replayer::Effects(ActorId id) {
  return EffectWriter(
      setup_.placement, id, *actors_[id], text_,
      [this, id](ActorId to, const Message& message) {
        queues_[{id, to}].push_back(message);
      },
      now_);
}

void Replayer::End(const Words& words) {
  StepReport report;
  for (const std::string& word : words) {
    if (word.starts_with("compute=")) report.compute = std::stoll(word.substr(8));
    if (word.starts_with("samples=")) report.samples = std::stoll(word.substr(8));
    if (word.starts_with("loss=")) report.loss_sum = std::stod(word.substr(5));
    if (word == "stop") report.stop = true;
  }
  EffectWriter effects = Effects(Id(words.at(1)));
  actors_[Id(words[1])]->OnEnd(report, effects);
}

void Replayer::Deliver(const Words& words) {
  const ActorId from = Id(words.at(1)), to = Id(words.at(2));
  std::deque<Message>& queue = queues_[{from, to}];
  if (queue.empty()) throw std::runtime_error("nothing from " + words[1] + " to " + words[2]);
  const Message message = queue.front();
  queue.pop_front();
  if (dead_.contains(to)) return actors_[to]->OnLostMessage(from, message);
  EffectWriter effects = Effects(to);
  actors_[to]->OnMessage(from, message, effects);
}

// Runs whole steps of a worker, with all messages that follow from each.
void Replayer::Steps(const Words& words) {
  for (int64_t step = std::stoll(words.at(2)); step > 0; --step) {
    EffectWriter effects = Effects(Id(words.at(1)));
    actors_[Id(words[1])]->OnBegin(effects);
    End(words);
    DeliverAll();
  }
  text_.clear();
}

void Replayer::DeliverAll() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [pair, queue] : queues_) {
      if (queue.empty()) continue;
      Deliver({"deliver", ActorName(setup_.placement, pair.first),
               ActorName(setup_.placement, pair.second)});
      moved = true;
    }
  }
}

void Replayer::NotifyQuiescent(const Words& words) {
  QuiescentState quiescent;
  for (const std::string& word : words) {
    if (word == "last") quiescent.last = true;
    if (word.starts_with("gone=")) quiescent.gone.push_back(Id(word.substr(5)));
    if (word.starts_with("steps=")) quiescent.steps = std::stoll(word.substr(6));
    if (word.starts_with("epochs=")) quiescent.epochs = std::stoll(word.substr(7));
  }
  EffectWriter effects = Effects(Id(words.at(1)));
  actors_[Id(words[1])]->OnQuiescent(quiescent, effects);
}

void Replayer::Reload() {
  std::vector<std::unique_ptr<Actor>> fresh = MakeActors(*strategy_, setup_);
  for (size_t i = 0; i < fresh.size(); ++i) LoadState(*fresh[i], SaveState(*actors_[i]));
  actors_ = std::move(fresh);
}

void Replayer::Report() {
  ProtocolReport report = EmptyReport(*strategy_);
  for (const auto& actor : actors_) actor->Report(report);
  text_ = "  staleness";
  for (size_t s = 0; s < report.staleness.size(); ++s) {
    text_ += fmt::format(" {}: {}", s, report.staleness[s]);
  }
  text_ += fmt::format(", largest lead {}", std::max<int64_t>(report.clock_lead_max, 0));
  if (setup_.may_fail)
    text_ += fmt::format(", lost {}, ignored {}", report.Total("lost"), report.Total("ignored"));
  text_ += "\n";
}

}  // namespace

std::string Replay(const std::string& transcript) {
  Replayer replayer;
  std::string text;
  std::istringstream lines(transcript);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) continue;  // effects of before
    text += line + "\n";
    if (!line.empty() && line[0] != '#') text += replayer.Line(line);
  }
  return text;
}

}  // namespace dtrain
