#include "tests/strategies/gssp_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dtrain::gssp {

using world::Content;
using world::Parts;
using world::Term;

Coverage GsspRules::coverage;

GsspRules::GsspRules(const Case& run, const Placement& placement)
    : run_(run), placement_(placement), workers_(placement.workers), servers_(placement.servers) {
  last_groups_ = FirstGroups();
  for (int w = 0; w < placement.workers; ++w) {
    workers_[w].at = workers_[w].pushes_to = static_cast<int>(last_groups_[w]);
  }
  for (Server& server : servers_) server.groups = last_groups_;
}

GsspRules::Groups GsspRules::FirstGroups() const {
  if (!run_.options.group_of.empty()) return run_.options.group_of;
  const int64_t groups = run_.options.groups > 0 ? run_.options.groups : placement_.servers;
  Groups first;
  for (int w = 0; w < placement_.workers; ++w) first.push_back(w * groups / placement_.workers);
  return first;
}

// Returns the number of workers in the server's group, as the server itself knows it.
int64_t GsspRules::Members(int server) const {
  const Groups& groups = servers_[server].groups;
  return std::count(groups.begin(), groups.end(), server);
}

bool GsspRules::HasOthers(int server) const {
  const Groups& groups = servers_[server].groups;
  return std::any_of(groups.begin(), groups.end(), [=](int64_t of) { return of != server; });
}

int64_t GsspRules::Lead(int worker) const {
  int64_t least = workers_[worker].clock;
  for (const Worker& other : workers_) {
    if (other.at == workers_[worker].at) least = std::min(least, other.clock);
  }
  return workers_[worker].clock - least;
}

void GsspRules::Join(int worker, int server) {
  int64_t least = -1;
  for (const Worker& other : workers_) {
    if (other.at == server) least = least < 0 ? other.clock : std::min(least, other.clock);
  }
  workers_[worker].clock = std::max<int64_t>(least, 0);
  workers_[worker].at = server;
}

void GsspRules::JoinEarly(int server) {
  for (const int worker : std::exchange(servers_[server].early, {})) Join(worker, server);
}

// ------------------------------------------------------------------ sent messages

void GsspRules::Started(ActorId, Term, const Parts& weights) {
  Expect(weights.size() == 1, "a worker without all of the weights");
}

void GsspRules::Sent(ActorId from, ActorId to, const Message& message, const Parts& parts) {
  switch (message.kind) {
    case Push::kKind:
      return SeesPush(from, placement_.ServerOf(to), Unpack<Push>(message), parts);
    case Weights::kKind:
      return SeesWeights(placement_.ServerOf(from), to, parts);
    case GroupSync::kKind: {
      const auto sync = Unpack<GroupSync>(message);
      return SeesGroupSync(placement_.ServerOf(from), parts, &sync);
    }
    case Replica::kKind: {
      const int server = placement_.ServerOf(from);
      Expect(Unpack<Replica>(message).members == Members(server), "a replica of another group");
      return SeesGroupSync(server, parts, nullptr);
    }
    case Handover::kKind:
      workers_[Unpack<Handover>(message).worker].at = -1;
      return;
    case Regroup::kKind:
      regroups_ = Unpack<Regroup>(message).number;
      return CheckGroups(Unpack<Regroup>(message).server_of);
    case Flush::kKind:
      return SeesFlush(from, parts);
    default:
      return;
  }
}

void GsspRules::SeesWeights(int number, int to, const Parts& parts) {
  Worker& worker = workers_[to];
  Expect(worker.asked, fmt::format("worker {} gets weights unasked", to));
  worker.asked = worker.waits = false;
  ++answered_;
  CheckMass(number, parts);
  // Workers handed over before the Regroup arrived join after the leaving workers are removed.
  const std::vector<int>& early = servers_[number].early;
  if (std::find(early.begin(), early.end(), to) != early.end()) JoinEarly(number);
  Expect(worker.at == number, "another group's server answers");
  Expect(Synchronous() || Lead(to) <= run_.options.bound,
         fmt::format("worker {} leads its group by {}", to, Lead(to)));
}

// A gradient that is sent was in the residual or is new; the rest stays in the residual.
void GsspRules::SeesPush(ActorId from, int server, const Push& push, const Parts& parts) {
  Worker& worker = workers_[from];
  Expect(!worker.asked, fmt::format("worker {} pushes before it has weights", from));
  worker.asked = true;
  ++submitted_;
  submitted_samples_ += push.samples;
  Expect(worker.pushes_to == server,
         fmt::format("worker {} of group {} pushes to {}", from, worker.pushes_to, server));
  worker.kept.insert(++worker.pushed);
  for (const auto& [shard, content] : parts) {
    for (const Term& term : content.terms) {
      Expect(term.worker == from && worker.kept.erase(term.clock) == 1,
             fmt::format("worker {} sends gradient {}, which it does not have", from, term.clock));
    }
  }
  Expect(run_.compresses || worker.kept.empty(),
         fmt::format("worker {} keeps a gradient back", from));
}

// `sync` is null if the message carries the weights.
void GsspRules::SeesGroupSync(int number, const Parts& parts, const GroupSync* sync) {
  Server& server = servers_[number];
  exchanges_ += server.exchanged ? 0 : 1;  // one group synchronisation sends to several servers
  server.exchanged = true;
  const int64_t every =
      run_.options.exchange_every > 0 ? run_.options.exchange_every : Members(number);
  Expect(server.handles != Push::kKind || server.acc >= every,
         fmt::format("server {} exchanges after {} gradients", number, server.acc));
  Expect(Gradients() == (sync != nullptr), "an exchange of another kind");
  if (sync == nullptr) return CheckMass(number, parts);
  Expect(sync->gradients == server.acc && sync->samples == server.acc_samples,
         fmt::format("server {} says {} gradients, {} samples instead of {}, {}", number,
                     sync->gradients, sync->samples, server.acc, server.acc_samples));
  Expect(run_.compresses || static_cast<int64_t>(parts.at(0).terms.size()) == sync->gradients,
         "an exchange is miscounted");
}

// A flush sends the whole residual.
void GsspRules::SeesFlush(ActorId from, const Parts& parts) {
  ++flushed_;
  Worker& worker = workers_[from];
  std::set<int64_t> sent;
  for (const auto& [shard, content] : parts) {
    for (const Term& term : content.terms) sent.insert(term.clock);
  }
  Expect(sent == worker.kept, fmt::format("worker {} flushes {} of {} gradients", from, sent.size(),
                                          worker.kept.size()));
  ++worker.flushes;
  ++coverage.flushes;
}

void GsspRules::CheckGroups(const Groups& groups) {
  const std::set<int64_t> names(groups.begin(), groups.end());
  const auto count = static_cast<int64_t>(names.size());
  Expect(static_cast<int>(groups.size()) == placement_.workers, "a worker without a group");
  Expect(count <= placement_.servers, "more groups than servers");
  Expect(run_.options.groups == 0 || count == run_.options.groups, "another number of groups");
  for (const int64_t name : names) {
    Expect(std::count(last_groups_.begin(), last_groups_.end(), name) > 0 || groups == last_groups_,
           fmt::format("server {}, which had no group, gets one", name));
    const auto members = std::count(groups.begin(), groups.end(), name);
    Expect(members > 1 || placement_.workers < 2 * count,
           fmt::format("group {} has one worker", name));
  }
  last_groups_ = groups;
}

void GsspRules::CheckMass(int server, const Parts& parts) {
  Expect(std::abs(parts.at(0).mass - servers_[server].mass) < 1e-9,
         fmt::format("the weights of server {} have {} gradients instead of {}", server,
                     parts.at(0).mass, servers_[server].mass));
}

// ------------------------------------------------------------------ received messages

void GsspRules::Reached(ActorId to, ActorId from, const Message& message, const Parts&) {
  if (placement_.IsWorker(to) && message.kind == Regroup::kKind) {
    workers_[to].pushes_to = static_cast<int>(Unpack<Regroup>(message).server_of[to]);
  }
  if (placement_.KindOf(to) != ActorKind::kServer) return;
  const int number = placement_.ServerOf(to);
  ReachedServer(servers_[number], number, message, from);
}

void GsspRules::ReachedServer(Server& server, int number, const Message& message, ActorId from) {
  server.handles = message.kind;
  if (message.kind == Push::kKind) {
    server.fresh += Unpack<Push>(message).samples;
    ++server.fresh_gradients;
    ++workers_[from].clock;
    workers_[from].waits = true;
  } else if (message.kind == Replica::kKind) {
    server.arrived_of = Unpack<Replica>(message).members;
  } else if (message.kind == Regroup::kKind) {
    const auto regroup = Unpack<Regroup>(message);
    server.announced = regroup.server_of;
    server.regroup = regroup.number;
    coverage.regroups += number == 0 ? 1 : 0;
  } else if (message.kind == Handover::kKind) {
    const auto handover = Unpack<Handover>(message);
    ++coverage.handovers;
    coverage.waiting_handovers += handover.waiting;
    const auto worker = static_cast<int>(handover.worker);
    if (handover.number != server.regroup) return server.early.push_back(worker);
    Join(worker, number);
  }
}

// Returns the factor that a gradient must have at a server.
double GsspRules::WeightOf(const Server& server, int number) const {
  const bool own = server.handles != GroupSync::kKind && server.handles != Flush::kKind;
  return 1.0 / static_cast<double>(Gradients() || !own ? placement_.workers : Members(number));
}

void GsspRules::Applied(ActorId actor, int, const Content& sum, const Update& update) {
  const int number = placement_.ServerOf(actor);
  Server& server = servers_[number];
  const double expected = WeightOf(server, number);
  for (const Term& term : sum.terms) {
    Expect(server.applied.insert({term.worker, term.clock}).second,
           fmt::format("server {} applies gradient {} of worker {} twice", number, term.clock,
                       term.worker));
    applied_.insert({term.worker, term.clock});
    const double weight = term.factor * update.gradient_factor * update.lr_factor;
    Expect(std::abs(weight / expected - 1) < 1e-12,
           fmt::format("a gradient counts {} instead of {}", weight, expected));
    server.mass += expected;
  }
  Expect(!run_.options.scale_gradient || update.lr_factor == 1, "the rate is scaled");
  server.samples += update.samples;
  if (server.handles == GroupSync::kKind) return;
  if (server.handles == Flush::kKind) return Expect(update.samples == 0, "a flush has samples");
  const int64_t fresh = std::exchange(server.fresh, 0);
  const int64_t samples = Gradients() ? fresh : fresh * placement_.workers / Members(number);
  Expect(update.samples == samples,
         fmt::format("a step counts {} samples instead of {}", update.samples, samples));
  server.stepped = true;
  server.acc += std::exchange(server.fresh_gradients, 0);
  server.acc_samples += fresh;
}

void GsspRules::Blended(ActorId actor, const Content& arrived, double share) {
  const int number = placement_.ServerOf(actor);
  Server& server = servers_[number];
  const double expected = static_cast<double>(server.arrived_of) / placement_.workers;
  Expect(std::abs(share - expected) < 1e-12,
         fmt::format("server {} takes {} of another's weights instead of {}", number, share,
                     expected));
  server.mass += expected * (arrived.mass - server.mass);
  ++coverage.blends;
}

// ------------------------------------------------------------------ invariants between two events

// Returns whether the rules let the server hold the worker's request.
bool GsspRules::MayWait(int server, int worker) const {
  if (!Synchronous()) return Lead(worker) > run_.options.bound;
  for (int w = 0; w < placement_.workers; ++w) {
    const bool in_round = workers_[w].at == server && workers_[w].waits;
    if (servers_[server].groups[w] == server && !in_round) return true;
  }
  return false;
}

void GsspRules::Settled(ActorId actor) {
  if (placement_.KindOf(actor) != ActorKind::kServer) return;
  const int number = placement_.ServerOf(actor);
  Server& server = servers_[number];
  if (!server.announced.empty()) {
    server.groups = std::exchange(server.announced, {});
    JoinEarly(number);
    for (int w = 0; w < placement_.workers; ++w) {
      Expect((workers_[w].at == number) <= (server.groups[w] == number),
             fmt::format("server {} does not hand worker {} over", number, w));
    }
  }
  const bool exchanged = std::exchange(server.exchanged, false);
  if (exchanged || !HasOthers(number)) server.acc = server.acc_samples = 0;
  Expect(Members(number) > 0 || server.acc == 0,
         fmt::format("server {} has no group and owes the others {}", number, server.acc));
  const int64_t every =
      run_.options.exchange_every > 0 ? run_.options.exchange_every : Members(number);
  const bool due = std::exchange(server.stepped, false) && server.handles == Push::kKind;
  Expect(!due || server.acc < every || !HasOthers(number),
         fmt::format("server {} owes the others {} gradients", number, server.acc));
  for (int w = 0; w < placement_.workers; ++w) {
    if (workers_[w].at != number || !workers_[w].waits) continue;
    Expect(MayWait(number, w),
           fmt::format("server {} keeps worker {} waiting, which leads by {}", number, w, Lead(w)));
  }
}

void GsspRules::Quiescent(const QuiescentState&) {
  for (Worker& worker : workers_) worker.flushes = 0;
  groups_at_boundary_ = static_cast<int>(std::set(last_groups_.begin(), last_groups_.end()).size());
  for (Server& server : servers_) server.handles = 0;
}

// At the end of an epoch residuals are empty: every gradient is at a server.
void GsspRules::AfterBoundary(const QuiescentState& quiescent) {
  const bool epoch_ends = std::exchange(epochs_, quiescent.epochs) != quiescent.epochs;
  const bool due = run_.compresses && (quiescent.last || (run_.flushes && epoch_ends));
  for (int w = 0; w < placement_.workers; ++w) {
    Expect(workers_[w].flushes == (due ? groups_at_boundary_ : 0),
           fmt::format("worker {} flushes to {} servers", w, workers_[w].flushes));
    if (due) workers_[w].kept.clear();
  }
  if (!Synchronous()) CheckAllAreSomewhere();
}

void GsspRules::CheckAllAreSomewhere() {
  auto count = static_cast<int64_t>(applied_.size());
  for (const Worker& worker : workers_) count += static_cast<int64_t>(worker.kept.size());
  Expect(count == submitted_, fmt::format("{} of {} gradients are somewhere", count, submitted_));
}

void GsspRules::Finished(const ProtocolReport& report) {
  Expect(report.gradients() == submitted_, "a gradient has no staleness");
  Expect(report.Total("exchanges") == exchanges_, "exchanges are miscounted");
  Expect(report.Total("regroups") == regroups_, "changes of groups are miscounted");
  // A residual is sent to every group's server.
  Expect(report.Total("up_transfers") == submitted_ + flushed_, "pushes are miscounted");
  Expect(report.Total("down_transfers") == answered_, "answers are miscounted");
  CheckAllAreSomewhere();
  std::vector<int64_t> idle;
  for (int number = 0; number < placement_.servers; ++number) {
    const Server& server = servers_[number];
    if (Members(number) == 0) {
      idle.push_back(number);
    } else if (Gradients()) {
      Expect(
          static_cast<int64_t>(server.applied.size()) == submitted_,
          fmt::format("server {} has applied {} of {}", number, server.applied.size(), submitted_));
      Expect(server.samples == submitted_samples_,
             fmt::format("server {} has counted {} of {} samples", number, server.samples,
                         submitted_samples_));
    }
  }
  Expect(report.idle_servers == idle, "idle servers are not named");
}

}  // namespace dtrain::gssp
