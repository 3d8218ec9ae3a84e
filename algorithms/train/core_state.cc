#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "algorithms/train/core.h"
#include "algorithms/train/tensor_file.h"

// The replica of a worker: what is in it, how it is loaded, saved and resumed from.

namespace paceline::train {
namespace {

void copy_into(const std::string& name, const torch::Tensor& to, const std::map<std::string, torch::Tensor>& saved) {
  const auto it = saved.find(name);
  if (it == saved.end()) throw std::invalid_argument("the saved state lacks '" + name + "': it is of another model");
  if (it->second.sizes() != to.sizes() || it->second.scalar_type() != to.scalar_type()) {
    throw std::invalid_argument("the saved '" + name + "' has another shape or type: it is of another model");
  }
  to.detach().copy_(it->second);
}

}  // namespace

/// What the names of a share's tensors begin with where there are several.
std::string Core::prefix(std::size_t share) const {
  return shares_.size() > 1 ? "share" + std::to_string(share) + "." : "";
}

/// [2, numbers]: where the present block began, and the momentum; a view. Undefined where there is no outer step.
torch::Tensor Core::outer_state() const {
  const auto state = paceline_session_outer(session_.get());
  if (state.elements == 0) return {};
  const auto type = parameters_.type();
  return torch::from_blob(state.data, {2, static_cast<std::int64_t>(state.elements / c10::elementSize(type) / 2)},
                          type);
}

/// A checkpoint of another strategy has nothing that this one's outer step could go on from.
void Core::load_outer_state(const Replica& replica) {
  if (!replica.outer.defined() || info_.outer_step == 0) return;
  if (const auto it = replica.notes.find("outer_step");
      it == replica.notes.end() || it->second != std::to_string(info_.outer_step))
    return;
  const auto state = replica.outer.contiguous();
  if (!paceline_session_set_outer(session_.get(), state.data_ptr(), state.nbytes()))
    throw std::invalid_argument("the saved state of the outer step has another size: it is of another model");
}

Replica Core::state() {
  Replica replica;
  replica.update = lease_.update;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    auto& share = shares_[i];
    replica.scheduled.push_back(share.scheduled);
    const auto rates = learning_rates(*share.optimizer);
    const auto& wanted = share.wanted.empty() ? rates : share.wanted;
    replica.learning_rates.insert(replica.learning_rates.end(), rates.begin(), rates.end());
    replica.scheduled_rates.insert(replica.scheduled_rates.end(), wanted.begin(), wanted.end());
    for (const auto& [name, tensor] : tensors_of(*share.module)) replica.model.emplace_back(prefix(i) + name, tensor);
    for (const auto& [name, tensor] : read_optimizer_state(*share.optimizer, parameters_.trainable(i)))
      replica.optimizer.emplace_back(prefix(i) + name, tensor);
    if (!warned_slow_state_ && !has_known_state(*share.optimizer)) {
      warned_slow_state_ = true;
      std::fprintf(stderr,
                   "paceline: this optimiser's state is saved through its own save(), which is slow; SGD, Adam, AdamW, "
                   "RMSprop and Adagrad are fast\n");
    }
  }
  replica.outer = outer_state();
  for (const auto& user : user_states) replica.user.push_back(user.save());
  replica.notes = {{"strategy", settings_.options.strategy},
                   {"epoch", std::to_string(epoch())},
                   {"workers", std::to_string(info_.workers)},
                   {"present", std::to_string(present_)},
                   {"batch", std::to_string(settings_.options.batch)},
                   {"seed", std::to_string(info_.seed)},
                   {"sampler_position", std::to_string(lease_.update * info_.bodies)},
                   {"outer_step", std::to_string(info_.outer_step)}};
  if (shards_) {
    replica.notes["samples"] = std::to_string(shards_for_.samples);
    replica.notes["place"] = text_of(shards_->at(lease_.update * info_.bodies));
  }
  return replica;
}

void Core::with_encoded_state(const std::function<void(Pieces)>& use) {
  // Inside an update this worker's buffers have moved on alone; who gets the replica does the whole update.
  const bool inside = lease_.payload != PACELINE_MODELS && lease_.body > 0;
  if (inside) parameters_.swap_buffers_with_mark();
  const Replica replica = state();
  const auto encoder = encoder_of(replica);
  const auto file = encoder ? encoder->file() : Result<SafetensorsFile>(tl::unexpected(encoder.error()));
  if (file) use(file->pieces());
  if (inside) parameters_.swap_buffers_with_mark();
  if (file) return;
  fail_job(file.error().text);
  throw Stopped(file.error().text);
}

void Core::load_state(const Replica& replica) {
  torch::NoGradGuard no_grad;
  const std::map<std::string, torch::Tensor> model(replica.model.begin(), replica.model.end());
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const auto& share = shares_[i];
    for (const auto& [name, tensor] : tensors_of(*share.module)) copy_into(prefix(i) + name, tensor, model);
    std::map<std::string, torch::Tensor> optimizer;
    for (const auto& [name, tensor] : replica.optimizer)
      if (name.starts_with(prefix(i))) optimizer.emplace(name.substr(prefix(i).size()), tensor);
    write_optimizer_state(*share.optimizer, parameters_.trainable(i), optimizer);
  }
  if (optimizer_state_ == OptimizerState::average) share_optimizer_state();
  if (replica.user.size() != user_states.size()) {
    throw std::invalid_argument("the saved state has " + std::to_string(replica.user.size()) +
                                " user states, the script has " + std::to_string(user_states.size()) +
                                ": call me.state before next, equally on all workers");
  }
  for (std::size_t i = 0; i < user_states.size(); ++i) user_states[i].load(replica.user[i]);
  load_outer_state(replica);
  std::size_t first = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    auto& share = shares_[i];
    // At most what is due: of a checkpoint whose schedule counted something else.
    advance_schedule(
        share, std::min(replica.scheduled[std::min(i, replica.scheduled.size() - 1)], due(share, replica.update)));
    const auto of_share = [&](const std::vector<double>& rates) {
      const auto from = std::min(first, rates.size());
      const auto to = std::min(from + share.optimizer->param_groups().size(), rates.size());
      return std::vector<double>(rates.begin() + std::ptrdiff_t(from), rates.begin() + std::ptrdiff_t(to));
    };
    const auto rates = of_share(replica.learning_rates);
    set_learning_rates(*share.optimizer, rates);
    share.wanted = of_share(replica.scheduled_rates);
    if (share.wanted == rates) share.wanted.clear();
    first += share.optimizer->param_groups().size();
  }
  summed_bodies_ = 0;
}

void Core::resume() {
  const std::string path = checkpoint_in(settings_.options.resume);
  const auto refuse = [&path](const std::string& why) {
    throw std::runtime_error("cannot resume from " + path + ": " + why);
  };
  auto bytes = read_checkpoint(path);
  if (!bytes) refuse(bytes.error().text);
  const auto replica = decode_replica(*bytes);
  if (!replica) refuse(replica.error().text);
  lease_.update = reached_ = info_.first_update = replica->update;
  const auto note = [&replica](const char* name) {
    const auto it = replica->notes.find(name);
    return it == replica->notes.end() ? std::string() : it->second;
  };
  if (const auto place = algorithms::place_of(note("place"))) {
    begun_ = *place;
    begun_.body = replica->update * info_.bodies;
    begun_samples_ = std::atoll(note("samples").c_str());
  }
  if (start_.rank != 0) return;  // Gets rank 0's state, as every worker does at the start.
  uses_file(path);
  pending_resume_ = [this, path, bytes = std::make_shared<std::vector<std::byte>>(std::move(*bytes))] {
    try {
      load_state(*decode_replica(*bytes));
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error("cannot resume from " + path + ": " + error.what());
    }
  };
  if (const auto workers = note("workers"); !workers.empty() && workers != std::to_string(info_.workers))
    std::fprintf(stderr, "paceline: resumed from the averaged model of %s workers with %d%s\n", workers.c_str(),
                 info_.workers, begun_samples_ > 0 ? ", which go on with what was left of the epoch" : "");
}

void Core::save_checkpoint(const std::string& path) {
  if (path.empty()) return;
  Result<void> written;
  with_encoded_state([&](Pieces state) { written = write_pieces_atomically(path, state); });
  if (written) return;
  fail_job("checkpoint: " + written.error().text);
  throw Stopped("checkpoint: " + written.error().text);
}

}  // namespace paceline::train
