#include "runtime/store/state_store.h"

#include <algorithm>
#include <iterator>

namespace paceline::store {

Result<StateStore::Texts> MemoryStore::read(const std::string& prefix) {
  Texts found;
  std::copy_if(texts_.begin(), texts_.end(), std::inserter(found, found.end()),
               [&](const auto& text) { return text.first.starts_with(prefix); });
  return found;
}

Result<void> MemoryStore::write(const Texts& texts) {
  if (full_) return fail(ErrorKind::infeasible, "there is no room on the simulated disk");
  for (const auto& [key, text] : texts) {
    if (text.empty()) {
      texts_.erase(key);
    } else {
      texts_[key] = text;
    }
  }
  return {};
}

}  // namespace paceline::store
