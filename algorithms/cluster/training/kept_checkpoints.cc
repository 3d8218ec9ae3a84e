#include "algorithms/cluster/training/kept_checkpoints.h"

#include <algorithm>
#include <filesystem>

namespace paceline::cluster {
namespace {

namespace fs = std::filesystem;

/// `to` names the file that `from` names now; what it named before stays where others name it.
Result<void> link(const std::string& from, const std::string& to) {
  std::error_code failed;
  const std::string fresh = to + ".new";
  fs::remove(fresh, failed);
  fs::create_hard_link(from, fresh, failed);
  if (!failed) fs::rename(fresh, to, failed);
  if (failed) return fail(ErrorKind::invalid, "keep " + from + " as " + to + ": " + failed.message());
  return {};
}

}  // namespace

Result<void> KeptCheckpoints::keep(std::int64_t update, bool is_best) {
  std::error_code failed;
  newest_ = std::max(newest_, update);
  if (run_.path().empty() || !fs::exists(run_.checkpoint(), failed)) return {};
  if (is_best) PACELINE_TRY(link(run_.checkpoint(), run_.best_checkpoint()));
  if (count_ <= 1) return {};
  fs::create_directories(run_.checkpoints(), failed);
  if (failed) return fail(ErrorKind::invalid, "create " + run_.checkpoints() + ": " + failed.message());
  const std::string path = name_of(update);
  PACELINE_TRY(link(run_.checkpoint(), path));
  if (kept_.empty() || kept_.back() != path) kept_.push_back(path);
  while (static_cast<std::int64_t>(kept_.size()) > count_) {
    fs::remove(kept_.front(), failed);
    kept_.pop_front();
  }
  return {};
}

void KeptCheckpoints::note_kept(std::int64_t update) {
  newest_ = std::max(newest_, update);
  if (count_ > 1) kept_.push_back(name_of(update));
  if (static_cast<std::int64_t>(kept_.size()) > count_) kept_.pop_front();
}

std::string KeptCheckpoints::name_of(std::int64_t update) const {
  return run_.checkpoints() + "/update-" + std::to_string(update) + ".safetensors";
}

Result<bool> KeptCheckpoints::take_fresh(Rank writer, std::int64_t update) {
  if (update <= newest_) {
    drop_fresh(writer);
    return false;
  }
  std::error_code failed;
  const std::string fresh = run_.fresh_checkpoint(writer);
  fs::rename(fresh, run_.checkpoint(), failed);
  if (failed) return fail(ErrorKind::invalid, "take " + fresh + " as the checkpoint: " + failed.message());
  PACELINE_TRY(keep(update, /*is_best=*/false));
  return true;
}

void KeptCheckpoints::drop_fresh(Rank writer) {
  std::error_code failed;
  fs::remove(run_.fresh_checkpoint(writer), failed);
}

}  // namespace paceline::cluster
