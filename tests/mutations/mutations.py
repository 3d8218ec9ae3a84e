"""Defects that are put into the production code, one at a time: each must make a test fail. What stands there now, and what the defect
makes of it; the tests that are asked, in this order, until one fails."""
import dataclasses

# Name of a test -> its target and the program in a build folder.
TESTS = {
    "scheduler": ("paceline_scheduler_test", "scheduler/paceline_scheduler_test"),
    "session": ("paceline_session_test", "algorithms/session/paceline_session_test"),
    "cluster": ("paceline_cluster_test", "algorithms/cluster/paceline_cluster_test"),
    "job": ("paceline_job_test", "algorithms/job/paceline_job_test"),
    "training": ("paceline_training_test", "algorithms/cluster/training/paceline_training_test"),
    "link": ("paceline_link_test", "runtime/link/paceline_link_test"),
    "actors": ("paceline_actors_test", "actors/paceline_actors_test"),
    "channel": ("paceline_channel_test", "runtime/channel/paceline_channel_test"),
    "memory": ("paceline_memory_test", "runtime/memory/paceline_memory_test"),
    "clusters": ("paceline_sim_cluster_test", "tests/sim/paceline_sim_cluster_test"),
    "reference": ("paceline_sim_reference_test", "tests/sim/paceline_sim_reference_test"),
    "explorer": ("paceline_explorer_test", "tests/sim/paceline_explorer_test"),
    "algorithms": ("paceline_algorithms_test", "algorithms/paceline_algorithms_test"),
    "batch_explorer": ("paceline_batch_explorer_test", "tests/sim/paceline_batch_explorer_test"),
    "asynchronous_explorer": ("paceline_asynchronous_explorer_test", "tests/sim/paceline_asynchronous_explorer_test"),
    "mix_explorer": ("paceline_mix_explorer_test", "tests/sim/paceline_mix_explorer_test"),
}
ROUNDS = ("scheduler", "clusters", "reference", "explorer")
MIXING = ("scheduler", "clusters", "reference", "mix_explorer")
LINKS = ("link", "clusters")
SESSION = ("session", "clusters")
CLUSTER = ("cluster", "clusters")
TRAINING = ("training", "cluster", "clusters")
VIEWS = ("scheduler", "cluster", "clusters", "explorer")
BATCHES = ("scheduler", "clusters", "batch_explorer")
WEIGHTS = ("algorithms", "scheduler", "reference")


@dataclasses.dataclass(frozen=True)
class Mutation:
    defect: str
    path: str
    now: str  # Occurs once.
    then: str
    tests: tuple


STATE = "scheduler/rounds/round_state.cc"
WAITING = "scheduler/rounds/round_waiting.cc"
ENGINE = "scheduler/rounds/round_engine.cc"
MIX = "scheduler/mixing/mix_engine.cc"
PAIRS = "scheduler/asynchronous/pair_engine.cc"
RETURNING, EXCHANGE = "scheduler/rounds/returning.cc", "algorithms/cluster/training/replica_exchange.cc"
AGREEMENT = "scheduler/views/agreement.h"
VIEW, PARTIAL_SUMS = "scheduler/views/view_change.cc", "scheduler/rounds/partial_sums.cc"
LINK = "runtime/link/link_core.cc"
INBOX, OUTBOX = "runtime/link/inbox.cc", "runtime/link/outbox.cc"
CORE, STEPS = (f"algorithms/session/session_{part}.cc" for part in ("core", "steps"))
JOB, HOLD = (f"algorithms/cluster/training/{part}.cc" for part in ("training_job", "job_hold"))
ACTORS = "actors/router/local_actors.cc"
PLACES = "algorithms/job/places.cc"
OWN_PACE = "scheduler/own_pace/own_pace.cc"
ASYNCHRONOUS, SERVER = (f"scheduler/asynchronous/{part}.cc" for part in ("asynchronous_workers", "server_coordinator"))

MUTATIONS = (
    # Rounds
    Mutation("who engaged elsewhere counts as fresh", STATE, "(contributed[i] == v && !elsewhere)", "contributed[i] == v", ROUNDS),
    Mutation("who published after the seal stays parked", STATE, "if (w.phase == Phase::parked && w.engaged == v) w.phase = Phase::late;", "", ROUNDS),
    Mutation("a round is executed without others' partial sums", STATE, "if (!complete) continue;", "", ROUNDS),
    Mutation("members do not know what was executed", STATE, "for (Rank rank : g.local) workers.at(rank).executed = v;", "", ROUNDS),
    Mutation("nobody hears of a worker that is gone", STATE, "if (to != options.self && !lost.contains(to)) out.push_back(Gone{to, w.rank});", "", ROUNDS),
    Mutation("a count goes on waiting for who is gone", STATE, "if (!counted.empty()) fire_if_counted(counted.rbegin()->first, plan, now, out);", "", ROUNDS),
    Mutation("who is gone starts rounds", STATE, "k < all && gone.contains(rank);", "k < 0;", ROUNDS),
    Mutation("who exceeds a grace leaves for good", STATE, "} else if (!grace(round)) {", "} else {", ROUNDS),
    Mutation("an older version takes back that a newer one has fired", STATE, "if (v <= fired) return;\n  if (gate", "if (gate", ROUNDS),
    Mutation("a worker works on after the last version", STATE, ".end = over || next > options.last,", ".end = false,", ROUNDS),
    Mutation("a quorum is not lowered to who is left", WAITING, "c.arrivals < std::min(round.quorum, left)", "c.arrivals < round.quorum", ROUNDS),
    Mutation("a partial sum of a lost node is taken", ENGINE, "!s.is_agent(from) || s.lost.contains(from))", "!s.is_agent(from))", ROUNDS),
    Mutation("partial sums are not sent", ENGINE, "for (NodeId to : g->others) out.push_back(SendPartial{to, v, group});", "", ROUNDS),
    Mutation("a late worker that skips does what it missed", ENGINE, "skips ? w->executed.next() : w->reported.next(), w->without.next()", "w->reported.next(), w->without.next()", ROUNDS),
    Mutation("a death opens no gate", ENGINE, "state_->leave(*w, *plan_, now, out);\n  state_->advance(*plan_, now, out);", "state_->leave(*w, *plan_, now, out);", ROUNDS),
    Mutation("a plan hears the sums of groups, which differ", ENGINE, "s.flight->round.kind == Round::Kind::sync ? sums : RoundSums{}", "sums", ROUNDS),
    Mutation("a hold comes after its release", "scheduler/shell/workplace.cc", "if (released_ && v <= *released_) return;", "", ROUNDS),
    Mutation("nobody is held at the end", "scheduler/rounds/round_coordinator.cc", "if (evaluate || over) work_.hold(v);", "if (evaluate) work_.hold(v);", ROUNDS),
    # Mixing with neighbours, pairs
    Mutation("a contribution counts twice", MIX, "if (!is_first && v <= last->second) return out;", "", MIXING),
    Mutation("what others still read is released", MIX, "if (--it->second > 0) continue;", "--it->second;", MIXING),
    Mutation("who is gone goes on reading", MIX, "if (reads && --it->second == 0)", "if (reads && false)", MIXING),
    Mutation("what a dead worker would have taken is lost", MIX, "if (own.from == rank) own.weight += lost.weight;", "", MIXING),
    Mutation("who is gone is sent to", MIX, "std::erase_if(others, [&](Rank to) { return !takes(to, v); });", "", MIXING),
    Mutation("the last contribution of who is gone is not taken", MIX, "return absence.contributed < v && v", "return absence.contributed <= v && v", MIXING),
    Mutation("who has stepped keeps its lock", PAIRS, "if (const auto holder = models_.at(initiator).holder) release(initiator, *holder);", "", MIXING),
    # Links
    Mutation("what was under way when a connection was cut is not sent again", LINK, "outbox_.rewind();", "", LINKS),
    Mutation("what got lost is not missed", LINK, "if (!inbox_.has(state.sent)) renew();", "", LINKS),
    Mutation("time in which this end stood still is the peer's silence", LINK, "heard_ += now - *due;", "", LINKS),
    Mutation("words of a link before this one are taken", LINK, "(is_ready_ && read->link == peer_end_.link)", "is_ready_", LINKS),
    Mutation("silence ends no link", LINK, "if (needed_ && now >= heard_ + options_.lease)", "if (false)", LINKS),
    Mutation("a peer that was started anew is taken for the old one", LINK, "if (is_open() && greeting.self != peer_end_) {", "if (false) {", LINKS),
    Mutation("a chunk that came is sent again as another", OUTBOX, "std::min<std::size_t>(bytes, come * options_.chunk_bytes)", "std::size_t{0}", LINKS),
    Mutation("a message is forgotten when its bulk was read, its head not", OUTBOX, "heads.acked <= message.head || ", "", LINKS),
    Mutation("what comes again is taken again", INBOX, "if (number < next_[lane]) return Came::again;", "", LINKS),
    Mutation("what was read gives no credit", INBOX, "limit_[head_lane(Class(c))] += messages.front().head_bytes;", "", LINKS),
    Mutation("a refused connection is not tried again", "runtime/link/link_transport.cc", "found->second.redial_at = at + pause;", "", LINKS),
    Mutation("a lost connection is not made again", "runtime/link/link_transport.cc", "if (!link.dialled.empty() && !below_->connect(peer, link.dialled))", "if (!link.dialled.empty() && false)", LINKS),
    # Channels and windows
    Mutation("a writer that waits for room is not told of it", "runtime/channel/ring.cc", "wake(memory_.header->writer_sleeps, bell_);", "", ("channel",)),
    Mutation("who sleeps on a bell is not rung", "runtime/channel/ring.cc", "if (how != static_cast<std::uint32_t>(Sleep::on_bell) || bell < 0) return;", "return;", ("channel",)),
    Mutation("a seal does not keep a buffer from being written", "runtime/memory/window_roles.cc", "b != sealed && ", "", ("memory", "clusters")),
    Mutation("a result that waits is overwritten", "runtime/memory/window_roles.cc", " && b != latest) return b;", ") return b;", ("memory", "clusters")),
    # Nodes that are lost
    Mutation("who goes on without a node waits for nobody's word", VIEW, "  if (!std::all_of(members_.begin(), members_.end(), has_flushed)) return out;\n", "  (void)has_flushed;\n", VIEWS),
    Mutation("a second loss starts no flush", VIEW, "    if (member != self_) out.push_back(Flush{member, lost_});", "    if (member != self_ && lost_.size() < 2) out.push_back(Flush{member, lost_});", VIEWS),
    Mutation("a flush of another loss counts", VIEW, "std::includes(flushed.begin(), flushed.end(), lost_.begin(), lost_.end())", "!flushed.empty()", VIEWS),
    Mutation("what a lost node gave and this one has used is not passed on", PARTIAL_SUMS, "  used_.pass_on(lost, to, pass);\n", "", VIEWS),
    Mutation("what a lost node gave and this one has not used is not passed on", PARTIAL_SUMS, "if (const auto partial = group.remote.find(lost); partial != group.remote.end())", "if (const auto partial = group.remote.find(lost); false)", VIEWS),
    Mutation("what others may lack is forgotten", "scheduler/rounds/used_partials.cc", "  if (others.size() < 2) return;", "  return;", VIEWS),
    Mutation("who has given to a version has executed it", "scheduler/rounds/used_partials.cc", "given->second.value > version", "given->second.value >= version", VIEWS),
    Mutation("what has fired is not said again after a loss", ENGINE, "  if (s.fired >= s.options.first) s.forward(s.options.self, s.fired, out);  // It may have been lost on its way.\n", "", VIEWS),
    Mutation("after a loss activations go along the tree", STATE, "  if (!lost.empty()) {\n    if (root == options.self)", "  if (false) {\n    if (root == options.self)", VIEWS),
    Mutation("a lost node's part of the last mean is not passed on", "scheduler/own_pace/model_means.cc", "part->second.at_end) send(to, v, part->second, lost);", "false) send(to, v, part->second, lost);", VIEWS),
    Mutation("a cut that a killed head had heard of is forgotten", "algorithms/cluster/head_contact.cc", "  for (const auto& cut : jobs.all_cut_off()) tell_cut_off(cut.node, {cut.job}, cut.how);\n", "", VIEWS),
    Mutation("the answer of a lost node is waited for", AGREEMENT, "{ return decide_if_answered(left); }", "{ return left.empty() ? decide_if_answered(left) : Actions{}; }", VIEWS),
    Mutation("what is agreed on comes before what somebody has begun", "scheduler/views/agreement.cc", "last = std::max(last, v);", "last = std::min(last, v);", VIEWS),
    Mutation("a graph is agreed on after an end", "scheduler/views/agreement.cc", "  if (ends_) return {};\n", "", VIEWS),
    Mutation("an end that is wished for meanwhile is forgotten", "scheduler/views/agreement.cc", "if (asked_ != what) next_ = what;", "", VIEWS),
    Mutation("shares that all must have are not passed on", "scheduler/mixing/contributions.cc", "if (view_.lives_on(key.first, lost) && may_lack(to, key.second))", "if (false)", VIEWS),
    Mutation("a lost node's workers are waited for by their neighbours", "scheduler/mixing/neighbours.cc", "    act(engine_.on_lost(rank), now);\n", "", VIEWS),
    Mutation("counts of a lost node are not passed on", "scheduler/mixing/batch_coordinator.cc", "if (const auto of = counts.find(lost); of != counts.end()) send_batch(to, v, of->second, lost);", "", VIEWS),
    Mutation("rows that lack a worker that is gone add up to less than one", MIX, "      if (own.from == rank) own.weight += gone;\n    return shares;", "      if (own.from == rank) own.weight += 0 * gone;\n    return shares;", MIXING),
    Mutation("a graph that runs dry is not made anew", "scheduler/mixing/mix_coordinator.cc", "  if (may_remake()) return pace_.endings.agree_on(Agreement::On::graph);", "  if (may_remake()) return;", VIEWS),
    Mutation("what comes after a graph is given to the one before it", "scheduler/mixing/neighbours.cc", "until && given->version > *until)", "until && false)", VIEWS),
    Mutation("a graph begins before what is given already", "scheduler/mixing/mix_coordinator.cc", "is_ahead ? frozen.next() : frozen, neigh", "frozen, neigh", VIEWS),
    Mutation("a model that was lent to a lost node does not come back", PAIRS, "rank == holder->low() && holder->initiator != rank) release(rank, *holder);", "false) release(rank, *holder);", VIEWS),
    Mutation("a server waits for a lost node's workers", "scheduler/asynchronous/server_coordinator.cc", "  for (const Rank rank : work_.view.ranks_on(node)) on_rank_gone(rank, now);\n", "  (void)node;\n", VIEWS),
    Mutation("nobody leads where the first node is lost", "scheduler/views/view.cc", "return std::pair(is_without(a), a) < std::pair(is_without(b), b);", "return a < b;", VIEWS),
    Mutation("the next one that leads does not evaluate what is due", HOLD, "  if (to_evaluate_) begin_evaluation(now);\n  end_.wait_from(now);", "  end_.wait_from(now);", CLUSTER),
    Mutation("who was told of the job's end keeps it to itself", HOLD, "  if (end_.has_settled()) tell_settled();  // Whoever leads now.\n", "", CLUSTER),
    Mutation("what a lost node has released is not said again", HOLD, "  if (const auto v = averagings_->released()) send_released(*v, false);\n", "", CLUSTER),
    Mutation("what was counted for a quorum is lost with who counted", ENGINE, "  if (node == counter) s.announce_to_counter(*plan_, now, out);\n", "", VIEWS),
    Mutation("what a lost node has decided is not passed on", "scheduler/own_pace/endings.cc", "  if (graph_.number > 0) send_graph(to, graph_);\n  if (end_) send(to, Phase::DECIDE, On::end, *end_);\n", "", VIEWS),
    Mutation("wishes for an end are lost with who led", "scheduler/own_pace/endings.cc", "  for (const On what : std::set(undecided_)) wish(what);\n", "", VIEWS),
    Mutation("a graph that was told twice lets go of who waits for the next one", "scheduler/own_pace/endings.cc", "  if (graph.number <= graph_.number) return;\n", "", VIEWS),
    Mutation("the next server goes on from its own model, be it old", "scheduler/asynchronous/server_coordinator.cc", "if (!newest_.model || steps(snapshot) > steps(newest_)) newest_", "if (!newest_.model) newest_", VIEWS),
    Mutation("a step that the lost server had added is added again", "scheduler/asynchronous/server_coordinator.cc", "    pushed_[rank] = t;\n    owed_.insert(rank);\n", "", VIEWS),
    Mutation("who waits for a server that is lost waits for ever", "scheduler/asynchronous/server_coordinator.cc", "  if (moves) tell_again(now);\n", "", VIEWS),
    Mutation("a server that is lost at the end takes the last model with it", "scheduler/own_pace/model_means.cc", "  if (lacks_all(v)) return;  // Who had the model is lost, and the next one gives it anew.\n", "", VIEWS),
    Mutation("others have of a node what its record has not", "scheduler/shell/workplace.cc", "  chronicle.flush();\n", "", VIEWS),
    Mutation("who leads is never lost", "algorithms/cluster/job_directory.cc", "  return !is_the_drivers(node, entry) && (left.size() > 1", "  return !is_the_drivers(node, entry) && node.value != 0 && (left.size() > 1", CLUSTER),
    Mutation("a lost node's word counts", "algorithms/cluster/training/node_jobs.cc", "  if (job.lost_nodes().contains(from)) return;  // It may not know yet.\n", "", VIEWS),
    Mutation("of two that cannot reach each other nobody is lost", "algorithms/cluster/job_directory.cc", "  part(now, out);\n  close", "  close", CLUSTER),
    Mutation("the rest do not hear who is lost", "algorithms/cluster/job_directory.cc", "      if (!entry.without.contains(node) && is_here(node)) out", "      if (node.value == 0) out", CLUSTER),
    # Strategies' shell and its parts
    Mutation("who freezes in a batch that weighs the steps of all is waited for for ever", "scheduler/mixing/batch_coordinator.cc", "if (!pace_.means.is_evaluating(rank)) pace_.leave_if_awaited_too_long(rank, v, since, now);", "if (!pace_.means.is_evaluating(rank)) (void)(now - since), (void)v;", BATCHES),
    Mutation("a batch that waits looks at no clock", "scheduler/mixing/batch_coordinator.cc", "if (!pace_.means.is_evaluating(rank)) next = earlier(next, pace_.awaited_until(rank, since));", "(void)since, (void)rank, (void)v;", BATCHES),
    Mutation("who gives nothing does not count as zero", "scheduler/rounds/weighing.h", "return at_least_one(members) * bodies;", "return at_least_one(total.contributions) * bodies;", WEIGHTS),
    Mutation("unfinished batches weigh whole", "scheduler/rounds/weighing.h", "by_bodies ? static_cast<double>(done) / static_cast<double>(bodies) : 1;", "by_bodies && done < 0 ? 0 : 1;", WEIGHTS),
    Mutation("time stands still for good after an evaluation", "scheduler/shell/training_clock.h", "    held_since_.reset();\n", "", ROUNDS),
    Mutation("a mean of all lacks a node that was slow to give", "scheduler/own_pace/model_means.cc", "    if (!it->second.sums.contains(node)) return;\n", "    if (node.value < 0) return;\n", VIEWS),
    Mutation("what is passed on is taken for the sender's own", "scheduler/views/view.cc", "of < 0 ? from : NodeId{of};", "of < -1 ? NodeId{of} : from;", VIEWS),
    Mutation("what is being reduced is given back when its job is let go", "scheduler/shell/averagings.cc", "  if (running_) left_ = open_.extract(in_flight_);", "  ;", ("scheduler",)),
    # Sessions
    Mutation("a replica is asked for again and again", CORE, "    needs_replica_ = false;\n", "", SESSION),
    Mutation("a verdict is taken twice", STEPS, "  verdicts_seen_ = answer->number;\n", "", SESSION),
    Mutation("another update's average is taken", STEPS, "if (!buffer || window_.tag(*buffer).iteration != update) {", "if (!buffer) {", SESSION),
    Mutation("a gradient that no round took counts twice", STEPS, "if (terms_.accumulates && lease_.body == 0 && (base = window_.withdraw()))", "if (false)", SESSION),
    Mutation("a publication brings the last batch's samples only", STEPS, "tag.samples = samples_;", "tag.samples = stats.samples;", SESSION),
    Mutation("who published without a round goes on from other numbers", STEPS, "    if (to && *to != published)\n", "    if (false)\n", SESSION),
    Mutation("an evaluation is made again and again", CORE, " && evaluated_ < version;", ";", SESSION),
    Mutation("a start is not waited for", CORE, "  enter(AwaitsStartSeen{});\n", "", SESSION),
    Mutation("alone it does not wait for the end", STEPS, "if (is_due_alone() && !is_answered()) return wait();", "", SESSION),
    # Jobs and clusters
    Mutation("a job is over before all have its last model", "algorithms/cluster/training/job_end.cc", "return all_nodes || now - since_ >= 2 * patience.most ? Step::release : Step::none;", "return Step::release;", TRAINING),
    Mutation("a replica that is too old is given", "algorithms/cluster/training/replica_exchange.cc", "if (!is_served(waiter.need, replica.update)) {", "if (false) {", TRAINING),
    Mutation("several go on from their own models", "algorithms/cluster/training/replica_exchange.cc", "if (!anybody && is_furthest(none.furthest)) {", "if (!anybody && none.furthest.rank.value >= 0) {", TRAINING),
    Mutation("an agent that was started anew is taken for the one that had the job", "algorithms/cluster/job_directory.cc", "if (known->second.incarnation != incarnation) {", "if (false) {", CLUSTER),
    Mutation("what a driver says at the end is not written before it is answered", "algorithms/cluster/cluster_state.cc", "  forget_oldest();\n  flush();\n}", "  forget_oldest();\n}", CLUSTER),
    Mutation("a number of a job is used again", "algorithms/cluster/head_jobs.cc", "directory_(start, state_.newest())", "directory_(start)", CLUSTER),
    Mutation("an agent runs what is over", "algorithms/cluster/head_jobs.cc", "    if (state_.is_over(id)) over.push_back(id);\n", "", CLUSTER),
    Mutation("a job of a node that is kept apart from the next head is lost", "algorithms/cluster/head_jobs.cc", "if (compared_ || !around_.links.ready()) return;", "if (compared_) return;", CLUSTER),
    Mutation("a full disk is not tried again", "algorithms/cluster/cluster_state.cc", "  if (written) changed_.clear();\n", "  changed_.clear();\n", CLUSTER),
    Mutation("a name is taken from who has it now", "algorithms/cluster/name_directory.cc", "if (found != names_.end() && found->second.actor == actor) names_.erase(found);", "if (found != names_.end()) names_.erase(found);", CLUSTER),
    Mutation("what a head has answered is asked of the next one", "algorithms/cluster/head_requests.cc", "return std::erase_if(waiting_, [&](const Request& request) { return request.id == id && request.from == from; }) > 0;", "return std::any_of(waiting_.begin(), waiting_.end(), [&](const Request& request) { return request.id == id && request.from == from; });", CLUSTER),
    Mutation("what another agent asks before its welcome gets no answer", "algorithms/cluster/agent_links.cc", "  others_.heard(from);  // What it asks before it says welcome is to be answered, too.\n", "", CLUSTER),
    Mutation("an evaluator that dies is waited for", JOB, "  hold_.go_on_without(rank, now);\n  go_on_without(rank, how, now);", "  go_on_without(rank, how, now);", CLUSTER),
    Mutation("who joins late is not told what is executed", "scheduler/shell/worker_windows.cc", "&Words::executed, &Words::hold", "&Words::hold", ("scheduler", "clusters")),
    Mutation("who has not come at the end finds nobody with the last model", HOLD, "return around_.members.has_left(rank) || (window && ", "return around_.members.has_left(rank) || !window || (window && ", CLUSTER),
    Mutation("who answers is given up at the end as soon as who does not", HOLD, "any_alive |= !members.has_joined(rank) || around_.life.is_alive(rank, now);", "", CLUSTER),
    Mutation("what is asked of a node that is gone gets no answer", "algorithms/cluster/agent.cc", "  actors_.on_node_gone(node, how);\n", "", CLUSTER),
    # A driver that goes on through another agent
    Mutation("what works for a job ends with its driver's agent", ACTORS, "    if (jobs.contains(actor.create.job)) {", "    if (jobs.size() > 1000) {", CLUSTER),
    Mutation("a result that was on its way is lost with the driver's agent", "actors/router/actor_calls.cc", "      inbox->second.results.insert_or_assign(result.task, result);\n", "      inbox->second.results.clear();\n", ("actors",)),
    Mutation("who takes over a call is not asked who it is", ACTORS, "  if (actor.create.owner != call.owner || actor.create.job.value == 0)", "  if (actor.create.job.value == 0)", ("actors",)),
    Mutation("the agent that a driver has left ends its workers", ACTORS, " || actor->origin != from) return;", ") return;", ("actors",)),
    Mutation("what works for a job waits for its driver for ever", ACTORS, "    if (until <= here_.now) left_alone.push_back(id);\n", "    (void)until, (void)id;\n", ("actors",)),
    Mutation("a job whose driver does not come back goes on", "algorithms/cluster/job_directory.cc", "      over.push_back(id);\n", "      (void)id;\n", CLUSTER),
    Mutation("a driver's agent that is silent counts as one that has ended", "algorithms/cluster/job_directory.cc", "  if (!is_silent) ended_.insert(node);\n", "  ended_.insert(node);\n", CLUSTER),
    Mutation("who knew the driver's last agent first is believed", "algorithms/cluster/job_directory.cc", "  if (driver.moves > known.driver.moves) known.driver = driver;\n", "", CLUSTER),
    Mutation("a driver that has moved misses what was told meanwhile", "algorithms/cluster/training/driver_events.cc", "  send_from(heard + 1);\n", "  send_from(told_ + 1 + 0 * heard);\n", TRAINING),
    # A worker that comes back
    Mutation("it is admitted after a version that another node may have left behind", RETURNING, "return v > fired ? std::optional(v) : std::nullopt;", "return v;", ROUNDS),
    Mutation("it is not waited for", RETURNING, "               .enters_after = after,\n", "", ROUNDS),
    Mutation("it is waited for at once", RETURNING, "abandons ? Phase::computing : Phase::entering,", "Phase::computing,", ROUNDS),
    Mutation("with a period it comes in between two averages of all", RETURNING, "    if (plan.round(v).kind == Round::Kind::sync) return", "    return", ROUNDS),
    Mutation("it merges with a round that it had no part in", RETURNING, "  if (t > w.without || plan.round(t).payload == Payload::gradients) return false;", "  return false;", ROUNDS),
    Mutation("one that dies on its way is admitted all the same", ENGINE, "  state_->returning.erase(rank);\n", "", ROUNDS),
    Mutation("its window is given away while what was published in it is added up", ENGINE, "!found->second.merges &&\n         !state_->flight;", "!found->second.merges;", ROUNDS),
    Mutation("others hear that it has left, and not that it is back", RETURNING, "  gone.erase(w.rank);\n", "", ROUNDS),
    Mutation("it is given a later state than the others begin with", EXCHANGE, "need.exact ? update == need.least : update >= need.least", "update >= need.least", TRAINING),
    Mutation("a donor is asked for two states at once", EXCHANGE, "return can_give(d) && (was_asked || !is_busy(d.rank));", "return can_give(d);", TRAINING),
    Mutation("a donor that gave an older state is not asked again", EXCHANGE, "      if (waiter.asked == from) waiter.asked = Rank{-1};  // It was asked for another one besides.\n", "", TRAINING),
    Mutation("it waits for a donor that is gone", EXCHANGE, "  return was_asked ? ask(donors, now) : Actions{};", "  return {};", TRAINING),
    Mutation("one that comes back gives its state before it has one", "algorithms/cluster/training/replica_exchange.h", "return !waits(rank) && !returning_.contains(rank);", "return !waits(rank);", TRAINING),
    Mutation("it goes on with a model of its own where nobody else has one", EXCHANGE, " && !returning_.contains(donor.rank);", ";", TRAINING),
    Mutation("a donor gives its state before it has come to the update", "algorithms/session/session_core.cc", "  return lease_.update > from ||", "  return true ||", SESSION),
    Mutation("as rank 0 it gives its own start", "algorithms/session/session_core.cc", " && !alone_ && !terms_.returns) return PACELINE_CAPTURE;", " && !alone_) return PACELINE_CAPTURE;", SESSION),
    Mutation("a model that nobody begins with is published", "algorithms/session/session_core.cc", " && !needs_replica_ && terms_.publishes_every", " && terms_.publishes_every", SESSION),
    Mutation("what its last process says late counts", "algorithms/cluster/training/job_members.cc", "  withdraw(rank);\n  rank_of_", "  rank_of_", TRAINING),
    Mutation("who comes back after a job's end is waited for", "algorithms/cluster/training/training_job.cc", "  if (hold_.end() && !returns_.empty()) replicas_.on_end(*hold_.end(), now);\n", "", TRAINING),
    Mutation("an actor is started again more often than so many times within an hour", ACTORS, "return here_.now - at < rule.within;", "return here_.now - at < rule.within / 1000;", ("actors",)),
    # The same, where there are no rounds
    Mutation("one that comes back while an end is agreed on begins another iteration", OWN_PACE, "  ends |= endings.is_decided() ||", "  ends |=", ("scheduler", "clusters")),
    Mutation("one that comes back when the job has ended waits for ever", OWN_PACE, "  if (over_) {\n    end_late(rank, {t, t >= last_});\n  } else if", "  if", ("scheduler", "clusters")),
    Mutation("who waits for the end is not told of it", OWN_PACE, "  for (const auto& [rank, late] : std::exchange(late_, {})) end_late(rank, late);\n", "", ("scheduler", "clusters")),
    Mutation("what its last process says late is its start", OWN_PACE, "  if (!start || window.tag(*start).iteration != t.value) return false;\n", "", ("scheduler",)),
    Mutation("an iteration is done twice", OWN_PACE, "std::max(done(), before->second).next()", "done().next()", ("scheduler",)),
    Mutation("a node says that its workers are done, and not that one is back", ASYNCHRONOUS, "  if (exchange.getPhase() == Phase::BACK) done_.erase(from);\n", "", ("scheduler", "clusters")),
    Mutation("a node whose workers were done, and of which one is back, does not say so again", ASYNCHRONOUS, "  told_ = false;\n", "", ("scheduler", "clusters")),
    Mutation("who comes back counts as one that has ended", ASYNCHRONOUS, "  ended_.erase(rank);\n  told_", "  told_", ("scheduler", "clusters")),
    Mutation("the bound does not hold for who comes back", SERVER, "  engine_.resume(rank, t.value - before.value);\n  engine_.on_pull(rank);\n", "", ("scheduler", "clusters")),
    Mutation("a server's worker that is back is another node's to say", SERVER, "      if (!work_.view.lives_on(message.rank, from)) return;\n      if (!is_server()) return early_", "      if (!is_server()) return early_", ("scheduler",)),
    Mutation("its window is given away while its step is being made", "scheduler/own_pace/own_pace.h", "Return::never && free_.contains(rank)", "Return::never && gone_.contains(rank)", ("scheduler",)),
    Mutation("a server ends a job that nobody is left in", SERVER, " || !anybody_is_left) return {};", ") return {};", ("clusters",)),
    Mutation("its window is given away while it has asked for another's model", PAIRS, "  return !awaits_.contains(rank) && !own.holder", "  return !own.holder", ("scheduler",)),
    Mutation("its window is given away while it waits for another's model", PAIRS, "(model.holder && is_its_own(*model.holder)) ||\n                  std::any_of(model.queue.begin(), model.queue.end(), is_its_own);", "(model.holder && is_its_own(*model.holder));", ("scheduler",)),
    Mutation("who is back is not met", PAIRS, "  model.gone = false;\n", "", ("scheduler", "clusters")),
    Mutation("who comes back too late ends with a model of its own", CORE, "    needs_replica_ = verdict->end && !verdict->fresh;", "    needs_replica_ = false;", SESSION),
    Mutation("who comes back begins before its start was seen", CORE, " || (terms_.returns && !terms_.own_pace)) return;", " || terms_.returns) return;", SESSION),
    Mutation("who was away is left out for ever", MIX, "return absence.contributed < v && v <= absence.until;", "return absence.contributed < v;", MIXING),
    Mutation("to who was away nothing is given for ever", MIX, "return absence.mixed < v && v <= absence.until;", "return absence.mixed < v;", MIXING),
    Mutation("one of which it is heard late that it had gone is gone for ever", MIX, "  return after == it->second.end() ? kForEver : *after;", "  return kForEver;", MIXING),
    Mutation("one of which it is heard early that it is gone again is waited for", MIX, "gone_again_[rank] = {contributed, mixed};", "{}", MIXING),
    Mutation("one that is lost before it has given again is waited for", MIX, "contributed = std::max(contributed, back->second.back());", "{}", MIXING),
    Mutation("the first does not hear who joins", "scheduler/own_pace/endings.cc", "        if (what == On::graph) joining_.insert(rank);\n", "", MIXING),
    Mutation("who joins after its node has answered waits for ever", OWN_PACE, "  if (!joining_.empty()) endings.wish(Agreement::On::graph);  // They came when this node had answered.\n", "", MIXING),
    Mutation("one that dies before it joins is waited for", OWN_PACE, "  if (!arrived) return strategy_.on_not_joined(rank, last, now);", "  if (!arrived) return;", MIXING),
    Mutation("one that joins at the end has a part in its mean", OWN_PACE, "  if (last >= last_) return void(late_[rank] = {arrived.mapped()});\n", "", MIXING),
    Mutation("a graph begins before what one that is gone has given", "scheduler/mixing/mix_coordinator.cc", "std::max(is_ahead ? frozen.next() : frozen, neighbours_.engine().furthest());", "is_ahead ? frozen.next() : frozen;", MIXING),
    Mutation("a mean waits for who has joined since", "scheduler/own_pace/model_means.cc", "workers_.ranks_at(v);", "workers_.living_ranks();", MIXING),
    Mutation("who joins begins where it loaded", CORE, "    if (verdict->next > lease_.update) begin_update(verdict->next);\n", "", SESSION),
    Mutation("the model of the end is loaded twice, where nobody may be left to give it", OWN_PACE, "late.has_end ? Verdict::end : Verdict::end_without_mean", "Verdict::end_without_mean", ("scheduler", "clusters")),
    # Places that are taken and given up
    Mutation("a node is left without a worker that is there", PLACES, "there_on(node_of_[i]) < 2) continue;", "taken_on(node_of_[i]) < 2) continue;", ("job", "clusters")),
    Mutation("a place is given away before the process in it has ended", PLACES, "  if (drained) return set(rank, State::over);", "  if (drained) return set(rank, State::vacant);", ("job",)),
    Mutation("who is lost is replaced again and again", PLACES, "  if (wanted_ && is_taken(rank)) --*wanted_;\n", "", ("job",)),
    Mutation("who was asked to leave and has not heard stays", PLACES, "    set(*rank, State::leaves);\n  }", "    set(*rank, State::leaves);\n    return {steps.start, {*rank}};\n  }\n  return steps;", ("job", "clusters")),
    Mutation("who is to leave goes in the middle of an update", CORE, "return control_.words().leave.load(std::memory_order_acquire) != 0 && is_at_boundary();", "return control_.words().leave.load(std::memory_order_acquire) != 0;", SESSION),
    Mutation("who has left counts as one that gave nothing", "scheduler/rounds/sealing.cc", "static_cast<std::int64_t>(what.members.size());\n  const bool", "static_cast<std::int64_t>(work_.job.node_of.size());\n  const bool", ("scheduler",)),
    Mutation("a vacant place is waited for", "scheduler/rounds/round_coordinator.cc", "  const bool is_known = !member || !member->gone ||", "  const bool is_known = (member && !member->gone) ||", ("scheduler", "clusters")),
    Mutation("the start of one that is killed before its first step is forgotten", OWN_PACE, "  published = std::max(published, t);\n", "", ("scheduler",)),
    Mutation("near its end no graph is made anew, and a model runs dry", "scheduler/mixing/mix_coordinator.cc", "  if (ends_before && !may_remake()) return {};", "  if (ends_before) return {};", ("clusters",)),
)
